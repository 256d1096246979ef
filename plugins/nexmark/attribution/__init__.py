"""Why a query got slower: pairs of repetitions in, an explanation out. Pure: no I/O, no Airflow.

``attribute.attribute`` makes one; what is here is data and words, and imports no numpy.
"""

from nexmark.attribution.explained import (
    Attribution,
    Change,
    ConfDifference,
    Kind,
    MetricChange,
    PartChange,
    PlanChange,
    Wait,
)
from nexmark.attribution.observed import Observed, Plan
from nexmark.attribution.words import words

__all__ = [
    "Attribution",
    "Change",
    "ConfDifference",
    "Kind",
    "MetricChange",
    "Observed",
    "PartChange",
    "Plan",
    "PlanChange",
    "Wait",
    "words",
]
