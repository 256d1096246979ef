"""Read the state of a running or killed query from the files of its checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import iglob
from http import HTTPStatus
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

from nexmark.errors import NexmarkError

_DIRECT = build_opener(ProxyHandler({}))
"""Opens URLs of this machine without the proxy that the environment may name."""
_CALL_S = 30
"""Seconds in which HDFS has to answer a call."""

Moment = Literal["start", "restore", "batch", "upload", "commit"]


class File(NamedTuple):
    """The size of a file in bytes, and when it was modified, in seconds since 1970."""

    size: int
    modified: float


@dataclass(frozen=True)
class HdfsDirectory:
    """A directory of HDFS, listed by WebHDFS.

    Attributes:
        name_node: the URL of the file system.
        web: the URL of WebHDFS.
        path: the path of the directory, which begins with a slash.
    """

    name_node: str
    web: str
    path: str = ""

    @property
    def url(self) -> str:
        """Return the URL of the directory, as Spark takes it."""
        return f"{self.name_node}{self.path}"

    def __truediv__(self, name: str) -> HdfsDirectory:
        """Return a directory below this one."""
        return HdfsDirectory(self.name_node, self.web, f"{self.path}/{name}")

    def files(self, below: str = "") -> Iterator[tuple[str, File]]:
        """Yield each file below the directory with its path in it.

        NexmarkError if HDFS does not answer. `below` is the path of a directory in this one, with
        a slash before it: only its files are returned, by their paths in this directory.
        """
        url = f"{self.web}/webhdfs/v1{quote(self.path + below)}?op=LISTSTATUS"
        try:
            with _DIRECT.open(url, timeout=_CALL_S) as answer:
                entries = json.load(answer)["FileStatuses"]["FileStatus"]
        except OSError as error:
            if isinstance(error, HTTPError) and error.code == HTTPStatus.NOT_FOUND:
                return
            raise NexmarkError(f"--checkpoint hdfs: HDFS does not answer: {error}") from None
        for each in entries:
            name = f"{below}/{each['pathSuffix']}"
            if each["type"] == "DIRECTORY":
                yield from self.files(name)
            else:
                yield name[1:], File(each["length"], each["modificationTime"] / 1000)


CheckpointDirectory = Path | HdfsDirectory
"""The directory of a checkpoint, or a directory below it."""


def files(directory: CheckpointDirectory) -> dict[str, File]:
    """Return the files below a directory by their path in it; none if there is no such directory.

    Files and directories may come and go while this function reads: ``os.walk`` passes over a
    directory that vanishes, where ``Path.glob`` would fail.
    """
    if not isinstance(directory, Path):
        return dict(directory.files())
    paths = (Path(parent, name) for parent, _, names in os.walk(directory) for name in names)
    by_path = {str(path.relative_to(directory)): _file(path) for path in paths}
    return {name: file for name, file in by_path.items() if file}


def is_committed(checkpoint: CheckpointDirectory, batch: int) -> bool:
    """Tell whether a batch was committed.

    Callers ask many times a second, so on a local disk this looks at one file only.
    """
    directory = checkpoint / "commits"
    if isinstance(directory, Path):
        return (directory / str(batch)).exists()
    return str(batch) in files(directory)


def commits(checkpoint: CheckpointDirectory) -> dict[int, float]:
    """Return when each batch was committed, in seconds since 1970, by the number of the batch."""
    return _times(checkpoint / "commits")


def planned(checkpoint: CheckpointDirectory) -> dict[int, float]:
    """Return when the offsets of each batch were written, in seconds since 1970, by its number."""
    return _times(checkpoint / "offsets")


def moment(
    checkpoint: CheckpointDirectory,
    committed_at_start: int,
    scratch: Path | None = None,
    since: float = 0.0,
) -> tuple[Moment, int]:
    """Return what the query was doing when it was killed, and in which batch.

    Args:
        checkpoint: The checkpoint of the query.
        committed_at_start: The newest batch that was committed when the process was started.
        scratch: The local directory with the stores of the process; None if there is none.
        since: When the process was started, in seconds since 1970.

    Returns:
        One of these words, and the number of the batch:
        start: the process had not planned a batch yet.
        restore: the process was loading state to `scratch`.
        upload: the process was writing the batch's state to the checkpoint.
        commit: a state store had written its version of the batch, the batch was not committed.
        batch: the process was doing anything else.
    """
    committed = max(commits(checkpoint), default=-1)
    newest = max(planned(checkpoint), default=-1)
    if scratch is not None and committed >= 0 and is_restoring(scratch, since):
        return "restore", max(newest, committed)
    if newest <= committed:
        return ("start" if committed == committed_at_start else "batch"), committed + 1
    if is_uploading(checkpoint, newest):
        return "upload", newest
    written = (name.rpartition("/")[2] for name in files(checkpoint / "state"))
    version = f"{newest + 1}."
    return ("commit" if any(name.startswith(version) for name in written) else "batch"), newest


def is_uploading(checkpoint: CheckpointDirectory, batch: int) -> bool:
    """Tell whether the query is writing the state of a batch to the checkpoint.

    It is, if a file of the batch's version has a temporary name and content. It is also, if a store
    has an SST that is newer than the plan of the batch, and no snapshot of this version yet.
    """
    state, version = files(checkpoint / "state"), batch + 1
    for name, file in state.items():
        last = name.rpartition("/")[2]
        if last.startswith(f".{version}.") and last.endswith(".tmp") and file.size:
            return True
    begun = planned(checkpoint).get(batch)
    return begun is not None and any(
        name.endswith(".sst")
        and f"{name.rpartition('/SSTs/')[0]}/{version}.zip" not in state
        and file.modified > begun
        for name, file in state.items()
    )


def is_restoring(scratch: Path, since: float) -> bool:
    """Tell whether a RocksDB store below `scratch` is still loading its state.

    Only stores that were made after `since`, in seconds since 1970, are looked at.
    """
    for store in local_stores(scratch):
        directory = _file(store)
        is_new = directory is not None and directory.modified > since
        if is_new and not any(_matching(store, "workingDir*/LOCK")):
            return True
    return False


def local_stores(scratch: Path) -> Iterator[Path]:
    """Return the directories of RocksDB stores below Spark's directory for temporary files."""
    return _matching(scratch, "**/StateStoreId*")


def size(directory: CheckpointDirectory) -> int:
    """Return the size of all files below a directory together, in bytes."""
    return sum(file.size for file in files(directory).values())


def gaps(times: Mapping[int, float]) -> dict[int, float]:
    """Return the seconds from one commit to the next, by the number of the later batch."""
    return {batch: times[batch] - times[batch - 1] for batch in times if batch - 1 in times}


def _matching(directory: Path, pattern: str) -> Iterator[Path]:
    """Yield the paths below a directory that match a pattern; also hidden ones."""
    names = iglob(pattern, root_dir=directory, recursive=True, include_hidden=True)  # noqa: PTH207
    return map(directory.joinpath, names)


def _times(directory: CheckpointDirectory) -> dict[int, float]:
    """Return when each file that has the number of a batch as its name was modified."""
    batches = files(directory).items()
    return {int(name): file.modified for name, file in batches if name.isdecimal()}


def _file(path: Path) -> File | None:
    """Return the size and the time of a file; None if it is gone."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return File(stat.st_size, stat.st_mtime)
