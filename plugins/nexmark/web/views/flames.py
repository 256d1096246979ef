"""The flame graphs of a suspect: by ``nexmark.flames``."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def flames_of(directory: Path, query: str) -> Any | None:
    """Return the flame graphs in the directory of a night; None where there are none."""
    return None


__all__ = ["flames_of"]
