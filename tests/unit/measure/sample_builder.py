"""Small builders of samples and results, so that a test states only what matters to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nexmark.measure.host_samples import HostSamples, parse_samples

APP = "app-20261121040000-0000"
T0 = datetime(2026, 11, 21, 4, tzinfo=UTC).timestamp()

Row = tuple[int, int, int, int]  # pid, ppid, own ticks, waited ticks


def header(**fields: Any) -> dict[str, Any]:
    return {
        "kind": "header",
        "format": 1,
        "host": "nexmark02",
        "clk_tck": 100,
        "cpus": 2,
        "interval_s": 1.0,
        "scope": "host",
        "mono": 0.0,
        "boot": -1e9,  # so late that every process started when it was first read
        **fields,
    }


def proc(pid: int, role: str, **fields: Any) -> dict[str, Any]:
    line = {"kind": "proc", "pid": pid, "starttime": pid, "ppid": 1, "root": pid, "role": role}
    app_id = APP if role == "executor" else None
    return {**line, "app_id": app_id, "label": None, "cmd": "java", **fields}


def tick(second: float, *rows: Row, step: float = 0.0, busy: int = 0) -> dict[str, Any]:
    """A tick ``second`` after T0; ``step``: by how much the wall clock had been moved."""
    procs = [[pid, ppid, pid, own, 0, waited, 0] for pid, ppid, own, waited in rows]
    wall = {"wall": T0 + second + step, "mono": 1000.0 + second}
    return {"kind": "tick", **wall, "host_cpu": [busy, 0, 0, 0, 0, 0, 0, 0], "procs": procs}


def samples(*lines: Mapping[str, Any], **fields: Any) -> HostSamples:
    text = [json.dumps(line) + "\n" for line in (header(**fields), *lines)]
    return parse_samples(text, "samples-nexmark02.jsonl")


def steady_executor(seconds: int, cores: float, **fields: Any) -> HostSamples:
    """One executor (pid 3) that uses ``cores`` all the time, read every second from T0 on."""
    ticks = [tick(s, (2, 1, 0, 0), (3, 2, round(s * cores * 100), 0)) for s in range(seconds + 1)]
    return samples(proc(2, "worker_daemon"), proc(3, "executor", ppid=2), *ticks, **fields)


def at(second: float) -> str:
    return datetime.fromtimestamp(T0 + second, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def batch(number: int, start: float, end: float, rows: int, phase: str = "data") -> dict[str, Any]:
    return {
        "id": number,
        "phase": phase,
        "start": at(start),
        "end": at(end),
        "input_rows": rows,
        "duration_ms": round((end - start) * 1000),
    }


def result(*batches: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A run from second 2 to second 62 that read a million events in the given batches."""
    whole = {
        "schema_version": 1,
        "query": "q5",
        "formulation": "panes",
        "build": "abc",
        "spark_version": "4.3.0",
        "conf_profile": "default",
        "application_id": APP,
        "workload": {"events": 1_000_000},
        "start": at(2),
        "end": at(62),
        "input_rows": 1_000_000,
        "output_rows": 5,
        "digest": "00ff00ff00ff00ff",
        "digest_kind": "sum",
        "late_rows": 0,
        "batches": list(batches) or [batch(0, 2, 62, 1_000_000)],
        "state": {"rows_max": 7, "rows_final": 5, "bytes_max": 9, "commit_ms_total": 1.5},
        "plan": {
            "text": "Plan",
            "skeleton": "Scan",
            "skeleton_hash": "abcd",
            "exchanges": 2,
            "stateful_operators": 1,
        },
    }
    return {**whole, **fields}
