"""The files that tasks of a night leave for each other in its run directory.

The sequence of submissions that mapped tasks run, when each application ran, why one failed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_FAILURE = "failure.txt"
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
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(claims))
    temporary.replace(file)
    submission: dict[str, Any] = json.loads(path.read_text())[position]
    return submission


def _claims(path: Path) -> Path:
    return path.with_name(f"{path.stem}-claims.json")


def note_application(night: Path, label: str, start: float, end: float) -> None:
    """Note in the run directory when an application ran; times in epoch seconds."""
    with (night / _APPLICATIONS).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"label": label, "start": start, "end": end}) + "\n")


def overhead(night: Path) -> tuple[float, int]:
    """Seconds without an application from the first one's start to the last one's end.

    And how many of them were timed repetitions.
    """
    ran = _applications(night)
    span = max(each["end"] for each in ran) - min(each["start"] for each in ran)
    timed = sum("rep-" in each["label"] for each in ran)
    return float(span - sum(each["end"] - each["start"] for each in ran)), timed


def last_starts(night: Path) -> dict[str, float]:
    """When each application of a night was last started, by its label; in epoch seconds."""
    try:
        ran = _applications(night)
    except FileNotFoundError:
        return {}
    return {each["label"]: float(each["start"]) for each in ran}


def _applications(night: Path) -> list[dict[str, Any]]:
    lines = (night / _APPLICATIONS).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def write_failure(directory: Path, reason: str) -> None:
    """Write into `directory` why its application failed, because there is no result."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _FAILURE).write_text(reason)


def clear_failure(directory: Path) -> None:
    """Forget a failure of an earlier try."""
    (directory / _FAILURE).unlink(missing_ok=True)


def has_failure(directory: Path) -> bool:
    """Whether `write_failure` wrote into `directory`."""
    return (directory / _FAILURE).exists()


def read_failure(directory: Path) -> str:
    """Why the application of `directory` failed, in one line."""
    try:
        return (directory / _FAILURE).read_text()
    except FileNotFoundError:
        return "it was not started, or was killed"


def prepare(directories: Sequence[Path]) -> None:
    """Replace `directories` by empty ones; the application fills them."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
