"""Which operators a change of CPU time comes from: by ``nexmark.report.attribution``."""

from __future__ import annotations

from typing import Any

from nexmark.store import Store


def operators_of(store: Store, run: str, query: str) -> Any | None:
    """Return the attribution of a query of a night; None where there is none."""
    return None


__all__ = ["operators_of"]
