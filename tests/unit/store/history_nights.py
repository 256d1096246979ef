"""Stored nights of mode history, which earlier versions had, as those versions recorded them."""

from __future__ import annotations

from typing import Any

from nexmark.model import Value
from nexmark.store import NightRecord, RepetitionRecord, Store, ValidationRecord
from nexmark.verdict.measured_night import QueryVerdict
from tests.unit.store.night_builder import canary
from tests.unit.store.store_builder import measurement, night

REPETITIONS = 3
OLD_KEYS = {"one_arm_z": 3.5, "one_arm_change": 0.03, "one_arm_nights": 30}
GATE_SPEC = {
    **{"version": 5, "mode": "history", "modes": {"smoke": "bounds", "small": "history"}},
    **OLD_KEYS,
}
CALIBRATING = "3 of 10 nights to compare with"
SLOWER = "slower: 1.200 of the last 12 nights, relative to the canary"


def history_night(number: int = 1, **changes: Any) -> NightRecord:
    """A night of one arm."""
    values: dict[str, Any] = {
        **{"mode": "history", "gate_spec": GATE_SPEC, "repetitions": REPETITIONS, "seed": 7},
        "queries": ["q0", "q5"],
        "baselines": {},
    }
    return night(number, **{**values, **changes})


def record_history(store: Store, number: int = 1, **changes: Any) -> str:
    """Record a night in which q0 is calibrating and q5 is a regression; return its name."""
    made = history_night(number, **changes)
    store.record_night(made)
    for query in made.queries:
        for repetition in range(1, REPETITIONS + 1):
            figure = measurement(10.0 + repetition / 10)
            store.record_repetition(
                RepetitionRecord(made.run, query, repetition, measurement=figure)
            )
        store.record_validation(ValidationRecord(made.run, query, True))
    store.record_canary(made.run, [canary("before", 5.0), canary("after", 5.1)])
    store.record_verdicts(made.run, verdicts(made.run))
    store.record_grade(made.run, "steady")
    return made.run


def verdicts(run: str) -> list[QueryVerdict]:
    """What the gate said; the baseline names what levels had to have in common."""
    common: dict[str, Any] = {
        **{"metric": "cpu_s_per_mevent", "mode": "history", "gate_version": 5},
        **{"baseline": "steady nexmark02:spin_ms", "shift": 1.2, "pairs": REPETITIONS},
    }
    numbers = {"ratio": 1.2, "lo": 1.15, "hi": 1.25, "mde": 0.07, "noise": 0.02}
    return [
        QueryVerdict(run, "q0", value=Value.CALIBRATING, reason=CALIBRATING, **common),
        QueryVerdict(run, "q5", value=Value.REGRESSION, reason=SLOWER, **common, **numbers),
    ]


__all__ = [
    "CALIBRATING",
    "GATE_SPEC",
    "OLD_KEYS",
    "SLOWER",
    "history_night",
    "record_history",
    "verdicts",
]
