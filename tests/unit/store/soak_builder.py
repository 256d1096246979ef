"""Soak nights in the store, with the noise of the simulation of `nexmark bench soak`."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from bench.soak import NONE, ROWS_PER_BATCH, WARMUP, WORLDS, Leak, World, repetition
from nexmark.model import GROWTH
from nexmark.store import BuildRecord, Store
from nexmark.verdict.growth import figures_of
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import RULES, cpu, judge, paired, record_pair, validate
from tests.unit.store.store_builder import STARTED

QUERY = "q5"
SOAK_RULES = RULES.model_copy(update={"metric": GROWTH})
LEAK: Leak = {"heap": 10.0, "threads": 5.0}
EVENTS = 240_000


def soaked(
    store: Store, number: int, *leaks: Leak, world: World = WORLDS[0], **fields: Any
) -> list[Verdict]:
    """Record a soak night, one pair for each of what its candidates leak, and judge it.

    `fields`: what the repetitions of its candidates have otherwise.
    """
    draws = random.Random(number)
    spec = {"kind": "soak", "events": EVENTS, "rows_per_batch": ROWS_PER_BATCH}
    record = paired(
        number,
        run_id=f"n{number}",
        started=STARTED + timedelta(days=number),
        queries=(QUERY,),
        repetitions=1,
        workload="soak",
        workload_spec={**spec, "warmup_batches": WARMUP},
        baseline_builds=[BuildRecord("sha-429", "4.2.9", "pypi:4.2.1")],
        gate_spec=SOAK_RULES.model_dump(mode="json"),
    )
    store.record_night(record)
    validate(store, record.run, [QUERY])
    for stage, leak in enumerate(leaks, 1):
        aged = {}
        for arm, leaking in (("candidate", leak), ("baseline", NONE)):
            samples = repetition(world, leaking, draws)
            figures = figures_of(samples, WARMUP, SOAK_RULES)
            taken = [{**sample, "at": [0.0, 0.5]} for sample in samples]
            measured = cpu(10.0, ageing=taken, figures=figures, warmup_batches=WARMUP)
            aged[arm] = {"measurement": measured}
        aged["candidate"] |= fields
        record_pair(store, record.run, QUERY, 1, stage=stage, **aged)
    return judge(store, record.run, SOAK_RULES)
