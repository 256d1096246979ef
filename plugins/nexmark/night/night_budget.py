"""How long a night may measure, and which queries of a round it has time for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from statistics import mean

from nexmark.config import Gate
from nexmark.model import ARMS, Mode
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import earlier_spans
from nexmark.night.night_runs import first_runs
from nexmark.verdict.order import MIN_FRESH_PAIRS, rounds_from

#: Seconds between two applications.
GAP_S = 2.0


def deadline_of(gate: Gate, begins: datetime) -> datetime | None:
    """Return when a night that begins at a moment (UTC) has used its budget; None without one."""
    ends = list[datetime]()
    if gate.budget_minutes is not None:
        ends.append(begins + timedelta(minutes=gate.budget_minutes))
    if gate.ends_by is not None:
        hour, minute = map(int, gate.ends_by.split(":"))
        end = datetime.combine(begins.date(), time(hour, minute), begins.tzinfo)
        ends.append(end if end > begins else end + timedelta(days=1))
    return min(ends, default=None)


def budget_line(night: Night, now: datetime) -> str:
    """Return what a person should know of the budget before the night begins; '' without one.

    ``now`` is the time (UTC). What the budget buys is said if an earlier night of the same DAG ran
    the same queries on the same workload and cluster.
    """
    if night.deadline is None:
        return ""
    first = len(ARMS) * night.workload.repetitions * len(night.queries)
    until = f"{night.deadline:%Y-%m-%d %H:%M} UTC"
    return (
        f"measures until {until}: the first round ({first} applications) in any case, then rounds "
        f"of what is undecided, the most urgent query first, {_bought(night, first, now)}"
    )


def few_pairs_line(night: Night) -> str:
    """Return what a night of one round cannot show, if it has few pairs; '' if it has enough.

    A soak, whose pairs are judged by rules of its own, has enough.
    """
    pairs = night.workload.repetitions
    one_round = night.mode == Mode.PAIRED and len(night.gate.rounds) == 1
    if not one_round or night.workload.soak is not None or pairs >= MIN_FRESH_PAIRS:
        return ""
    return (
        f"{pairs} pairs of each query and no more: a change is SUSPECT at the most, for REGRESSION "
        f"and FASTER need {MIN_FRESH_PAIRS}"
    )


def _bought(night: Night, first: int, now: datetime) -> str:
    """Return in words what the budget buys after the first round.

    Args:
        night: The night, with its deadline.
        first: The number of applications of the first round.
        now: The time (UTC).
    """
    runs = [run for query in night.queries for run in first_runs(night, query)]
    earlier = earlier_spans(night, [run.label for run in runs])
    if earlier is None or night.deadline is None:
        return "as far as there is time"
    spans = [earlier[run.label] for run in runs]
    usual = mean(span.end - span.start for span in spans) + GAP_S
    pairs = int(((night.deadline - now).total_seconds() / usual - first) // len(ARMS))
    if pairs < 1:
        return f"but there is no time for it: an application took {usual:.0f} s in the last night"
    return f"about {pairs} pairs ({usual:.0f} s an application, as in the last night)"


@dataclass(frozen=True)
class Affordable:
    """The arms of a round by query that there is time for; ``late`` says why others are not."""

    arms: Mapping[str, Sequence[str]]
    late: Sequence[str] = ()


def affordable(
    night: Night, going: Mapping[str, Sequence[str]], number: int, now: datetime
) -> Affordable:
    """Return which queries of a round there is time for.

    Args:
        night: The night; its applications so far tell how long one of a query lasts.
        going: The arms that go on by query, the most urgent query first, without the baseline.
        number: The round, from 2.
        now: The time (UTC).
    """
    if night.deadline is None:
        return Affordable(going)
    left = (night.deadline - now).total_seconds()
    pairs = rounds_from(night.workload.repetitions, night.gate)[number - 1]
    taken, late = dict[str, Sequence[str]](), list[str]()
    for query, arms in going.items():
        needed = pairs * (len(arms) + 1) * application_s(night, query)
        if needed > left:
            late.append(
                f"{query}: round {number} would take {needed / 60:.0f} minutes, and the budget "
                f"ends in {max(left, 0) / 60:.0f}: it stays as it is"
            )
            continue
        left -= needed
        taken[query] = arms
    return Affordable(taken, late)


def application_s(night: Night, query: str) -> float:
    """Return how long a timed application of a query lasted in this night, in seconds; mean."""
    spans = night.files.last_spans()
    ran = [spans[run.label] for run in first_runs(night, query) if run.label in spans]
    return mean(span.end - span.start for span in ran) + GAP_S if ran else GAP_S
