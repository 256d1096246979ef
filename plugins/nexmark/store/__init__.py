"""The results database: every night, repetition and verdict, and what was accepted."""

from nexmark.store.errors import StoreError
from nexmark.store.records import (
    BASELINE,
    BOUNDS,
    CANDIDATE,
    CONTROL,
    FIRST,
    FRESH,
    HISTORY,
    PAIRED,
    SLOWED,
    Accepted,
    BuildRecord,
    CanaryRecord,
    NightRecord,
    RepetitionRecord,
    SelfTestRecord,
    SeriesRecord,
    ValidationRecord,
)
from nexmark.store.store import Store, open_store

__all__ = [
    "BASELINE",
    "BOUNDS",
    "CANDIDATE",
    "CONTROL",
    "FIRST",
    "FRESH",
    "HISTORY",
    "PAIRED",
    "SLOWED",
    "Accepted",
    "BuildRecord",
    "CanaryRecord",
    "NightRecord",
    "RepetitionRecord",
    "SelfTestRecord",
    "SeriesRecord",
    "Store",
    "StoreError",
    "ValidationRecord",
    "open_store",
]
