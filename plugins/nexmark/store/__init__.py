"""The results database: every night, repetition, verdict and acceptance."""

from nexmark.store.records import (
    Accepted,
    BuildRecord,
    NightRecord,
    RepetitionRecord,
    ValidationRecord,
    WholeNight,
)
from nexmark.store.store import Store, open_store
from nexmark.store.store_error import Refused, StoreError, UnknownNight

__all__ = [
    "Accepted",
    "BuildRecord",
    "NightRecord",
    "Refused",
    "RepetitionRecord",
    "Store",
    "StoreError",
    "UnknownNight",
    "ValidationRecord",
    "WholeNight",
    "open_store",
]
