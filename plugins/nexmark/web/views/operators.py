"""Which operators a change of CPU time comes from."""

from __future__ import annotations

from dataclasses import dataclass

from nexmark.attribution import Attribution, PartChange, words
from nexmark.report.attribution import attribution_of
from nexmark.store import Store

SHOWN = 10
"""So many parts are seen at once; the others are folded away."""


@dataclass(frozen=True)
class Operators:
    """Why a query changed, in words and by the parts of its plan, what contributes most first."""

    attribution: Attribution
    words: str
    shown: tuple[PartChange, ...]
    folded: tuple[PartChange, ...]


def operators_of(store: Store, run: str, query: str) -> Operators | None:
    """Return the attribution of a query of a night; None where there is none."""
    found = attribution_of(store, run, query)
    if found is None:
        return None
    return Operators(found, words(found), found.parts[:SHOWN], found.parts[SHOWN:])


__all__ = ["Operators", "operators_of"]
