"""What the files of a checkpoint on this machine tell of a query that runs or was killed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

Moment = Literal["start", "batch", "commit"]


def commits(checkpoint: Path) -> dict[int, float]:
    """When each batch was committed, in seconds since 1970, by its number."""
    return _times(checkpoint / "commits")


def moment(checkpoint: Path, committed_at_start: int) -> tuple[Moment, int]:
    """What a query that was just killed did, and in which batch.

    start: it had not yet planned a batch since it was started; commit: its state stores were
    writing the version of the batch; batch: all else.
    """
    committed = max(commits(checkpoint), default=-1)
    planned = max(_times(checkpoint / "offsets"), default=-1)
    if planned <= committed:
        return ("start" if committed == committed_at_start else "batch"), committed + 1
    version = planned + 1
    written = (checkpoint / "state").glob(f"*/*/**/{version}.*")
    return ("commit" if any(written) else "batch"), planned


def size(directory: Path) -> int:
    """Bytes of all files below a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def gaps(times: Mapping[int, float]) -> dict[int, float]:
    """Seconds from the commit before to the commit of each batch but the first."""
    return {batch: times[batch] - times[batch - 1] for batch in times if batch - 1 in times}


def _times(directory: Path) -> dict[int, float]:
    if not directory.is_dir():
        return {}
    found = {}
    for path in directory.iterdir():
        if path.name.isdecimal():
            found[int(path.name)] = path.stat().st_mtime
    return found
