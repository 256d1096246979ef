"""The lines below the table: what happened, why, what to do next; and the result of upgrades."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean, median
from textwrap import shorten
from types import MappingProxyType

from nexmark.config import BUILD_DAG_ID
from nexmark.evidence.gate_health import SelfTests
from nexmark.evidence.rows import Row
from nexmark.model import ARMS, CPU_METRICS, GROWTH, Mode, Value, metric_of
from nexmark.night.run_directory import RunDirectory
from nexmark.store.accepting import confs_of_candidate, where_it_stays
from nexmark.store.table_rows import CompatibilityRow, NightRow
from nexmark.verdict.verdict import Verdict

NAMED = 8
"""The largest number of queries that a line names."""
REASONS = 3
"""The largest number of reasons in a line."""
COUNTED = frozenset({Value.OK, Value.NO_BASELINE})
"""The values whose queries are counted, but not named."""
WIDTH = 120
"""The largest number of characters of a reason."""
ALONE = 400
"""The same, of the only red query."""
BY_ATTENTION = sorted(Value, key=lambda value: value.attention)


def failed(rows: Sequence[Row], suite: Verdict | None = None) -> bool:
    """Tell whether the night is red; a night without any verdict is red."""
    if suite is not None and suite.red:
        return True
    return not any(row.value for row in rows) or any(row.red for row in rows)


def nothing_compared(rows: Sequence[Row], suite: Verdict | None = None) -> str:
    """Return why a night that is not red has compared no query; "" for any other night."""
    if failed(rows, suite) or any(row.ratio for row in rows):
        return ""
    if any(row.value not in (None, Value.NO_BASELINE) for row in rows):
        return ""
    reasons = list(dict.fromkeys(row.reason for row in rows if row.reason))
    return " | ".join(reasons[:REASONS]) or "there is no baseline"


def summary(
    night: NightRow,
    rows: Sequence[Row],
    suite: Verdict | None = None,
    broken: Collection[str] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return three lines: what happened, why, and what to do next.

    Args:
        night: The night.
        rows: Its rows, one per query.
        suite: The verdict on the suite, if there is one.
        broken: The queries that would not survive the upgrade to the candidate.
        names: The names of builds by their ids.
    """
    after = _next(night, rows, suite)
    lost = [row for row in rows if row.query in broken and row.red and row.result != "WRONG"]
    if lost and not any(row.red and row.result == "WRONG" for row in rows):
        plans = RunDirectory(Path(night.directory)).compatibility
        after = f"Next: compare the plans of {lost[0].query} in {plans}; if it is meant to be so: "
        after += _accept(night)
    return [_what(night, rows, suite), _why(night, rows, suite, names), after]


def health(
    night: NightRow,
    rows: Sequence[Row],
    tests: SelfTests,
    names: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return a line on how a night was judged, and a line on the self-tests of the gate.

    There is no line if the night was judged by bounds.

    Args:
        night: The night.
        rows: Its rows, one per query.
        tests: The self-tests of the gate that judged it.
        names: The names of builds by their ids.
    """
    if night.mode == Mode.BOUNDS:
        return []
    parts = [f"mode {night.mode}"]
    pairs = max((row.repetitions or row.pairs for row in rows), default=0)
    if night.baselines:
        parts.append(f"{pairs} pairs with build {' and '.join(_baselines(night, names))}")
        parts += ["the same build: a night A against A"] if night.same_build else []
    if night.grade:
        reason = f" ({night.grade_reason})" if night.grade_reason else ""
        parts.append(f"hosts {night.grade}{reason}")
    seen = [row.mde for row in rows if row.mde is not None]
    if seen:
        parts.append(f"smallest slowdown that could be seen {median(seen):.1%} (median)")
    sentences = ["; ".join(parts), *([tests.rates.words] if tests.count else [])]
    return [f"Gate: {sentence}." for sentence in sentences]


def watch_lines(rows: Sequence[Row], suite: Verdict | None) -> list[str]:
    """Return a line on the verdicts to be watched, with their reasons; [] if there are none."""
    reasons = [f"{row.query}: {row.reason}" for row in _with(rows, Value.WATCH)]
    if suite is not None and suite.value == Value.WATCH:
        reasons.insert(0, f"suite: {suite.reason}")
    return [f"Watch: {_first(reasons)}."] if reasons else []


def _with(rows: Sequence[Row], value: Value) -> list[Row]:
    return [row for row in rows if row.value == value]


def _on_fewer_pairs(night: NightRow, rows: Sequence[Row]) -> list[Row]:
    """Return the queries that have a verdict although some of their repetitions failed."""
    return [
        row
        for row in rows
        if row.value not in (Value.MISSING, Value.INVALID) and 0 < row.pairs < night.repetitions
    ]


def _what(night: NightRow, rows: Sequence[Row], suite: Verdict | None) -> str:
    """Return the line on what happened."""
    if not any(row.value for row in rows):
        return "NIGHT NOT JUDGED: no verdict is recorded."
    if why := nothing_compared(rows, suite):
        right, agree = (sum(row.result == result for row in rows) for result in ("right", "agrees"))
        others = f", {agree} {'agrees' if agree == 1 else 'agree'}" if agree else ""
        return f"NOTHING COMPARED: {why}; {right} of {len(rows)} results are right{others}."
    parts = []
    if known := [row for row in rows if row.accepted]:
        parts.append(f"{len(known)} known and accepted ({_names(known)})")
    for value in BY_ATTENTION:
        with_value = [row for row in _with(rows, value) if not row.accepted]
        if with_value:
            named = "" if value in COUNTED else f" ({_names(with_value)})"
            parts.append(f"{len(with_value)} {_counted(value, with_value)}{named}")
    if fewer := _on_fewer_pairs(night, rows):
        parts.append(f"{len(fewer)} with repetitions that failed ({_names(fewer)})")
    ratios = [row.ratio for row in rows if row.ratio]
    if suite is not None:
        parts.append(f"suite {suite.value}, {suite.reason}")
    elif ratios:
        mean = geometric_mean(ratios)
        metric = metric_of(next(row.metric for row in rows if row.ratio))
        parts.append(f"{metric.short} {mean:.3f} of the baseline (geometric mean of {len(ratios)})")
    return f"NIGHT {'FAILED' if failed(rows, suite) else 'OK'}: {'; '.join(parts)}."


def _counted(value: Value, rows: Sequence[Row]) -> str:
    """Return what follows the number of queries with a value."""
    grow = value is Value.REGRESSION and all(row.metric == GROWTH for row in rows)
    return "growing" if grow else value.counted


def _baselines(night: NightRow, names: Mapping[str, str]) -> list[str]:
    """Return the names of the builds of the baseline arm."""
    builds = sorted(set((night.baselines or {}).values()))
    return [names.get(build, str(build)) for build in builds]


def _why(
    night: NightRow, rows: Sequence[Row], suite: Verdict | None, names: Mapping[str, str]
) -> str:
    """Return the line on why it happened.

    Args:
        night: The night.
        rows: Its rows, one per query.
        suite: The verdict on the suite, if there is one.
        names: The names of builds by their ids.
    """
    bad = [row for value in BY_ATTENTION for row in _with(rows, value) if row.red]
    if bad:
        width = WIDTH if len(bad) > 1 else ALONE
        reasons = [f"{row.query}: {shorten(row.reason, width)}" for row in bad]
        return f"Why: {_first(reasons)}"
    if suite is not None and suite.red:
        return f"Why: no query by itself, but {suite.reason}."
    if unsure := _with(rows, Value.UNDECIDED) or _on_fewer_pairs(night, rows):
        return f"Why: {_first([f'{row.query}: {row.reason}' for row in unsure])}."
    builds = _baselines(night, names)
    if builds and any(row.ratio for row in rows):
        return f"Why: every result is right, and measured in turns with build {', '.join(builds)}."
    runs = list(dict.fromkeys(row.baseline_run for row in rows if row.ratio and row.baseline_run))
    if runs:
        more = f" and {len(runs) - 1} more" if len(runs) > 1 else ""
        return f"Why: every result is right, and compared with {runs[0]}{more}."
    reasons = list(dict.fromkeys(row.reason for row in rows if row.reason))
    return f"Why: {' | '.join(reasons[:REASONS]) or 'the night did not get so far'}."


def _next(night: NightRow, rows: Sequence[Row], suite: Verdict | None) -> str:
    """Return the line on what to do next."""
    if not any(row.value for row in rows):
        return "Next: where its run is over, see in Airflow which task failed, and clear it."
    accept = _accept(night)
    invalid = [row for row in _with(rows, Value.INVALID) if row.red]
    if wrong := [row for row in invalid if row.result == "WRONG"]:
        docs = RunDirectory(Path(night.directory)).data_docs / "index.html"
        return f"Next: see what is wrong with {wrong[0].query} in {docs}."
    if invalid:
        return f"Next: fix the cause named above, then {_measured_again(night, invalid)}"
    if missing := [row for row in _with(rows, Value.MISSING) if row.red]:
        log = f"read the log of {missing[0].query}'s failed task, put it right"
        return f"Next: {log}, then {_measured_again(night, missing)}"
    if suspect := [row for row in rows if row.red and row.value == Value.SUSPECT]:
        if suspect[0].metric == GROWTH and night.dag_id != BUILD_DAG_ID:
            return f"Next: read why {suspect[0].query} was not measured on, clear `round_2`."
        return f"Next: measure {_names(suspect)} again: {_going_on(night, suspect)}"
    if suite is not None and suite.red and not _with(rows, Value.REGRESSION):
        return f"Next: look at the largest ratios above; if it is meant to be so: {accept}"
    if slower := [row for row in rows if row.red and row.value == Value.REGRESSION]:
        place = RunDirectory(Path(night.directory)).group(slower[0].query).path
        what = "ageing.jsonl of both arms" if slower[0].metric == GROWTH else "plan and batches"
        return f"Next: compare {what} in {place}; if it is meant to be so: {accept}"
    return _next_when_green(night, rows, accept)


def _measured_again(night: NightRow, rows: Sequence[Row]) -> str:
    """Return how queries begin again that are INVALID or MISSING: by a command, or their tasks."""
    can_go_on = {*CPU_METRICS, GROWTH}
    compared = all(
        row.metric in can_go_on and row.verdict and row.verdict.baseline_build for row in rows
    )
    if compared and night.dag_id == BUILD_DAG_ID:
        return f"measure {_names(rows)} again: {_going_on(night, rows)}"
    return f"clear {rows[0].query}'s tasks."


def _going_on(night: NightRow, rows: Sequence[Row]) -> str:
    """Return the command that goes on with what a night left to measure."""
    verb = "soak" if any(row.metric == GROWTH for row in rows) else "build"
    return f"nexmark {verb} --continue '{night.id}'"


def _next_when_green(night: NightRow, rows: Sequence[Row], accept: str) -> str:
    """Return the line on what to do after a night that is not red.

    ``accept`` says how the night becomes the baseline.
    """
    if bound := _with(rows, Value.SOURCE_BOUND):
        return (
            f"Next: give {_names(bound)} a faster source (docs/kafka.md, Headroom): this night "
            "proves nothing of them."
        )
    if undecided := _with(rows, Value.UNDECIDED):
        pairs = ", ".join(map(_further_pairs, undecided[:NAMED])) + _and_more(undecided)
        time = _time_of_pairs(night, undecided)
        return f"Next: measure {pairs}{time}: {_going_on(night, undecided)}"
    if _with(rows, Value.NO_BASELINE):
        return f"Next: to compare later nights with this one: {accept}"
    if fewer := _on_fewer_pairs(night, rows):
        return f"Next: read the log of {fewer[0].query}'s failed repetition; its verdict stands."
    return "Next: nothing to do."


def _further_pairs(row: Row) -> str:
    """Return a query with how many more pairs to measure."""
    further = _further(row)
    return (
        f"more pairs of {row.query}" if further is None else f"{further} more pairs of {row.query}"
    )


def _further(row: Row) -> int | None:
    """Return how many more pairs would decide a query."""
    return row.verdict.further_pairs if row.verdict else None


def _time_of_pairs(night: NightRow, rows: Sequence[Row]) -> str:
    """Return how long the pairs would take that would decide queries, as far as that is known.

    An application is taken to last as long as the usual one of its query in this night.
    """
    spans = RunDirectory(Path(night.directory)).applications()
    seconds = 0.0
    for row in rows:
        further = _further(row)
        took = [span.end - span.start for span in spans if span.timed and span.query == row.query]
        if further is None or not took:
            return ""
        seconds += further * len(ARMS) * median(took)
    return f", about {max(1, round(seconds / 60))} minutes"


def _accept(night: NightRow) -> str:
    """Return the command that makes the night the baseline, or why it cannot be one."""
    if tried := confs_of_candidate(night):
        return f"put it into {where_it_stays(night)} first; {tried}, so this is no baseline."
    return f"nexmark accept --run '{night.id}' --reason 'WHY'"


def _first(reasons: Sequence[str]) -> str:
    """Return the first reasons, and the number of the others."""
    more = len(reasons) - REASONS
    return " | ".join([*reasons[:REASONS], *([f"and {more} more"] if more > 0 else [])])


def _names(rows: Sequence[Row]) -> str:
    """Return the names of the first queries."""
    return ", ".join(row.query for row in rows[:NAMED]) + _and_more(rows)


def _and_more(rows: Sequence[Row]) -> str:
    return ", ..." if len(rows) > NAMED else ""


_WIDTH = 200
"""The largest number of characters of a reason in the lines on upgrades."""


@dataclass(frozen=True)
class Upgrades:
    """The stateful queries whose upgrade a night checked; no rows if it checked none.

    ``names`` has the names of the builds from which they were upgraded, by their ids.
    """

    rows: tuple[CompatibilityRow, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def red(self) -> tuple[str, ...]:
        """The queries that would not survive the upgrade."""
        return tuple(row.query for row in self.rows if row.red)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines for people: one on all queries, and one on each that would not survive."""
        if not self.rows:
            return ()
        counted = Counter(row.outcome for row in self.rows)
        classes = ", ".join(f"{number} {outcome}" for outcome, number in counted.most_common())
        return (
            f"Running queries, from the baseline to the candidate and back: {classes}.",
            *(
                f"Upgrade of {row.query}: {row.outcome} (forward {row.forward}, back "
                f"{row.backward}; plans: {row.plans}): {shorten(row.reason, _WIDTH)}"
                for row in self.rows
                if row.red
            ),
        )
