"""Why a query got slower: pairs of repetitions in, an explanation out. Pure: no I/O, no Airflow."""

from nexmark.attribution.attribute import attribute
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
    "attribute",
    "words",
]
