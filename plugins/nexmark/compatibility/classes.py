"""The cases of a check (builds, queries, an input), the classes of the results, the table."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

from nexmark.compatibility.plans import PlanDifference, PlanGrade, QueryPlan, in_words
from nexmark.engines import Build
from nexmark.terminal import columns
from nexmark_jobs.feature_release import feature_release

_BATCHES = 4
_CYCLE = 50  # the generator is cheapest where a batch is a multiple of this


@dataclass(frozen=True)
class Side:
    """A Spark build, and the confs of Spark SQL that its runs have."""

    build: Build
    confs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """A query; its formulation on the first side, and the one on the second side."""

    query: str
    first: str
    second: str

    def __str__(self) -> str:
        """Return the query, and the formulations where they differ."""
        changed = f" {self.first} -> {self.second}" if self.first != self.second else ""
        return f"{self.query}{changed}"


def cases_of(
    queries: Iterable[str],
    builds: tuple[Build, Build],
    formulation: str | None = None,
    against: str | None = None,
) -> list[Case]:
    """Each query with the formulation asked for, or the best one that both builds can run."""
    from nexmark_jobs.experiments import query_named

    cases = []
    for name in queries:
        older = min(builds, key=lambda build: feature_release(build.version))
        first = builds[0].version if against else older.version
        one = query_named(name).formulation(first, formulation).name
        other = query_named(name).formulation(builds[1].version, against).name if against else one
        cases.append(Case(name, one, other))
    return cases


@dataclass(frozen=True)
class Input:
    """The generated events, in four batches; the first half are two of them."""

    last_batch_of_first_half: ClassVar[int] = _BATCHES // 2 - 1  # the first build stops after it

    events: int = 20_000
    tps: int = 200
    seed: int = 1
    formulations: Path | None = None

    @property
    def generator_arguments(self) -> list[str]:
        """The arguments of the jobs that say which events these are."""
        numbers = {"--events": self.events, "--tps": self.tps, "--seed": self.seed}
        return [word for name, number in numbers.items() for word in (name, str(number))]

    @property
    def run_arguments(self) -> list[str]:
        """The same, and how they are cut into batches."""
        rows = -(-self.events // (_BATCHES * _CYCLE)) * _CYCLE
        return [*self.generator_arguments, "--rows-per-batch", str(rows)]


class Class(StrEnum):
    """The class of an upgrade for a running query."""

    SAME = "same"
    CHANGED = "plan changed, state compatible"
    INCOMPATIBLE = "state incompatible"
    WRONG = "silently wrong"  # Spark goes on without a word, and the final table is wrong
    UNKNOWN = "not known"  # a half could not be run


RED = frozenset({Class.INCOMPATIBLE, Class.WRONG, Class.UNKNOWN})


class Ending(StrEnum):
    """The outcome of a run that one side began and the other side continued."""

    RIGHT = "right"
    WRONG = "wrong"
    REFUSED = "refused"  # Spark did not go on from the checkpoint
    NOT_BEGUN = "not begun"  # the side that was to begin it could not
    NOT_ENDED = "not ended"
    """The application ended without a word of Spark's, or nothing happened for too long."""


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
    """All that was found of one case; `difference` and the endings are None if there are none.

    `confs` are carried by the first side's checkpoint, `ignored` in words: confs of a side that a
    checkpoint overrules, or that a query cannot have.
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
        for ending, found in _BY_ENDING.items():
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


#: The worst first: one ending decides.
_BY_ENDING = {
    Ending.REFUSED: Class.INCOMPATIBLE,
    Ending.WRONG: Class.WRONG,
    Ending.NOT_BEGUN: Class.UNKNOWN,
    Ending.NOT_ENDED: Class.UNKNOWN,
}
_BY_PLAN = {
    PlanGrade.SAME: Class.SAME,
    PlanGrade.CHANGED: Class.CHANGED,
    PlanGrade.FUNCTIONS: Class.WRONG,
    PlanGrade.STATE: Class.INCOMPATIBLE,
}


_HEADS = ("query", "class", "plans", "forward", "backward", "checkpoint", "why")
_SHOWN = 200


def matrix(found: Sequence[Compatibility]) -> str:
    """A row for each comparison, and a line that counts the classes."""
    counted = Counter(each.class_ for each in found)
    classes = ", ".join(f"{counted[name]} {name}" for name in Class if counted[name])
    return f"{columns(_HEADS, [_row(each) for each in found])}\n\n{len(found)} compared: {classes}"


def is_red(found: Sequence[Compatibility]) -> bool:
    """Return whether any of these queries would not survive, or is not known to."""
    return any(each.class_ in RED for each in found)


def as_json(found: Sequence[Compatibility]) -> list[dict[str, Any]]:
    """All that is known of each comparison."""
    return [{"class": each.class_, "reason": each.reason, **asdict(each)} for each in found]


def carried(each: Compatibility) -> str:
    """The confs that the first side's checkpoint carries, in words; "-" for none."""
    plan = next((plan for plan in each.plans if plan is not None), None)
    names = " ".join(str(operator["name"]) for operator in (plan.operators if plan else ()))
    return in_words(each.confs or {}, names.lower()) or "-"


def _row(each: Compatibility) -> list[str]:
    reason = each.reason
    return [
        str(each.case),
        str(each.class_),
        str(each.difference.change) if each.difference else "-",
        str(each.forward or "-"),
        str(each.backward or "-"),
        carried(each),
        reason if len(reason) <= _SHOWN else f"{reason[: _SHOWN - 3]}...",
    ]
