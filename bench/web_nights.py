"""Fill a results database with many invented nights, whose pages `bench.web` asks for."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from nexmark.measure.cpu_series import CpuSeries, pack
from nexmark.model import CPU, SUITE, Arm, Mode, Value
from nexmark.store import Store
from nexmark.store.table_rows import (
    AcceptanceRow,
    BuildRow,
    CanaryRow,
    NightRow,
    PlanRow,
    RepetitionRow,
    SelfTestRow,
    SeriesRow,
    ValidationRow,
    VerdictRow,
)

DAG = "nexmark_spark_4_3_0"
BATCHES = 20
HOSTS = ("nexmark02", "nexmark03")
SLOWER = ("q5", "q9")
"""The queries that are red in the newest nights."""
STARTED = datetime(2026, 1, 1, 1, tzinfo=UTC)
"""When the first night started; each later night starts a day later."""
Row = dict[str, Any]
"""A row of the database by the names of its columns."""


def fill(store: Store, nights: int, queries: Sequence[str], pairs: int, engines: int = 1) -> str:
    """Write nights of pairs into an empty database; return the name of the newest night.

    They are written in bulk: it would take half an hour to record them one by one, as real nights
    are recorded.

    Args:
        store: The empty database.
        nights: The number of nights.
        queries: The queries of each night.
        pairs: The number of pairs of each query.
        engines: The number of engines; they have their nights in turns.
    """
    chance = random.Random(1)
    with store._writing() as session:
        builds = [f"{number:02d}" + "b" * 14 for number in range(nights // 10 + 1)]
        session.bulk_insert_mappings(BuildRow.__mapper__, map(_build, builds))
        session.bulk_insert_mappings(PlanRow.__mapper__, [_plan(query) for query in queries])
    for number in range(nights):
        red = number >= nights - 3
        rows = _night(number, number % engines, builds, queries, pairs, red, chance)
        with store._writing() as session:
            for model, mappings in rows:
                session.bulk_insert_mappings(model.__mapper__, mappings)
    return f"{_dag((nights - 1) % engines)}/{_run_id(nights - 1)}"


def _dag(engine: int) -> str:
    return f"{DAG[:-1]}{engine}"


def _run_id(number: int) -> str:
    return f"scheduled__{STARTED + timedelta(days=number):%Y-%m-%dT%H:%M:%S}+00:00"


def _build(identity: str) -> Row:
    number = int(identity[:2])
    return {
        "id": identity,
        "version": f"4.3.0-SNAPSHOT-{number}",
        "source": f"tarball:https://ci.example/spark-{number}.tgz",
        "first_seen": STARTED + timedelta(days=10 * number),
    }


def _plan(query: str) -> Row:
    lines = [f"{'  ' * place}+- Operator{place}(keys=[a{place}])" for place in range(40)]
    return {"id": query, "skeleton_hash": query, "skeleton": query, "text": "\n".join(lines)}


def _night(
    number: int,
    engine: int,
    builds: Sequence[str],
    queries: Sequence[str],
    pairs: int,
    red: bool,
    chance: random.Random,
) -> Iterator[tuple[Any, list[Row]]]:
    """Yield each table and its rows of a night.

    Args:
        number: The number of the night, from 0.
        engine: The number of its engine, from 0.
        builds: The ids of all builds; each is the candidate of ten nights.
        queries: The queries.
        pairs: The number of pairs of each query.
        red: Whether the queries `SLOWER` are red.
        chance: Draws the noise of the figures.
    """
    build, old = builds[number // 10], builds[max(0, number // 10 - 1)]
    run, started = f"{_dag(engine)}/{_run_id(number)}", STARTED + timedelta(days=number)
    of_engine = {"dag_id": _dag(engine), "engine": f"spark-4.3.{engine}"}
    night = _night_row(run, number, build, old, queries, pairs, started)
    yield NightRow, [night | of_engine]
    repetitions: list[Row] = []
    series: list[Row] = []
    first = 1 + number * len(queries) * pairs * 2
    for query in queries:
        ratio = 1.12 if red and query in SLOWER else 1.0
        for pair in range(1, pairs + 1):
            for arm in (Arm.CANDIDATE, Arm.BASELINE):
                figure = 40 * (ratio if arm == Arm.CANDIDATE else 1) * chance.gauss(1, 0.02)
                row = first + len(repetitions)
                repetitions.append(_repetition(row, run, query, pair, arm, figure, started))
                series += [_series(row, host) for host in HOSTS]
    yield RepetitionRow, repetitions
    yield SeriesRow, series
    yield ValidationRow, [_validation(run, query, started) for query in queries]
    yield VerdictRow, list(_verdicts(run, queries, red, old, started, chance))
    yield CanaryRow, list(_canary(run, queries, started, chance))
    yield SelfTestRow, [_self_test(run, kind, started) for kind in ("aa", "slowdown")]
    if number % 20 == 0:
        yield AcceptanceRow, [_acceptance(run, query, build, started) for query in queries]


def _night_row(
    run: str,
    number: int,
    build: str,
    old: str,
    queries: Sequence[str],
    pairs: int,
    started: datetime,
) -> Row:
    """Return the row of a night.

    Args:
        run: The name of the night.
        number: The number of the night, from 0.
        build: The id of the candidate's build.
        old: The id of the baseline's build.
        queries: The queries.
        pairs: The number of pairs of each query.
        started: When the night started.
    """
    spec = {"events": 5_000_000, "tps": 10_000_000, "rows_per_batch": 250_000, "seed": 1}
    return {
        "id": run,
        "dag_id": DAG,
        "run_id": _run_id(number),
        "engine": "spark-4.3.0",
        "workload": "nightly",
        "cluster": "nexmark",
        "build_id": build,
        "jobs": "jobs",
        "shape": "shape",
        "workload_spec": spec,
        "cluster_spec": {"hosts": list(HOSTS)},
        "queries": list(queries),
        "repetitions": pairs,
        "directory": f"/nowhere/{number}",
        "started": started,
        "mode": Mode.PAIRED,
        "baselines": dict.fromkeys(queries, old),
        "seed": number,
        "gate_spec": {"version": 1},
        "grade": "steady",
    }


def _repetition(
    row: int, run: str, query: str, pair: int, arm: str, figure: float, started: datetime
) -> Row:
    """Return the row of a repetition.

    Args:
        row: The id of the row.
        run: The name of the night.
        query: The query.
        pair: The number of the pair, from 1.
        arm: The arm.
        figure: The CPU-seconds per million events.
        started: When the night started.
    """
    return {
        "id": row,
        "night_id": run,
        "query": query,
        "arm": arm,
        "stage": 1,
        "number": pair,
        "position": pair,
        "status": "ok",
        "recorded": started,
        "plan_id": query,
        "plan_skeleton_hash": query,
        "batch_list": _BATCH_LIST,
        "confs": {f"spark.conf.number{place}": "value" for place in range(20)},
        "formulation": "panes",
        "build": "build",
        "start": 1000.0,
        "end": 1060.0,
        "events": 5_000_000,
        "wall_s": figure / 2,
        "cores": 1.8,
        "cpu_s": figure,
        "basis": "steady",
        CPU: figure,
        f"{CPU}_steady": figure,
        f"{CPU}_application": figure * 1.4,
        "batch_ms_p99": figure * 40,
        "state_rows_max": 100_000,
        "state_bytes_max": 20_000_000,
        "hosts": list(HOSTS),
    }


def _batch(number: int) -> Row:
    steps = ("addBatch", "commitOffsets", "getBatch", "latestOffset", "queryPlanning", "walCommit")
    return {
        "id": number,
        "phase": "data",
        "start": "2026-01-01T01:00:00.000Z",
        "end": "2026-01-01T01:00:03.000Z",
        "input_rows": 250_000,
        "duration_ms": 2900 + number,
        "steps_ms": dict.fromkeys(steps, 123),
        "state_rows": 5000 * number,
        "state_bytes": 1_000_000 * number,
        "state_commit_ms": 80,
        "watermark": "2015-07-15T00:00:05.999Z",
        "late_rows": 0,
    }


def _packed() -> bytes:
    times = tuple(1000.0 + second for second in range(60))
    used = tuple(1.8 * second + math.sin(second) / 2 for second in range(60))
    nothing = (0.0,) * len(times)
    return pack(CpuSeries("host", 1.0, times, used, nothing, None, used, used, 1, 0.01))


_BATCH_LIST = [_batch(number) for number in range(BATCHES)]
_PACKED = _packed()


def _series(row: int, host: str) -> Row:
    return {
        "repetition_id": row,
        "host": host,
        "path": "samples.jsonl",
        "interval_s": 1.0,
        "readings": 60,
        "series": _PACKED,
    }


def _validation(run: str, query: str, started: datetime) -> Row:
    return {
        "night_id": run,
        "query": query,
        "arm": Arm.CANDIDATE,
        "success": True,
        "evaluated": 12,
        "failures": [],
        "statistics": {"rows": 100},
        "recorded": started,
    }


def _verdicts(
    run: str,
    queries: Sequence[str],
    red: bool,
    old: str,
    started: datetime,
    chance: random.Random,
) -> Iterator[Row]:
    """Yield the rows of the verdicts of a night.

    Args:
        run: The name of the night.
        queries: The queries.
        red: Whether the queries `SLOWER` are red.
        old: The id of the baseline's build.
        started: When the night started.
        chance: Draws the noise of the figures.
    """
    for metric in (CPU, "wall_s", "batch_ms_p99", "state_bytes_max"):
        for query in [*queries, SUITE] if metric == CPU else queries:
            bad = red and query in SLOWER and metric == CPU
            shift = chance.gauss(0.11 if bad else 0, 0.015)
            yield {
                "night_id": run,
                "query": query,
                "metric": metric,
                "gate_version": 1,
                "value": (Value.REGRESSION if bad else Value.OK).value,
                "reason": f"ratio {math.exp(shift):.3f} (0.971 to 1.031), 6.8% could be seen",
                "mode": Mode.PAIRED,
                "decides": metric == CPU,
                "ratio": math.exp(shift),
                "lo": math.exp(shift - 0.03),
                "hi": math.exp(shift + 0.03),
                "mde": 0.068,
                "shift": shift,
                "spread": 0.02,
                "noise": 0.015,
                "candidate": 41.0,
                "baseline": 40.0,
                "basis": "steady",
                "repetitions": 5,
                "pairs": 5,
                "fresh_pairs": 10 if bad else 0,
                "baseline_build": old,
                "judged": started,
            }


def _canary(
    run: str, queries: Sequence[str], started: datetime, chance: random.Random
) -> Iterator[Row]:
    """Yield the rows of the canary's readings before and after each query.

    Args:
        run: The name of the night.
        queries: The queries.
        started: When the night started.
        chance: Draws the noise of the readings.
    """
    readings = {"cpu_s": 0.013, "cpu_memory_s": 0.006, "fsync_s": 0.002, "steal_percent": 0.3}
    for host in HOSTS:
        for group in queries:
            for moment in ("before", "after"):
                for metric, value in {**readings, "load_1m": 1.0, "psi_cpu": 0.2}.items():
                    yield {
                        "night_id": run,
                        "host": host,
                        "group": group,
                        "moment": moment,
                        "metric": metric,
                        "value": value * chance.gauss(1, 0.01),
                        "taken": started,
                    }


def _self_test(run: str, kind: str, started: datetime) -> Row:
    slow = kind == "slowdown"
    return {
        "night_id": run,
        "kind": kind,
        "query": "q1",
        "size": 1.2 if slow else 1.0,
        "value": (Value.REGRESSION if slow else Value.OK).value,
        "ratio": 1.2 if slow else 1.0,
        "gate_version": 1,
        "judged": started,
    }


def _acceptance(run: str, query: str, build: str, started: datetime) -> Row:
    """Return the row of an accepted baseline.

    Args:
        run: The name of the accepted night.
        query: The query.
        build: The id of the build.
        started: When the night started.
    """
    return {
        "engine": "spark-4.3.0",
        "workload": "nightly",
        "cluster": "nexmark",
        "query": query,
        "night_id": run,
        "who": "ada",
        "reason": "the new baseline",
        "accepted": started,
        "metric": CPU,
        "build_id": build,
        "size": 1.0,
    }
