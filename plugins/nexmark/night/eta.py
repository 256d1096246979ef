"""How far a night is while an application runs: in the task's log, and where a person waits.

    [ 3/23] q5   repetition 2 of 5 (baseline): 40 %, 187,000 events/s, 0:32 left; night about 41:10

The driver prints a line at most every few seconds (`nexmark_jobs.narrator`); here it gets the place
of the application in the night before it goes into the log.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from nexmark.model import Arm
from nexmark.night.night_progress import say_for_now
from nexmark.night.plan import Night
from nexmark.night.runs import CONFIRMATION, first_runs, position, run_order, runs_of
from nexmark.secrets import without_secrets
from nexmark_jobs import narrator

_RUN = re.compile(r"(?P<stage>fresh-|recorded-)?(?:(?P<arm>[a-z]+)-)?rep-(?P<number>\d+)")
#: Seconds between two applications of a night that has had none yet.
_USUAL_GAP_S = 5.0
#: How many nights before this one are looked at.
_EARLIER_NIGHTS = 20


class Watch:
    """Reads the output of the application `label` of a night, and tells how far it is."""

    def __init__(self, night: Night, label: str, clock: Callable[[], float] = time.time) -> None:
        """`label` is a query and the name of its run, as `q5 baseline-rep-2`."""
        self._night = night
        self._clock = clock
        self._query, _, self._run = label.partition(" ")
        known = self._query in night.queries
        self._name = (
            f"{position(night, self._query)} {_words(night, self._run)}" if known else label
        )
        self._plan = _planned(night)
        self._earlier = _earlier(night, self._plan)
        self._start = clock()

    def line(self, line: str) -> str:
        """A line of the output; one that tells of progress says where in the night it is."""
        told = narrator.read(line)
        if narrator.tells_of_query(line):
            say_for_now(f"{self._name}: {without_secrets(line.strip())}")
        if told is None:
            return without_secrets(line)
        text = self.text(told)
        say_for_now(text)
        return text

    def text(self, told: narrator.Told) -> str:
        """The progress at a moment, in one line."""
        left = self._night_left(told)
        return (
            f"{self._name}: {100 * told.share:.0f} %, {told.speed:,} events/s, "
            f"{duration(told.left_s)} left"
            + ("" if left is None else f"; night about {duration(left)}")
        )

    def _night_left(self, told: narrator.Told) -> float | None:
        """Seconds until all repetitions are done, None for another application than a repetition.

        An earlier night with the same repetitions tells how long the rest took, and this night how
        fast it is beside it. Without one, each repetition is expected to take as long as this one,
        with what has been between two of them so far. Before the confirmation nobody knows what
        will be measured again: it is not in it.
        """
        label = f"{self._query} {self._run}"
        if label not in self._plan:
            return None
        elapsed = self._clock() - self._start
        whole = elapsed + told.left_s
        before = _spans(self._night.directory)
        earlier = self._earlier
        rest = self._plan[self._plan.index(label) + 1 :]
        if earlier:
            left = earlier[self._plan[-1]][1] - earlier[label][1]
            known = [(x, before[x]) for x in self._plan if x in before and x != label]
            then = sum(earlier[x][1] - earlier[x][0] for x, _ in known) or 1.0
            now = sum(end - start for _, (start, end) in known) or 1.0
            return told.left_s + left * min(max(now / then, 0.5), 2.0)
        own = [end - start for x, (start, end) in before.items() if x in self._plan and x != label]
        each = mean([*own, whole])
        gaps = _gaps([before[x] for x in self._plan if x in before and x != label])
        return told.left_s + len(rest) * (each + (mean(gaps) if gaps else _USUAL_GAP_S))


def _spans(directory: Path) -> dict[str, tuple[float, float]]:
    """Start and end of each application that has ended, by its label; epoch seconds."""
    try:
        lines = (directory / "applications.jsonl").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    found = map(json.loads, lines)
    return {each["label"]: (float(each["start"]), float(each["end"])) for each in found}


def _gaps(spans: Sequence[tuple[float, float]]) -> list[float]:
    """Seconds between the end of each application and the start of the next."""
    ordered = sorted(spans)
    return [max(0.0, start - end) for (_, end), (start, _) in pairwise(ordered)]


def _earlier(night: Night, plan: Sequence[str]) -> dict[str, tuple[float, float]] | None:
    """The newest earlier night of the same workload and cluster that ran all of a plan."""
    others = sorted(
        night.directory.parent.glob("*/night.json"),
        key=lambda path: path.stat().st_mtime,
        reverse=True,
    )
    for path in others[:_EARLIER_NIGHTS]:
        if path.parent == night.directory:
            continue
        spans = _spans(path.parent)
        if set(plan) <= spans.keys() and _place(json.loads(path.read_text())) == _place(
            json.loads(night.model_dump_json())
        ):
            return spans
    return None


def _place(plan: Mapping[str, Any]) -> tuple[Any, Any]:
    return plan.get("workload"), plan.get("cluster")


def duration(seconds: float) -> str:
    """Seconds as `0:32`, `41:10` or `1:05:00`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _words(night: Night, run: str) -> str:
    """The run of a query in words: `repetition 2 of 5 (baseline)`."""
    found = _RUN.fullmatch(run)
    if found is None:
        return run
    of = "" if found["stage"] else f" of {night.workload.repetitions}"
    arm = found["arm"] or Arm.CANDIDATE
    stage = (found["stage"] or "").replace("-", " ")
    whose = f" ({arm})" if arm != Arm.CANDIDATE or night.against else ""
    return f"{stage}repetition {found['number']}{of}{whose}"


def _planned(night: Night) -> list[str]:
    """The labels of all repetitions, in the order they run."""
    queries = [query for query in run_order(night.gate) if query in night.queries]
    runs = [run for query in queries for run in first_runs(night, query)]
    return [f"{run.query} {run.name}" for run in (*runs, *runs_of(night, CONFIRMATION))]
