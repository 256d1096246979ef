"""The timed applications of a night, and the files that its tasks leave for each other.

A night of pairs has two arms. Two of its queries have one more each, by which the gate is tested:

    control   the baseline once more: the gate must find no difference between the two
    slowed    the baseline with a slowdown of known size, which must be found

The run directory has the sequence of submissions that mapped tasks run, when each application ran,
and why one failed.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from nexmark.config import KNOWN_QUERIES, Gate
from nexmark.config.fields import Model
from nexmark.home import write_text
from nexmark.model import CONFIRMATION, Arm, Stage
from nexmark.night.plan import Night
from nexmark.reason import reason_of
from nexmark.verdict.order import arm_order, fresh_pairs, query_order

#: In the directory of an application that failed: why.
FAILURE = "failure.txt"
_APPLICATIONS = "applications.jsonl"


def in_sequence(path: Path, submissions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the values to map the operator over: it runs `submissions` one by one in this order.

    They are kept in `path`; beside it, which instance has run which.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(submissions))
    _claims(path).unlink(missing_ok=True)
    return [{"submission": {"sequence": str(path)}} for _ in submissions]


def claim(path: Path, instance: int) -> dict[str, Any]:
    """The submission that a mapped instance runs: its own if it is tried again, else the next."""
    file = _claims(path)
    claims: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    position = claims.setdefault(str(instance), len(claims))
    write_text(file, json.dumps(claims))
    return dict(json.loads(path.read_text())[position])


def _claims(path: Path) -> Path:
    return path.with_name(f"{path.stem}-claims.json")


def read_json(path: Path) -> dict[str, Any] | None:
    """What an application has left in a file of JSON; None if it has left none."""
    return dict(json.loads(path.read_text())) if path.exists() else None


def note_application(night: Path, label: str, start: float, end: float) -> None:
    """Note in the run directory when an application ran; times in epoch seconds."""
    with (night / _APPLICATIONS).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"label": label, "start": start, "end": end}) + "\n")


def overhead(night: Path) -> tuple[float, int] | None:
    """Seconds between the applications, and how many of these were timed; None if none ran."""
    if not (ran := read_json_lines(night / _APPLICATIONS)):
        return None
    span = max(each["end"] for each in ran) - min(each["start"] for each in ran)
    timed = sum("rep-" in each["label"] for each in ran)
    return float(span - sum(each["end"] - each["start"] for each in ran)), timed


def spans(night: Path) -> dict[str, tuple[float, float]]:
    """When each application was last started, and ended, by its label; in epoch seconds."""
    ran = read_json_lines(night / _APPLICATIONS)
    return {each["label"]: (float(each["start"]), float(each["end"])) for each in ran}


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """What was left in a file with a line of JSON each; nothing where there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def write_failure(directory: Path, why: str) -> None:
    """Write into `directory` why its application failed, because there is no result."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / FAILURE).write_text(why)


@contextmanager
def failure_kept(*directories: Path) -> Iterator[None]:
    """Write into `directories` why the context has failed, whatever the error, and raise it again.

    That a task was stopped, by a person or because its time was over, is a reason, too.
    """
    try:
        yield
    except BaseException as error:
        with suppress(OSError):  # the error itself says more
            for directory in directories:
                write_failure(directory, reason_of(error))
        raise


def read_failure(directory: Path, unknown: str = "it was not started, or was killed") -> str:
    """Why the application of `directory` failed, in one line; `unknown` where nothing says it."""
    try:
        return (directory / FAILURE).read_text()
    except FileNotFoundError:
        return unknown


def prepare(directories: Sequence[Path]) -> None:
    """Replace `directories` by empty ones; the application fills them."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)


_PREFIXES: dict[int, str] = {Stage.FIRST: "", Stage.FRESH: "fresh-", Stage.PROFILED: "recorded-"}


class Run(Model):
    """One timed application: repetition `number` (from 1) of an arm, in a stage of the gate."""

    query: str
    number: int
    arm: str = Arm.CANDIDATE
    stage: int = Stage.FIRST

    @property
    def name(self) -> str:
        """Its directory below the query's directory: `rep-1`, `baseline-rep-1`, `fresh-rep-1`."""
        arm = "" if self.arm == Arm.CANDIDATE else f"{self.arm}-"
        return f"{_PREFIXES[self.stage]}{arm}rep-{self.number}"

    @property
    def cluster_arm(self) -> str:
        """The arm on whose cluster, and of whose build, it runs."""
        return Arm.CANDIDATE if self.arm == Arm.CANDIDATE else Arm.BASELINE


_PLAN = TypeAdapter(list[Run])


def run_order(gate: Gate) -> list[str]:
    """All queries in the order they run."""
    names = list(KNOWN_QUERIES)
    return names if gate.order_seed is None else query_order(names, gate.order_seed)


def position(night: Night, query: str) -> str:
    """`[ 3/24] q2`, for messages."""
    place = [name for name in run_order(night.gate) if name in night.queries].index(query) + 1
    width = len(str(len(night.queries)))
    return f"[{place:>{width}}/{len(night.queries)}] {query:<4}"


def first_runs(night: Night, query: str) -> list[Run]:
    """The first repetitions of `query` in the order they run."""
    arms: list[str] = [Arm.CANDIDATE]
    if query in night.against:
        arms += [Arm.BASELINE, *(arm for arm, tested in night.self_test.items() if tested == query)]
    return _runs(night, query, arms, night.workload.repetitions, Stage.FIRST)


def fresh_runs(night: Night, query: str, arms: Sequence[str]) -> list[Run]:
    """The repetitions by which a suspicion about `query` is confirmed, in the order they run."""
    count = fresh_pairs(night.workload.repetitions, night.gate)
    return _runs(night, query, arms, count, Stage.FRESH)


def recorded_runs(night: Night, query: str) -> list[Run]:
    """One repetition of each arm with the flight recorder, for the flame graphs of `query`."""
    return _runs(night, query, [Arm.CANDIDATE, Arm.BASELINE], 1, Stage.PROFILED)


def group(run: Run) -> str:
    """Return the group that a repetition is sampled in: its query, or the confirmation."""
    return run.query if run.stage == Stage.FIRST else CONFIRMATION


def runs_of(night: Night, name: str) -> list[Run]:
    """The repetitions of a group, in the order they run."""
    if name != CONFIRMATION:
        return first_runs(night, name)
    path = _plan_path(night)
    return _PLAN.validate_json(path.read_bytes()) if path.exists() else []


def plan_confirmation(night: Night, runs: Sequence[Run]) -> None:
    """Decide what the confirmation runs."""
    path = _plan_path(night)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_PLAN.dump_json(list(runs), indent=1))


def _plan_path(night: Night) -> Path:
    return night.query_dir(CONFIRMATION) / "runs.json"


def _runs(night: Night, query: str, arms: Sequence[str], count: int, stage: int) -> list[Run]:
    """The arms take turns; which one is first each time, the seed of the night says."""
    return [
        Run(query=query, number=number, arm=arm, stage=stage)
        for number, arm in arm_order(count, arms, f"{night.seed} {query} {stage}")
    ]
