"""The identity of a build: a hash over every file, and a manifest to check it quickly."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_ID_DIGITS = 16
_FORMAT = 1


@dataclass(frozen=True)
class FileRecord:
    """One file: size in bytes, modification time in ns, SHA-256 of the content."""

    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Every file of a build by its path relative to SPARK_HOME."""

    files: Mapping[str, FileRecord]

    @property
    def id(self) -> str:
        """Hash of sorted (path, SHA-256) pairs, 16 hexadecimal digits."""
        digest = hashlib.sha256()
        for path, record in sorted(self.files.items()):
            digest.update(f"{path}\0{record.sha256}\n".encode())
        return digest.hexdigest()[:_ID_DIGITS]

    def changed(self, root: Path, *, full: bool = False) -> list[str]:
        """The paths that are missing, new or different below `root`.

        Different means size or modification time; with `full`, the content.
        """
        now = dict(_walk(root))
        different = sorted(set(now) ^ set(self.files))
        for path, stat in now.items():
            record = self.files.get(path)
            if record is None:
                continue
            if full:
                same = record.sha256 == _sha256(root / path)
            else:
                same = (record.size, record.mtime_ns) == (stat.st_size, stat.st_mtime_ns)
            if not same:
                different.append(path)
        return different

    def write(self, path: Path) -> None:
        """Write as JSON, to a temporary name first."""
        temporary = path.with_name(path.name + ".tmp")
        files = {name: [r.size, r.mtime_ns, r.sha256] for name, r in self.files.items()}
        temporary.write_text(json.dumps({"format": _FORMAT, "id": self.id, "files": files}))
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> Manifest | None:
        """The manifest in `path`; None if there is none that can be used."""
        try:
            content = json.loads(path.read_text())
            if content["format"] != _FORMAT:
                return None
            return cls({name: FileRecord(*record) for name, record in content["files"].items()})
        except (OSError, ValueError, KeyError, TypeError):
            return None


def scan(root: Path) -> Manifest:
    """Read every file below `root` (compiled Python files apart, which come and go)."""
    return Manifest(
        {
            path: FileRecord(stat.st_size, stat.st_mtime_ns, _sha256(root / path))
            for path, stat in _walk(root)
        }
    )


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = [name for name in subdirectories if name != "__pycache__"]
        for name in names:
            path = Path(directory, name)
            if path.is_file():
                yield path.relative_to(root).as_posix(), path.stat()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


__all__ = ["FileRecord", "Manifest", "scan"]
