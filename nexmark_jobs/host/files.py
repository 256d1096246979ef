"""Make, write, read and remove files on a host.

Request, every key optional, done in this order:
    remove: paths that are removed with all below them, if they are there
    make: directories
    write: path -> text, readable only for the owner
    tail: path -> number of its last lines that are not empty
    find: pattern of absolute paths (`*` in a name)
Answer: tail: path -> these lines (none if there is no such file); found: path -> bytes.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Carry the request out; OSError if that fails."""
    for path in map(Path, request.get("remove", [])):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for path in map(Path, request.get("make", [])):
        path.mkdir(parents=True, exist_ok=True)
    for name, text in request.get("write", {}).items():
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    pattern = request.get("find", "").lstrip("/")
    matching = Path("/").glob(pattern) if pattern else ()
    tails = {name: tail(Path(name), n) for name, n in request.get("tail", {}).items()}
    return {"tail": tails, "found": {str(path): path.stat().st_size for path in sorted(matching)}}


def tail(path: Path, count: int) -> list[str]:
    """Return the last lines of a file that are not empty; none if there is no such file."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip()][-count:]
