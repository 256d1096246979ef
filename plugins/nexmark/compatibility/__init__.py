"""Does a running job survive the upgrade? Checkpoints of one Spark build under another one."""

from nexmark.compatibility.application import Application, ApplicationError, Half
from nexmark.compatibility.check import check, check_plans, compared, write_corpus
from nexmark.compatibility.classes import (
    RED,
    Case,
    Class,
    Compatibility,
    Ending,
    Input,
    Restart,
    Side,
    as_json,
    carried,
    cases_of,
    is_red,
    matrix,
)

__all__ = [
    "RED",
    "Application",
    "ApplicationError",
    "Case",
    "Class",
    "Compatibility",
    "Ending",
    "Half",
    "Input",
    "Restart",
    "Side",
    "as_json",
    "carried",
    "cases_of",
    "check",
    "check_plans",
    "compared",
    "is_red",
    "matrix",
    "write_corpus",
]
