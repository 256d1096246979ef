"""The files of a checkpoint: what they tell of a running or killed query, and how they get damaged.

`DAMAGES` are ways in which disks, object stores and half-done copies damage them.
"""

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import iglob
from http import HTTPStatus
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

from nexmark.errors import NexmarkError

_HERE = build_opener(ProxyHandler({}))
"""Asks this machine, whatever proxy the environment names."""
_CALL_S = 30
_ENDINGS = (".delta", ".changelog", ".zip")

Moment = Literal["start", "restore", "batch", "upload", "commit"]


class File(NamedTuple):
    """A file: its bytes, and when it was modified, in seconds since 1970."""

    size: int
    modified: float


@dataclass(frozen=True)
class HdfsDirectory:
    """A directory of HDFS: its URL, the URL of WebHDFS, and a path that begins with a slash."""

    name_node: str
    web: str
    path: str = ""

    @property
    def url(self) -> str:
        """The directory as Spark is to name it."""
        return f"{self.name_node}{self.path}"

    def __truediv__(self, name: str) -> "HdfsDirectory":
        """Return a directory below."""
        return HdfsDirectory(self.name_node, self.web, f"{self.path}/{name}")

    def files(self, below: str = "") -> Iterator[tuple[str, File]]:
        """Each file with its path in the directory; NexmarkError if HDFS does not answer."""
        url = f"{self.web}/webhdfs/v1{quote(self.path + below)}?op=LISTSTATUS"
        try:
            with _HERE.open(url, timeout=_CALL_S) as answer:
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


Place = Path | HdfsDirectory
"""Where a checkpoint is."""


def files(place: Place) -> dict[str, File]:
    """The files below a directory, by their path in it; none if there is no such directory.

    Files and directories may come and go meanwhile. ``os.walk`` passes over a directory that
    vanishes; ``Path.glob`` would fail.
    """
    if not isinstance(place, Path):
        return dict(place.files())
    paths = (Path(at, name) for at, _, names in os.walk(place) for name in names)
    found = {str(path.relative_to(place)): _file(path) for path in paths}
    return {name: file for name, file in found.items() if file}


def is_committed(checkpoint: Place, batch: int) -> bool:
    """Whether a batch was committed: asked all the time, so it looks at one file where it can."""
    directory = checkpoint / "commits"
    if isinstance(directory, Path):
        return (directory / str(batch)).exists()
    return str(batch) in files(directory)


def commits(checkpoint: Place) -> dict[int, float]:
    """When each batch was committed, in seconds since 1970, by its number."""
    return _times(checkpoint / "commits")


def planned(checkpoint: Place) -> dict[int, float]:
    """When each batch was planned."""
    return _times(checkpoint / "offsets")


def moment(
    checkpoint: Place, committed_at_start: int, scratch: Path | None = None, since: float = 0.0
) -> tuple[Moment, int]:
    """The work of a query at the moment of the kill, and its batch.

    start: it had not yet planned a batch since it was started; restore: it loaded state to its
    local disk, `scratch`, since `since`; upload: files of the batch's state were on their way;
    commit: a state store had its version of the batch; batch: all else.
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


def is_uploading(checkpoint: Place, batch: int) -> bool:
    """Whether files of the state of a batch are on their way.

    A file of this version has a temporary name and content, or an SST is newer than the batch in a
    store that has no snapshot of this version yet.
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
    """Whether a RocksDB store made since `since` is not open yet: its state is being loaded."""
    for store in local_stores(scratch):
        made = _file(store)
        if made and made.modified > since and not any(_found(store, "workingDir*/LOCK")):
            return True
    return False


def local_stores(scratch: Path) -> Iterator[Path]:
    """The local directories of RocksDB stores below Spark's directory for temporary files."""
    return _found(scratch, "**/StateStoreId*")


def size(place: Place) -> int:
    """Bytes of all files below a directory."""
    return sum(file.size for file in files(place).values())


def gaps(times: Mapping[int, float]) -> dict[int, float]:
    """Seconds from the commit before to the commit of each batch but the first."""
    return {batch: times[batch] - times[batch - 1] for batch in times if batch - 1 in times}


def _found(directory: Path, pattern: str) -> Iterator[Path]:
    names = iglob(pattern, root_dir=directory, recursive=True, include_hidden=True)  # noqa: PTH207
    return map(directory.joinpath, names)


def _times(place: Place) -> dict[int, float]:
    return {int(name): file.modified for name, file in files(place).items() if name.isdecimal()}


def _file(path: Path) -> File | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return File(found.st_size, found.st_mtime)


def damage(kind: str, checkpoint: Path) -> bool:
    """Do one kind of `DAMAGES` to a checkpoint; False if its state store has no such files.

    Checksum files beside the data stay as they are. NexmarkError: no batch with state is committed.
    """
    find, change = DAMAGES[kind]
    found = find(checkpoint)
    for path in found:
        change(path)
    return bool(found)


def _last(checkpoint: Path) -> int:
    committed = commits(checkpoint)
    if not committed:
        raise NexmarkError(f"{checkpoint}: no batch is committed; run the query for longer")
    return max(committed)


def _entry(log: str) -> Callable[[Path], list[Path]]:
    """The file of the last batch in a log of a checkpoint."""
    return lambda checkpoint: [checkpoint / log / str(_last(checkpoint))]


def _version(checkpoint: Path, version: int) -> list[Path]:
    """The files that the state stores have for a version, the biggest first."""
    found = (checkpoint / "state").glob(f"*/*/**/{version}.*")
    return _by_size(path for path in found if path.suffix in _ENDINGS)


def _by_size(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_size, reverse=True)


def _all_states(checkpoint: Path) -> list[Path]:
    """Of all stores: where only one is damaged, its rows may not matter any more."""
    found = _version(checkpoint, _last(checkpoint) + 1)
    if not found:
        raise NexmarkError(f"{checkpoint}: the last batch has no state; take a query with some")
    return found


def _state(checkpoint: Path) -> list[Path]:
    return _all_states(checkpoint)[:1]


def _older_state(checkpoint: Path) -> list[Path]:
    """A file that the newest state builds on; a snapshot builds on no other."""
    (newest,) = _state(checkpoint)
    return [] if newest.suffix == ".zip" else _version(checkpoint, _last(checkpoint))[:1]


def _sst(checkpoint: Path) -> list[Path]:
    """The biggest SST that the newest snapshot of a store refers to."""
    (snapshot,) = _state(checkpoint)
    if snapshot.suffix != ".zip":
        return []
    with zipfile.ZipFile(snapshot) as archive:
        told = archive.read("metadata").decode().split("\n", 1)[1]
    names = [entry["dfsSstFileName"] for entry in json.loads(told)["sstFiles"]]
    return _by_size(snapshot.parent / "SSTs" / name for name in names)[:1]


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def _stale(path: Path) -> None:
    """The content of the batch before, as a replica has it that missed the last write."""
    number, dot, ending = path.name.partition(".")
    shutil.copyfile(path.with_name(f"{int(number) - 1}{dot}{ending}"), path)


#: Each kind of damage, of the last committed batch unless it says otherwise: files, and the change.
DAMAGES: dict[str, tuple[Callable[[Path], list[Path]], Callable[[Path], object]]] = {
    "offsets truncated": (_entry("offsets"), _truncate),
    "offsets missing": (_entry("offsets"), Path.unlink),
    "offsets of the batch before": (_entry("offsets"), _stale),
    "commit half-written": (_entry("commits"), _truncate),
    "commit empty": (_entry("commits"), _empty),
    "commit missing": (_entry("commits"), Path.unlink),
    "metadata missing": (lambda checkpoint: [checkpoint / "metadata"], Path.unlink),
    "operator metadata missing": (
        lambda checkpoint: list((checkpoint / "state").glob("*/_metadata")),
        shutil.rmtree,
    ),
    "state file missing": (_state, Path.unlink),
    "state file before it missing": (_older_state, Path.unlink),
    "state file truncated": (_state, _truncate),
    "state files of the batch before": (_all_states, _stale),
    "state file empty": (_state, _empty),
    "state file zeros": (_state, lambda path: path.write_bytes(bytes(path.stat().st_size))),
    "state file byte flipped": (_state, _flip),
    "SST missing": (_sst, Path.unlink),
    "SST byte flipped": (_sst, _flip),
}
