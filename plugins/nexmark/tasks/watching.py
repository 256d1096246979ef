"""How far a night is while an application runs: in the task's log, and where a person waits.

    [ 3/23] q5   repetition 2 of 5 (baseline): 40 %, 187,000 events/s, 0:32 left; night about 41:10

The driver prints a line at most every few seconds (`nexmark_jobs.narrator`); here it gets the place
of the application in the night before it goes into the log.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from nexmark.config import CANDIDATE
from nexmark.tasks.night import Night
from nexmark.tasks.progress import say_for_now
from nexmark.tasks.runs import CONFIRMATION, first_runs, runs_of
from nexmark_jobs import narrator

_RUN = re.compile(r"(?P<stage>fresh-|recorded-)?(?:(?P<arm>[a-z]+)-)?rep-(?P<number>\d+)")
#: Before so much of the first repetition is done, nobody can say how long the night will take.
_TOO_SOON = 0.05


class Watch:
    """Reads the output of the application `label` of a night, and tells how far it is."""

    def __init__(self, night: Night, label: str, clock: Callable[[], float] = time.time) -> None:
        """`label` is a query and the name of its run, as `q5 baseline-rep-2`."""
        self._night = night
        self._clock = clock
        self._query, _, self._run = label.partition(" ")
        known = self._query in night.queries
        self._name = f"{night.position(self._query)} {_words(night, self._run)}" if known else label
        self._plan = _planned(night)

    def lines(self, output: Iterable[str]) -> Iterator[str]:
        """The lines of the output; those that tell of progress say where in the night it is."""
        for line in output:
            told = narrator.read(line)
            if told is None:
                yield line
                continue
            text = self.text(told)
            say_for_now(text)
            yield text

    def text(self, told: narrator.Told) -> str:
        """What is told of a moment, in one line."""
        left = self._night_left(told.share)
        return (
            f"{self._name}: {100 * told.share:.0f} %, {told.speed:,} events/s, "
            f"{duration(told.left_s)} left"
            + ("" if left is None else f"; night about {duration(left)}")
        )

    def _night_left(self, share: float) -> float | None:
        """Seconds until all repetitions are done, at the speed of those so far.

        Before the confirmation nobody knows what will be measured again: it is not in it.
        """
        ran = _applications(self._night)
        if not ran:
            return None
        ended = {each["label"] for each in ran if _RUN.search(each["label"])}
        now = share if _RUN.fullmatch(self._run) else 0.0
        done = len(ended - {f"{self._query} {self._run}"}) + now
        if done < _TOO_SOON:
            return None
        elapsed = self._clock() - min(float(each["start"]) for each in ran)
        return max(0.0, self._plan - done) * elapsed / done


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
    arm = found["arm"] or CANDIDATE
    stage = (found["stage"] or "").replace("-", " ")
    whose = f" ({arm})" if arm != CANDIDATE or night.against else ""
    return f"{stage}repetition {found['number']}{of}{whose}"


def _planned(night: Night) -> int:
    first = sum(len(first_runs(night, query)) for query in night.queries)
    return first + len(runs_of(night, CONFIRMATION))


def _applications(night: Night) -> list[dict[str, Any]]:
    """The applications of the queries that have ended, as `operators.note_application` has them."""
    try:
        text = (night.directory / "applications.jsonl").read_text(encoding="utf-8")
    except OSError:
        return []
    return [x for x in map(json.loads, text.splitlines()) if " " in x["label"]]


__all__ = ["Watch", "duration"]
