"""The results database: every night, repetition and verdict, and what was accepted."""

from nexmark.store.records import (
    CANDIDATE,
    Accepted,
    BuildRecord,
    NightRecord,
    RepetitionRecord,
    SeriesRecord,
    ValidationRecord,
)
from nexmark.store.schema import StoreError
from nexmark.store.store import Store, open_store

__all__ = [
    "CANDIDATE",
    "Accepted",
    "BuildRecord",
    "NightRecord",
    "RepetitionRecord",
    "SeriesRecord",
    "Store",
    "StoreError",
    "ValidationRecord",
    "open_store",
]
