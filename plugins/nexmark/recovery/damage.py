"""Damages a checkpoint, in ways in which disks, object stores and half-done copies do."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from nexmark.errors import NexmarkError
from nexmark.recovery.checkpoint_files import commits

_ENDINGS = (".delta", ".changelog", ".zip")


class DamageError(NexmarkError):
    """There is nothing to damage in this checkpoint."""


def damage(kind: str, checkpoint: Path) -> bool:
    """Do one kind of `DAMAGES` to a checkpoint; False if its state store has no such files.

    Checksum files beside the data stay as they are.

    Raises:
        DamageError: The checkpoint has no committed batch with state.
    """
    return DAMAGES[kind](checkpoint)


def _last(checkpoint: Path) -> int:
    committed = commits(checkpoint)
    if not committed:
        raise DamageError(f"{checkpoint}: no batch is committed; run the query for longer")
    return max(committed)


def _state_files(checkpoint: Path, version: int) -> list[Path]:
    found = (checkpoint / "state").glob(f"*/*/**/{version}.*")
    return [path for path in found if path.suffix in _ENDINGS]


def _state_file(checkpoint: Path, version: int) -> Path | None:
    """The biggest file that the state stores have for a version."""
    found = _state_files(checkpoint, version)
    return max(found, key=lambda path: path.stat().st_size, default=None)


def _newest_state(checkpoint: Path) -> Path:
    newest = _state_file(checkpoint, _last(checkpoint) + 1)
    if newest is None:
        raise DamageError(f"{checkpoint}: the last batch has no state; take a query that keeps any")
    return newest


def _sst(checkpoint: Path) -> Path | None:
    """The biggest SST that the newest snapshot of a store refers to."""
    snapshot = _newest_state(checkpoint)
    if snapshot.suffix != ".zip":
        return None
    with zipfile.ZipFile(snapshot) as archive:
        told = archive.read("metadata").decode().split("\n", 1)[1]
    names = [entry["dfsSstFileName"] for entry in json.loads(told)["sstFiles"]]
    files = [snapshot.parent / "SSTs" / name for name in names]
    return max(files, key=lambda path: path.stat().st_size, default=None)


def _truncate(path: Path) -> bool:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return True


def _empty(path: Path) -> bool:
    path.write_bytes(b"")
    return True


def _zero(path: Path) -> bool:
    path.write_bytes(bytes(path.stat().st_size))
    return True


def _flip(path: Path) -> bool:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    return True


def _remove(path: Path) -> bool:
    path.unlink()
    return True


def _stale(path: Path) -> bool:
    """The content of the batch before, as a replica has it that missed the last write."""
    number, dot, ending = path.name.partition(".")
    shutil.copyfile(path.with_name(f"{int(number) - 1}{dot}{ending}"), path)
    return True


def _log(name: str, do: Callable[[Path], bool]) -> Callable[[Path], bool]:
    return lambda checkpoint: do(checkpoint / name / str(_last(checkpoint)))


def _state(do: Callable[[Path], bool]) -> Callable[[Path], bool]:
    return lambda checkpoint: do(_newest_state(checkpoint))


def _older_state(checkpoint: Path) -> bool:
    """Remove a file that the newest state builds on; a snapshot builds on no other."""
    if _newest_state(checkpoint).suffix == ".zip":
        return False
    older = _state_file(checkpoint, _last(checkpoint))
    return older is not None and _remove(older)


def _stale_state(checkpoint: Path) -> bool:
    """All stores go back by a batch: where only one does, its rows may not matter any more."""
    return all(_stale(path) for path in _state_files(checkpoint, _last(checkpoint) + 1))


def _of_sst(do: Callable[[Path], bool]) -> Callable[[Path], bool]:
    def changed(checkpoint: Path) -> bool:
        path = _sst(checkpoint)
        return path is not None and do(path)

    return changed


def _no_operator_metadata(checkpoint: Path) -> bool:
    found = list((checkpoint / "state").glob("*/_metadata"))
    for directory in found:
        shutil.rmtree(directory)
    return bool(found)


#: Each kind of damage, of the last committed batch unless it says otherwise.
DAMAGES: dict[str, Callable[[Path], bool]] = {
    "offsets truncated": _log("offsets", _truncate),
    "offsets missing": _log("offsets", _remove),
    "offsets of the batch before": _log("offsets", _stale),
    "commit half-written": _log("commits", _truncate),
    "commit empty": _log("commits", _empty),
    "commit missing": _log("commits", _remove),
    "metadata missing": lambda checkpoint: _remove(checkpoint / "metadata"),
    "operator metadata missing": _no_operator_metadata,
    "state file missing": _state(_remove),
    "state file before it missing": _older_state,
    "state file truncated": _state(_truncate),
    "state files of the batch before": _stale_state,
    "state file empty": _state(_empty),
    "state file zeros": _state(_zero),
    "state file byte flipped": _state(_flip),
    "SST missing": _of_sst(_remove),
    "SST byte flipped": _of_sst(_flip),
}
