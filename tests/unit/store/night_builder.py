"""Paired nights in the store: quiet ones by default, a test states only what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np

from nexmark.config import Gate
from nexmark.config.load import load_gate
from nexmark.model import FIRST_ROUND, Value
from nexmark.store import (
    BuildRecord,
    NightRecord,
    RepetitionRecord,
    Store,
    ValidationRecord,
)
from nexmark.store.table_rows import CanaryRow
from nexmark.verdict.nightly import going_on, judge_night
from nexmark.verdict.verdict import Verdict
from tests.unit.store.store_builder import STARTED, measurement, night

QUERIES = ("q0", "q5", "q10")
PAIRS = 3
RULES: Gate = load_gate().model_copy(
    update={
        **{"rounds": (PAIRS, 2 * PAIRS), "pursue_z": (1.0,), "false_reds": 0.02, "matters": 0.10},
        **{"pursue_faster_z": 2.4, "prior_deviation": 0.02, "prior_degrees": 4.0},
    }
)
"""Rules of the tests' own: a query is measured in two rounds at most, and the host is quiet."""
NOISE = 0.01
CPU_METRIC = "cpu_s_per_mevent"

OK = Verdict(
    "", "q5", CPU_METRIC, Value.OK, "same", "paired", 2, True, 1.01, 0.98, 1.04, 0.07, 0.01,
    0.01, 5, 0, 0.02, 0.0, 0.0, "sha-429",
    repetitions=5,
)  # fmt: skip


def paired(number: int = 1, **changes: Any) -> NightRecord:
    """A night with both arms."""
    values: dict[str, Any] = {
        "mode": "paired",
        "queries": QUERIES,
        "repetitions": PAIRS,
        "baselines": dict.fromkeys(QUERIES, "sha-429"),
        "seed": 7,
    }
    return night(number, **{**values, **changes})


def judged(store: Store, number: int, *verdicts: Verdict, **changes: Any) -> str:
    """Record a night on a day of its own with verdicts (one of q5 by default); return its name."""
    started = STARTED + timedelta(days=number)
    made = paired(number, **{"run_id": f"n{number}", "started": started, **changes})
    store.record_night(made)
    store.record_verdicts(made.run, [replace(x, night=made.run) for x in verdicts or (OK,)])
    return made.run


def record_pair(
    store: Store, run: str, query: str, number: int = 1, *, stage: int = FIRST_ROUND, **arms: Any
) -> None:
    """Record a pair: a figure for an arm, or fields of its repetition."""
    for arm, given in arms.items():
        fields = dict(given) if isinstance(given, Mapping) else {"measurement": cpu(float(given))}
        store.record_repetition(
            RepetitionRecord(run, query, number, arm=arm, stage=stage, **fields)
        )


def cpu(figure: float, **changes: Any) -> Any:
    """A measurement whose other metrics follow the CPU time, without state."""
    others = {"wall_s": figure / 3, "batch_ms_p99": figure * 40, "state_bytes_max": 0}
    return measurement(figure, **{**others, **changes})


def validate(store: Store, run: str, queries: Sequence[str] = QUERIES) -> None:
    for query in queries:
        store.record_validation(ValidationRecord(run, query, True))


def record_night(
    store: Store, record: NightRecord, slower: Mapping[str, float] | None = None
) -> str:
    """Record a night with noise; ``slower`` has the ratio of queries that are not the same."""
    rng = np.random.default_rng(record.started.toordinal())
    store.record_night(record)
    validate(store, record.run, record.queries)
    for query in record.queries:
        ratio = (slower or {}).get(query, 1.0)
        for stage, count in (
            (FIRST_ROUND, record.repetitions),
            (2, 2 * record.repetitions),
        ):
            if stage == 2 and ratio == 1.0:
                continue
            for pair in range(1, count + 1):
                noise = float(np.exp(rng.normal(0, NOISE)))
                record_pair(
                    store,
                    record.run,
                    query,
                    pair,
                    stage=stage,
                    candidate=10.0 * ratio * noise,
                    baseline=10.0,
                )
    return record.run


def record_of_metric(
    store: Store,
    number: int,
    metric: str,
    ratio: float,
    repetition: Callable[[float], Mapping[str, Any]],
) -> str:
    """Record and judge a night of q0 by a metric; ``repetition`` has the fields for a ratio."""
    rules = RULES.model_copy(update={"metric": metric})
    spec, other = rules.model_dump(mode="json"), BuildRecord("sha-429", "4.2.9", "pypi:4.2.1")
    record = paired(number, queries=("q0",), gate_spec=spec, baseline_builds=[other])
    store.record_night(record)
    validate(store, record.run, ("q0",))
    for stage, count in ((FIRST_ROUND, 3), (2, 6)):
        for pair in range(1, count + 1):
            noisy = ratio * (1 + 0.01 * (pair % 3 - 1))
            arms = {"candidate": repetition(noisy), "baseline": repetition(1.0)}
            record_pair(store, record.run, "q0", pair, stage=stage, **arms)
    judge(store, record.run, rules)
    return record.run


def canary(moment: Any, value: float, **changes: Any) -> CanaryRow:
    taken = STARTED + timedelta(hours=1 if moment == "before" else 2)
    values = {"metric": "spin_ms", "value": value, "moment": moment, "taken": taken}
    return CanaryRow(**{"host": "", "group": "", **values, **changes})


def judge(store: Store, run: str, rules: Gate = RULES) -> list[Verdict]:
    """Judge a night by what the store has, as the tasks of a night do; record what was said."""
    verdicts = judge_night(store.paired_night(run), store.earlier(run, 60), rules)
    store.record_verdicts(run, verdicts)
    return verdicts


def second_round(store: Store, run: str, rules: Gate = RULES) -> list[str]:
    """The queries that go on to the second round."""
    return going_on(store.paired_night(run), store.earlier(run, 60), rules, 2)
