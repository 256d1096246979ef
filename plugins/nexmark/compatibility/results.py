"""The results of a check: the class of each upgrade, its reasons, and the table of all."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from nexmark.compatibility.cases import Case
from nexmark.compatibility.plans import PlanDifference, PlanGrade, QueryPlan, in_words
from nexmark.terminal import COULD_NOT_RUN, FOUND_RED, columns


class UpgradeClass(StrEnum):
    """What an upgrade does to a running query."""

    SAME = "same"
    CHANGED = "plan changed, state compatible"
    INCOMPATIBLE = "state incompatible"
    WRONG = "silently wrong"  # Spark reports no error, and the final table is wrong
    UNKNOWN = "not known"  # a run failed, or a plan could not be made


RED = frozenset({UpgradeClass.INCOMPATIBLE, UpgradeClass.WRONG, UpgradeClass.UNKNOWN})


class RestartOutcome(StrEnum):
    """How a query ended that one side started and the other side resumed."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"  # Spark did not resume from the checkpoint
    NOT_BEGUN = "not begun"  # the first run failed, so that there was nothing to resume
    NOT_ENDED = "not ended"
    """The application ended without an error of Spark's, or nothing happened for 15 minutes."""


@dataclass(frozen=True)
class Restart:
    """How a resumed query ended, with Spark's error class and with the reason in one line."""

    outcome: RestartOutcome
    error_class: str = ""
    reason: str = ""

    def __str__(self) -> str:
        """Return the outcome, with the error class if there is one."""
        return f"{self.outcome}: {self.error_class}" if self.error_class else str(self.outcome)


@dataclass(frozen=True)
class Compatibility:
    """The result of one case.

    Attributes:
        plans: the plans of both sides; None for a side whose plan could not be made.
        difference: how the plans differ; None if one is missing.
        forward: the query started on the first side and resumed on the second; None if not run.
        backward: the same in the other direction.
        confs: the confs in the checkpoint of the first side; None if no query was run.
        ignored: sentences on confs that had no effect: a checkpoint overrules them, or a query
            cannot have them.
    """

    case: Case
    plans: tuple[QueryPlan | None, QueryPlan | None]
    difference: PlanDifference | None
    forward: Restart | None = None
    backward: Restart | None = None
    confs: Mapping[str, str] | None = None
    ignored: tuple[str, ...] = ()

    @property
    def class_(self) -> UpgradeClass:
        """The class by the restarts; by the plans if no query was run."""
        restarts = [each for each in (self.forward, self.backward) if each is not None]
        outcomes = {each.outcome for each in restarts}
        for outcome, class_ in _BY_OUTCOME.items():
            if outcome in outcomes:
                return class_
        if self.difference is None:
            return UpgradeClass.UNKNOWN
        if restarts:
            is_same = self.difference.change is PlanGrade.SAME
            return UpgradeClass.SAME if is_same else UpgradeClass.CHANGED
        return _BY_PLAN[self.difference.change]

    @property
    def reason(self) -> str:
        """Why the class is not `same`, in one line; '' without a reason."""
        reasons = list(self.difference.reasons) if self.difference else []
        for direction, restart in (("", self.forward), ("back: ", self.backward)):
            if restart and restart.reason and direction + restart.reason not in reasons:
                reasons.append(direction + restart.reason)
        return "; ".join([*reasons, *self.ignored])


#: The worst outcome comes first: it decides.
_BY_OUTCOME = {
    RestartOutcome.REFUSED: UpgradeClass.INCOMPATIBLE,
    RestartOutcome.WRONG: UpgradeClass.WRONG,
    RestartOutcome.NOT_BEGUN: UpgradeClass.UNKNOWN,
    RestartOutcome.NOT_ENDED: UpgradeClass.UNKNOWN,
}
_BY_PLAN = {
    PlanGrade.SAME: UpgradeClass.SAME,
    PlanGrade.CHANGED: UpgradeClass.CHANGED,
    PlanGrade.FUNCTIONS: UpgradeClass.WRONG,
    PlanGrade.STATE: UpgradeClass.INCOMPATIBLE,
}


_HEADS = ("query", "class", "plans", "forward", "backward", "checkpoint", "why")
_SHOWN = 200


def matrix(results: Sequence[Compatibility]) -> str:
    """Return a table with a row for each result, and below it a line that counts the classes."""
    counts = Counter(each.class_ for each in results)
    classes = ", ".join(f"{counts[name]} {name}" for name in UpgradeClass if counts[name])
    table = columns(_HEADS, [_row(each) for each in results])
    return f"{table}\n\n{len(results)} compared: {classes}"


def exit_code(results: Sequence[Compatibility]) -> int:
    """Return 0 if all queries survive, 1 if one does not, else 2: one is not known to survive."""
    classes = {each.class_ for each in results}
    if classes & RED - {UpgradeClass.UNKNOWN}:
        return FOUND_RED
    return COULD_NOT_RUN if UpgradeClass.UNKNOWN in classes else 0


def as_json(results: Sequence[Compatibility]) -> list[dict[str, Any]]:
    """Return the results with class and reason as objects for JSON."""
    return [{"class": each.class_, "reason": each.reason, **asdict(each)} for each in results]


def carried(result: Compatibility) -> str:
    """Return in words the confs in the checkpoint of the first side; "-" for none."""
    plan = next((plan for plan in result.plans if plan is not None), None)
    names = " ".join(str(operator["name"]) for operator in (plan.operators if plan else ()))
    return in_words(result.confs or {}, names.lower()) or "-"


def _row(result: Compatibility) -> list[str]:
    reason = result.reason
    return [
        str(result.case),
        str(result.class_),
        str(result.difference.change) if result.difference else "-",
        str(result.forward or "-"),
        str(result.backward or "-"),
        carried(result),
        reason if len(reason) <= _SHOWN else f"{reason[: _SHOWN - 3]}...",
    ]
