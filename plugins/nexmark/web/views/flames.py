"""The flame graphs of a suspect."""

from __future__ import annotations

from pathlib import Path

from nexmark import flames
from nexmark.flames import Flames
from nexmark.store.models import Night


def flames_of(night: Night, query: str) -> Flames | None:
    """Return the flame graphs of a query of a night; None where nothing was recorded."""
    return flames.flames_of(Path(night.directory), query)


def flame_file(night: Night, query: str, name: str) -> Path | None:
    """Return one of the flame graphs (baseline, candidate, difference); None where it is not."""
    found = flames_of(night, query)
    path = found.files.get(name) if found else None
    return path if path is not None and path.suffix == ".svg" and path.is_file() else None


__all__ = ["flame_file", "flames_of"]
