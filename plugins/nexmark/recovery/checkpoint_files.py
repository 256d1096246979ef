"""Reads the state of a running or killed query from the files of its checkpoint here.

Spark deletes directories meanwhile. ``Path.glob`` fails on one that vanishes while it looks into
it; ``glob`` and ``os.walk`` find nothing there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from glob import iglob
from pathlib import Path
from typing import Literal

Moment = Literal["start", "restore", "batch", "upload", "commit"]


def commits(checkpoint: Path) -> dict[int, float]:
    """When each batch was committed, in seconds since 1970, by its number."""
    return _times(checkpoint / "commits")


def moment(
    checkpoint: Path, committed_at_start: int, scratch: Path | None = None, since: float = 0.0
) -> tuple[Moment, int]:
    """The work of a query at the moment of the kill, and its batch.

    start: it had not yet planned a batch since it was started; restore: it loaded state to its
    local disk, `scratch`, since `since`; upload: files of the batch's state were on their way;
    commit: a state store had its version of the batch; batch: all else.
    """
    committed = max(commits(checkpoint), default=-1)
    planned = max(_times(checkpoint / "offsets"), default=-1)
    if scratch is not None and committed >= 0 and is_restoring(scratch, since):
        return "restore", max(planned, committed)
    if planned <= committed:
        return ("start" if committed == committed_at_start else "batch"), committed + 1
    if is_uploading(checkpoint, planned):
        return "upload", planned
    version = planned + 1
    written = _found(checkpoint / "state", f"*/*/**/{version}.*")
    return ("commit" if any(written) else "batch"), planned


def is_uploading(checkpoint: Path, batch: int) -> bool:
    """Whether files of the state of a batch are on their way.

    A file of this version has a temporary name and content, or an SST is newer than the batch in a
    store that has no snapshot of this version yet.
    """
    state, version = checkpoint / "state", batch + 1
    if any(_bytes(path) for path in _found(state, f"*/*/**/.{version}.*.tmp")):
        return True
    begun = _times(checkpoint / "offsets").get(batch)
    return begun is not None and any(
        not (path.parent.parent / f"{version}.zip").exists()
        for path in _found(state, "*/*/**/SSTs/*.sst")
        if _modified(path) > begun
    )


def is_restoring(scratch: Path, since: float) -> bool:
    """Whether a RocksDB store made since `since` is not open yet: its state is being loaded."""
    return any(
        not any(_found(store, "workingDir*/LOCK"))
        for store in local_stores(scratch)
        if _modified(store) > since
    )


def local_stores(scratch: Path) -> Iterator[Path]:
    """The local directories of RocksDB stores below Spark's directory for temporary files."""
    return _found(scratch, "**/StateStoreId*")


def size(directory: Path) -> int:
    """Bytes of all files below a directory, where files may come and go."""
    return sum(_bytes(Path(at, name)) for at, _, names in os.walk(directory) for name in names)


def gaps(times: Mapping[int, float]) -> dict[int, float]:
    """Seconds from the commit before to the commit of each batch but the first."""
    return {batch: times[batch] - times[batch - 1] for batch in times if batch - 1 in times}


def _found(directory: Path, pattern: str) -> Iterator[Path]:
    names = iglob(pattern, root_dir=directory, recursive=True, include_hidden=True)  # noqa: PTH207
    return map(directory.joinpath, names)


def _times(directory: Path) -> dict[int, float]:
    if not directory.is_dir():
        return {}
    return {
        int(path.name): _modified(path) for path in directory.iterdir() if path.name.isdecimal()
    }


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
