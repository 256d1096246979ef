"""The words for what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from nexmark.compatibility.cases import Case
from nexmark.compatibility.plans import PlanDifference, PlanGrade, QueryPlan


class Class(StrEnum):
    """The class of an upgrade for a running query."""

    SAME = "same"
    CHANGED = "plan changed, state compatible"
    INCOMPATIBLE = "state incompatible"
    WRONG = "silently wrong"
    """Spark goes on without a word, and the final table is wrong."""
    UNKNOWN = "not known"
    """A first half could not be run."""


RED = frozenset({Class.INCOMPATIBLE, Class.WRONG, Class.UNKNOWN})


class Ending(StrEnum):
    """The outcome of a run that one side began and the other side continued."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"
    """Spark did not go on from the checkpoint."""
    NOT_BEGUN = "not begun"
    """The side that was to begin it could not."""


@dataclass(frozen=True)
class Restart:
    """An ending, with Spark's error class where there is one, and the reason in one line."""

    ending: Ending
    error_class: str = ""
    reason: str = ""

    def __str__(self) -> str:
        """Return the ending, and the error class."""
        return f"{self.ending}: {self.error_class}" if self.error_class else str(self.ending)


@dataclass(frozen=True)
class Compatibility:
    """All that was found of one case.

    Attributes:
        case: the query and its formulations.
        plans: the plans of both sides, where they could be made.
        difference: how the plans differ, None if there is none of one side.
        forward: the first side began, the second went on; None if nothing was run.
        backward: the other way round.
        confs: what the first side's checkpoint carries, and the next run takes from it.
        ignored: confs of a side that the checkpoint overrules, or a query cannot have, in words.
    """

    case: Case
    plans: tuple[QueryPlan | None, QueryPlan | None]
    difference: PlanDifference | None
    forward: Restart | None = None
    backward: Restart | None = None
    confs: Mapping[str, str] | None = None
    ignored: tuple[str, ...] = ()

    @property
    def class_(self) -> Class:
        """The class: by the outcomes; where nothing was run, by the plans."""
        outcomes = [x for x in (self.forward, self.backward) if x is not None]
        endings = {outcome.ending for outcome in outcomes}
        by_ending = (
            (Ending.REFUSED, Class.INCOMPATIBLE),
            (Ending.WRONG, Class.WRONG),
            (Ending.NOT_BEGUN, Class.UNKNOWN),
        )
        for ending, found in by_ending:
            if ending in endings:
                return found
        if self.difference is None:
            return Class.UNKNOWN
        if outcomes:
            return Class.SAME if self.difference.change is PlanGrade.SAME else Class.CHANGED
        return _BY_PLAN[self.difference.change]

    @property
    def reason(self) -> str:
        """Why it is not `same`, in one line."""
        said = list(self.difference.reasons) if self.difference else []
        for way, outcome in (("", self.forward), ("back: ", self.backward)):
            if outcome and outcome.reason and way + outcome.reason not in said:
                said.append(way + outcome.reason)
        return "; ".join([*said, *self.ignored])


_BY_PLAN = {
    PlanGrade.SAME: Class.SAME,
    PlanGrade.CHANGED: Class.CHANGED,
    PlanGrade.FUNCTIONS: Class.WRONG,
    PlanGrade.STATE: Class.INCOMPATIBLE,
}
