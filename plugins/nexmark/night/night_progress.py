"""Prints a night's progress for the person who waits, beside Airflow's own logs.

    [ 3/23] q5   repetition 2 of 5 (baseline): 40 %, 187,000 events/s, 0:32 left; night about 41:10

The driver prints a line every few seconds at most (`nexmark_jobs.progress_lines`). Before the line
goes into the log, it gets the place of the application in the night.
"""

import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from nexmark.home import remedied
from nexmark.model import FIRST_ROUND, PROFILED, Arm
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import first_runs, later_groups, order_of, position, runs_of
from nexmark.night.run_directory import VERIFY, ApplicationSpan, Run, RunDirectory
from nexmark.reason import reason_of
from nexmark.secrets import without_secrets
from nexmark.terminal import MOMENTARY
from nexmark.verdict.order import rounds_from
from nexmark_jobs.progress_lines import ReportedProgress, is_query_ended, read_progress

if TYPE_CHECKING:
    from airflow.sdk import Context

    from nexmark.night.submission import Submission


#: A file that `nexmark run` shows while the night runs; not set under a scheduler.
PROGRESS_VARIABLE = "NEXMARK_PROGRESS"

log = logging.getLogger(__name__)


def say(text: str) -> None:
    """Log `text` and, where a person waits, show it."""
    text = without_secrets(text)
    log.info("%s", text)
    _show(text)


def say_for_now(text: str) -> None:
    """Show `text`, which is one line, where a person waits, until there is something else."""
    _show(MOMENTARY + text)


def _show(text: str) -> None:
    target = os.environ.get(PROGRESS_VARIABLE)
    if target:
        with suppress(OSError), Path(target).open("a", encoding="utf-8") as file:
            file.write(text + "\n")  # with a full disk the progress is in the log only


def tell_failure(context: "Context") -> None:
    """Callback of every task: say that it has failed for good, and why."""
    _tell(context, "failed")


def tell_retry(context: "Context") -> None:
    """Callback of every task: say that it has failed and is tried again."""
    _tell(context, "failed, is tried again")


def _tell(context: "Context", what: str) -> None:
    instance, error = context["ti"], context.get("exception")
    index, why = instance.map_index, reason_of(error)
    place = f"[{index}]" if index is not None and index >= 0 else ""
    why = remedied(error, why) if isinstance(error, BaseException) else why
    say(f"{instance.task_id}{place}: {what}: {why}")


#: Seconds between two applications of a night that has had none yet.
_USUAL_GAP_S = 2.0
#: How many nights before this one are looked at.
_EARLIER_NIGHTS = 20
#: How many lines of an application's output are kept, of its first and of its last ones.
_KEPT_LINES = 1000


class Watch:
    """Reads the output of an application of a night, and tells how far it is."""

    def __init__(
        self, night: Night, submission: "Submission", clock: Callable[[], float] = time.time
    ) -> None:
        """Begin to watch; `clock` returns the time in epoch seconds."""
        self._night = night
        self._clock = clock
        self._label = self._name = submission.label
        if query := submission.query_name:
            run = submission.repetition
            words = VERIFY if run is None else _words(night, run)
            self._name = f"{position(night, query)} {words}"
        queries = order_of(night)
        runs = [run for query in queries for run in first_runs(night, query)]
        runs += [run for group in later_groups(night.gate) for run in runs_of(night, group)]
        self._plan = [run.label for run in runs]
        self._earlier = earlier_spans(night, self._plan)
        self._start = clock()
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)

    @property
    def output(self) -> str:
        """The first and the last lines of the output, as far as they are kept."""
        return "\n".join([*self._first, *self._last])

    def line(self, line: str) -> str:
        """Return a line of the output as it is shown; progress says where the night is."""
        (self._first if len(self._first) < _KEPT_LINES else self._last).append(line)
        progress = read_progress(line)
        if is_query_ended(line):
            say_for_now(f"{self._name}: {without_secrets(line.strip())}")
        if progress is None:
            return without_secrets(line)
        text = self.text(progress)
        say_for_now(text)
        return text

    def text(self, progress: ReportedProgress) -> str:
        """Return the progress at a moment, in one line."""
        left = self._night_left(progress)
        night = "" if left is None else f"; night about {duration(left)}"
        done = f"{100 * progress.share:.0f} %, {progress.speed:,} events/s"
        return f"{self._name}: {done}, {duration(progress.left_s)} left{night}"

    def _night_left(self, progress: ReportedProgress) -> float | None:
        """Return the seconds until all repetitions are done; None if this is not a repetition.

        An earlier night with the same repetitions tells how long the rest took, and this night how
        fast it is beside it. Without one, each repetition is expected to take as long as this one,
        with what has been between two of them so far. Later rounds are in it from when they
        are planned: before, nobody knows what will be measured on.
        """
        label = self._label
        if label not in self._plan:
            return None
        ran = self._night.files.last_spans()
        known = {other: ran[other] for other in self._plan if other in ran and other != label}
        took = [span.end - span.start for span in known.values()]
        if earlier := self._earlier:
            ends = sorted(earlier[other].end for other in self._plan)
            left = ends[-1] - ends[len(known)]  # its arms may have been in another order
            then = sum(earlier[other].end - earlier[other].start for other in known) or 1.0
            return progress.left_s + left * min(max((sum(took) or 1.0) / then, 0.5), 2.0)
        each = mean([*took, self._clock() - self._start + progress.left_s])
        ordered = pairwise(sorted(known.values(), key=lambda span: (span.start, span.end)))
        gaps = [max(0.0, after.start - before.end) for before, after in ordered] or [_USUAL_GAP_S]
        rest = len(self._plan) - self._plan.index(label) - 1
        return progress.left_s + rest * (each + mean(gaps))


def earlier_spans(night: Night, plan: Sequence[str]) -> dict[str, ApplicationSpan] | None:
    """Return the applications of the newest earlier night that ran all of a plan, by their labels.

    Only nights of the same DAG, workload and cluster count; None if there is none.
    """
    ours = json.loads(night.model_dump_json())
    for other in RunDirectory.planned(night.dag_id)[:_EARLIER_NIGHTS]:
        ran = {} if other == night.files else other.last_spans()
        if set(plan) <= ran.keys():
            theirs = json.loads(other.night.read_text())
            if all(theirs.get(key) == ours[key] for key in ("workload", "cluster")):
                return ran
    return None


def duration(seconds: float) -> str:
    """Return seconds as `0:32`, `41:10` or `1:05:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _words(night: Night, run: Run) -> str:
    """Return the run of a query in words: `repetition 2 of 5 (baseline)`."""
    planned = rounds_from(night.workload.repetitions, night.gate)
    of = f" of {planned[run.stage - 1]}" if run.stage != PROFILED else ""
    rounds = {FIRST_ROUND: "", PROFILED: "recorded "}
    stage = rounds.get(run.stage, f"round {run.stage}, ")
    whose = f" ({run.arm})" if run.arm != Arm.CANDIDATE or night.against else ""
    return f"{stage}repetition {run.number}{of}{whose}"
