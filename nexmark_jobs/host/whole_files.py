"""Write a file in one step: a reader sees the old text or the new one, never a part of one."""

from __future__ import annotations

import os
from pathlib import Path

#: Modes of a new file, less the umask: its owner may read it, or whoever the umask lets.
PRIVATE, READABLE = 0o600, 0o666


def write_whole(path: Path, text: str, mode: int = PRIVATE) -> None:
    """Write `path` in one step; after an OSError the old file is there, and no temporary one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
