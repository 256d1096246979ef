"""Nights as the pages get them, made by the store's own way of recording."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from nexmark.measure.cpu_series import CpuSeries
from nexmark.model import Arm, Basis, Value
from nexmark.store import (
    BuildRecord,
    NightRecord,
    RepetitionRecord,
    Store,
    ValidationRecord,
)
from nexmark.store.table_rows import CanaryRow, SelfTestRow
from nexmark.verdict.verdict import Verdict
from tests.unit.store.store_builder import DAG, STARTED, measurement, night

OLD = BuildRecord("b429" * 4, "4.2.9", "pypi:4.2.9")
NEW = BuildRecord("c430" * 4, "4.3.0", "pypi:4.3.0")
ALL_VALUES = {f"q{place}": value for place, value in enumerate(Value)}
"""A query for each verdict there is."""
RATIOS = {Value.REGRESSION: 1.12, Value.FASTER: 0.9, Value.SUSPECT: 1.09, Value.WATCH: 1.03}
PLAN = "*(2) HashAggregate(keys=[auction], functions=[count(1)])\n+- Exchange hashpartitioning"


def paired_night(number: int = 1, **changes: Any) -> NightRecord:
    """A night with both arms."""
    values: dict[str, Any] = {
        "mode": "paired",
        "build": NEW,
        "repetitions": 3,
        "started": STARTED + timedelta(days=number),
        "run_id": f"manual__2026-11-21T04:00:{number:02d}.5+00:00",
    }
    record = night(number, **{**values, **changes})
    if record.baselines is None:
        record = night(
            number,
            **{**values, **changes, "baselines": dict.fromkeys(record.queries, OLD.id)},
        )
    return record


def record(
    store: Store,
    number: int = 1,
    values: Mapping[str, Value | str] | None = None,
    reason: str = "",
    **changes: Any,
) -> str:
    """Record a judged night; ``values`` has the verdict of each query."""
    values = {"q0": Value.OK, "q5": Value.OK} if values is None else values
    made = paired_night(number, queries=list(values), **changes)
    start(store, made)
    for query, value in values.items():
        record_query(store, made, query, value)
    record_canary(store, made.run)
    verdicts = [x for q, v in values.items() for x in verdicts_on(made.run, q, Value(v), reason)]
    store.record_verdicts(made.run, verdicts)
    store.record_grade(made.run, "steady")
    for kind, size, said in (("aa", 1.0, Value.OK), ("slowdown", 1.2, Value.REGRESSION)):
        query = next(iter(values))
        known = {"kind": kind, "query": query, "size": size, "gate_version": 1}
        found = {"value": said.value, "ratio": size, "lo": size - 0.02, "hi": size + 0.02}
        store.record_self_test(made.run, SelfTestRow(**known, **found))
    return made.run


def start(store: Store, made: NightRecord) -> None:
    """Record a night that has begun, and its baseline as a build that was tested before."""
    if not store.builds([OLD.id]):
        store.record_night(
            night(0, build=OLD, run_id="the-accepted-one", started=STARTED - timedelta(days=9))
        )
    store.record_night(made)


def record_query(
    store: Store, made: NightRecord, query: str, value: Value | str, pairs: int = 3
) -> None:
    """Record the repetitions of a query, as it takes to get that verdict."""
    ratio = RATIOS.get(Value(value), 1.0)
    wrong = value == Value.INVALID
    if value == Value.MISSING:
        failed = "the application failed: java.lang.OutOfMemoryError"
        store.record_repetition(RepetitionRecord(made.run, query, 1, failed=failed))
        return
    fresh = [2] if value == Value.REGRESSION else []
    for stage in (1, *fresh):
        for number in range(1, pairs + 1):
            for arm, figure in ((Arm.CANDIDATE, 40 * ratio), (Arm.BASELINE, 40.0)):
                noise = 1 + 0.01 * math.sin(7 * number + len(arm))
                record_repetition(store, made.run, query, number, arm, stage, figure * noise)
    failures = ["the result is wrong: 3 rows differ from the reference"] if wrong else []
    store.record_validation(ValidationRecord(made.run, query, not wrong, failures, evaluated=9))


def record_repetition(
    store: Store, run: str, query: str, number: int, arm: str, stage: int, figure: float
) -> None:
    """Record a repetition with batches, a plan and the CPU of two hosts."""
    text = PLAN if arm == Arm.BASELINE or query != "q5" else PLAN.replace("*(2) ", "")
    plan = {"text": text, "skeleton": text, "skeleton_hash": f"{hash(text) & 0xFFFFFFFF:x}"}
    measured = measurement(
        figure,
        **{
            "wall_s": figure / 3,
            "cpu_s_per_mevent": figure,
            "start": 1000.0,
            "end": 1039.0,
            "cores": 0.9,
        },
        **{"state_bytes_max": 2_000_000, "plan_skeleton_hash": plan["skeleton_hash"]},
        **{"events": 1_000_000, "cpu_s": figure},
    )
    store.record_repetition(
        RepetitionRecord(
            run,
            query,
            number,
            arm=arm,
            stage=stage,
            measurement=measured,
            result={"batches": batches(figure), "plan": plan, "confs": {"spark.a": arm}},
            series=[(series(host), Path("samples")) for host in ("n02", "n03")],
        )
    )


def batches(figure: float) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "phase": "data",
            "duration_ms": round(1000 * figure / 40 * (3 if number == 0 else 1)),
            "state_rows": 1000 * (number + 1),
            "state_bytes": 200_000 * (number + 1),
        }
        for number in range(8)
    ]


def series(host: str, seconds: int = 40) -> CpuSeries:
    times = tuple(1000.0 + second for second in range(seconds))
    used = tuple(1.4 * second + 0.4 * math.sin(second) for second in range(seconds))
    nothing = (0.0,) * seconds
    return CpuSeries(host, 1.0, times, used, nothing, None, used, None, 1, 0.001)


def verdicts_on(run: str, query: str, value: Value, reason: str = "") -> list[Verdict]:
    ratio = RATIOS.get(value, 1.004)
    known = value not in (Value.INVALID, Value.MISSING)
    numbers: dict[str, Any] = {
        **{"ratio": ratio, "lo": ratio * 0.97, "hi": ratio * 1.03, "mde": 0.07},
        **{"shift": math.log(ratio), "noise": 0.02, "pairs": 3, "repetitions": 3},
        **{"candidate": 40 * ratio, "baseline": 40.0, "basis": Basis.STEADY},
    }
    said = reason or f"{value.value.lower()}: ratio {ratio:.3f}"
    common: dict[str, Any] = {"mode": "paired", "gate_version": 1, "baseline_build": OLD.id}
    decided = Verdict(
        run, query, "cpu_s_per_mevent", value, said, **common, **(numbers if known else {})
    )
    if not known:
        return [decided]
    wall = Verdict(run, query, "wall_s", Value.OK, said, **common, **numbers, decides=False)
    return [decided, wall]


def record_canary(
    store: Store, run: str, hosts: Sequence[str] = ("n02", "n03"), group: str = "q0"
) -> None:
    moments = (("before", 1.0), ("after", 1.01))
    readings = {"cpu_s": 0.013, "fsync_s": 0.002, "steal_percent": 0.4, "load_1m": 1.7}
    store.record_canary(
        run,
        [
            CanaryRow(
                **{"host": host, "group": group, "moment": moment, "metric": metric},
                **{"value": value * factor, "taken": STARTED},
            )
            for host in hosts
            for moment, factor in moments
            for metric, value in readings.items()
        ],
    )


__all__ = ["ALL_VALUES", "DAG", "NEW", "OLD", "paired_night", "record", "record_query", "start"]
