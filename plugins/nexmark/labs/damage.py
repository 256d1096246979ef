"""Damage a checkpoint as disks, object stores and half-done copies do."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from nexmark.errors import NexmarkError
from nexmark.recovery.checkpoint_files import commits

_ENDINGS = (".delta", ".changelog", ".zip")


def damage(kind: str, checkpoint: Path) -> bool:
    """Do one kind of `DAMAGES` to a checkpoint; return False if it has no files of that kind.

    Checksum files beside the data stay as they are.

    Raises:
        NexmarkError: The checkpoint has no committed batch with state.
    """
    find, change = DAMAGES[kind]
    files = find(checkpoint)
    for path in files:
        change(path)
    return bool(files)


def _last(checkpoint: Path) -> int:
    """Return the number of the last committed batch."""
    committed = commits(checkpoint)
    if not committed:
        raise NexmarkError(f"{checkpoint}: no batch is committed; run the query for longer")
    return max(committed)


def _offsets(checkpoint: Path) -> list[Path]:
    return [checkpoint / "offsets" / str(_last(checkpoint))]


def _commit(checkpoint: Path) -> list[Path]:
    return [checkpoint / "commits" / str(_last(checkpoint))]


def _version(checkpoint: Path, version: int) -> list[Path]:
    """Return the files of a version of the state, of all state stores, the biggest first."""
    files = (checkpoint / "state").glob(f"*/*/**/{version}.*")
    return _by_size(path for path in files if path.suffix in _ENDINGS)


def _by_size(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_size, reverse=True)


def _all_states(checkpoint: Path) -> list[Path]:
    """Return the newest files of all stores.

    The damage hits every store, because the query may never need the rows of a single one again.
    """
    files = _version(checkpoint, _last(checkpoint) + 1)
    if not files:
        raise NexmarkError(f"{checkpoint}: the last batch has no state; take a query with some")
    return files


def _state(checkpoint: Path) -> list[Path]:
    return _all_states(checkpoint)[:1]


def _older_state(checkpoint: Path) -> list[Path]:
    """Return an older file that the newest state needs; none if the newest file is a snapshot."""
    (newest,) = _state(checkpoint)
    return [] if newest.suffix == ".zip" else _version(checkpoint, _last(checkpoint))[:1]


def _sst(checkpoint: Path) -> list[Path]:
    """Return the biggest SST that the newest snapshot of a store refers to."""
    (snapshot,) = _state(checkpoint)
    if snapshot.suffix != ".zip":
        return []
    with zipfile.ZipFile(snapshot) as archive:
        _, metadata = archive.read("metadata").decode().split("\n", 1)
    names = [entry["dfsSstFileName"] for entry in json.loads(metadata)["sstFiles"]]
    return _by_size(snapshot.parent / "SSTs" / name for name in names)[:1]


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def _stale(path: Path) -> None:
    """Give the file the content of the batch before, as on a replica that missed the last write."""
    number, dot, ending = path.name.partition(".")
    shutil.copyfile(path.with_name(f"{int(number) - 1}{dot}{ending}"), path)


#: Kinds of damage: which files, and what happens to them. They belong to the last committed batch,
#: unless the name says otherwise.
DAMAGES: dict[str, tuple[Callable[[Path], list[Path]], Callable[[Path], None]]] = {
    "offsets truncated": (_offsets, _truncate),
    "offsets missing": (_offsets, Path.unlink),
    "offsets of the batch before": (_offsets, _stale),
    "commit half-written": (_commit, _truncate),
    "commit empty": (_commit, _empty),
    "commit missing": (_commit, Path.unlink),
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
    "state file zeros": (_state, _zero),
    "state file byte flipped": (_state, _flip),
    "SST missing": (_sst, Path.unlink),
    "SST byte flipped": (_sst, _flip),
}
