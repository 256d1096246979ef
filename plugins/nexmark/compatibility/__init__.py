"""Does a running job survive the upgrade? Checkpoints of one Spark build under another one."""

from __future__ import annotations

from nexmark.compatibility.application import Application, ApplicationError, Half
from nexmark.compatibility.cases import Case, Input, Side, cases_of, release
from nexmark.compatibility.check import check, check_plans, compared, write_corpus
from nexmark.compatibility.classes import RED, Class, Compatibility, Ending, Restart
from nexmark.compatibility.matrix import as_json, carried, is_red, matrix

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
    "release",
    "write_corpus",
]
