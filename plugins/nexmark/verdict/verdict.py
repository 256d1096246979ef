"""The gate's answer on a query, as one record: from the gate to the store, evidence and pages."""

from dataclasses import dataclass, field
from datetime import datetime

from nexmark.model import Basis, Mode, QueryKey, Value, is_red


@dataclass(frozen=True)
class Verdict:
    """The verdict on one metric of one query in one night; ``reason`` is one line.

    ``ratio`` is candidate / baseline with its 95 % interval ``lo``, ``hi``, from the pairs of
    all rounds; ``fresh_pairs`` counts the pairs after the first one. ``mde`` is the smallest
    slowdown that this night could have seen (0.07 is 7 %). ``decides``: it may turn the night red.
    ``further_pairs`` is how many more pairs would decide an undecided query; None if it is decided,
    or if no number of pairs would.

    Later nights learn from ``shift`` and ``spread`` of the first ``pairs`` (log), their ``noise``,
    and the sums of the drift. ``candidate`` and ``baseline`` are the medians that the ratio is of,
    in the unit of the metric, on ``basis``; None where nothing was compared. ``build`` is the
    candidate and ``baseline_build`` the accepted build that was measured in the same night, "" for
    none. In a night by bounds there are no pairs: ``repetitions`` of the candidate were compared
    with the accepted run ``baseline_run`` by ``bound``.

    The store adds when it was ``judged``, and the ``acceptance`` that covers it (its id).
    """

    night: str
    query: str
    metric: str
    value: Value
    reason: str
    mode: Mode
    gate_version: int
    decides: bool = True
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    mde: float | None = None
    shift: float | None = None
    spread: float | None = None
    pairs: int = 0
    fresh_pairs: int = 0
    noise: float | None = None
    drift_slower: float = 0.0
    drift_faster: float = 0.0
    baseline_build: str = ""
    candidate: float | None = None
    baseline: float | None = None
    basis: Basis | None = None
    repetitions: int = 0
    bound: float | None = None
    baseline_run: str | None = None
    further_pairs: int | None = None
    build: str = field(default="", compare=False)
    acceptance: int | None = field(default=None, compare=False)
    judged: datetime | None = field(default=None, compare=False)

    @property
    def bad(self) -> bool:
        """Whether it fails the night unless a person has accepted it.

        A suspect of being faster does not, though it is not green.
        """
        return is_red(self.value, self.ratio, decides=self.decides)

    @property
    def red(self) -> bool:
        """Whether it fails the night."""
        return self.bad and self.acceptance is None

    @property
    def against(self) -> str:
        """What the candidate was compared with: an accepted run, else a build; "" for nothing."""
        return self.baseline_run or self.baseline_build

    @property
    def key(self) -> QueryKey:
        """Query and metric."""
        return QueryKey(self.query, self.metric)
