"""Write the result file of a run, schema version 1."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from nexmark_jobs.given_confs import given_confs
from nexmark_jobs.host.whole_files import READABLE, write_whole
from nexmark_jobs.options import DatagenOptions, Options, TablesOptions
from nexmark_jobs.plan_fingerprint import Fingerprint
from nexmark_jobs.progress import DIGEST_KIND, Batch, combine
from nexmark_jobs.queries import Formulation, Source
from nexmark_jobs.redaction import key_of_environment
from nexmark_jobs.sources.kafka import Kafka
from nexmark_jobs.sources.recorded_events import Recording

SCHEMA_VERSION = 1

BUILD = "spark.nexmark.build"
"""The conf that names the build."""

_OF_BATCH = (
    "id",
    "phase",
    "start",
    "end",
    "input_rows",
    "duration_ms",
    "steps_ms",
    "state_rows",
    "state_bytes",
    "state_commit_ms",
    "state_restore_ms",
    "watermark",
    "late_rows",
)


@dataclass(frozen=True)
class QueryRun:
    """The course of a run: its batches, its start, and whether it reached the end."""

    start: datetime
    batches: list[Batch]
    is_complete: bool = True


def describe(
    spark: SparkSession,
    options: Options,
    formulation: Formulation,
    plan: Fingerprint,
    run: QueryRun,
    source: Source,
) -> dict[str, Any]:
    """Return the result as the file has it.

    Args:
        spark: the session.
        options: the options of the run.
        formulation: the formulation that ran.
        plan: the plan of the query.
        run: the batches.
        source: the source that was read.
    """
    observed = [batch.observed for batch in run.batches]
    events = sum(batch.input_rows for batch in run.batches)
    part = {}  # which part of the input this run has read; counts and digest are of its batches
    if options.checkpoint is not None:
        first, whole = run.batches[0].id, run.is_complete
        place = {"directory": options.checkpoint.directory}
        part = {"checkpoint": {**place, "first_batch": first, "is_complete": whole}}
    return {
        **part,
        **head(spark, options.query.name, formulation, options.query.output_mode),
        "conf_profile": options.conf_profile,
        "workload": _workload(options, events, source),
        "start": _instant(run.start),
        "end": _instant(run.batches[-1].end),
        "input_rows": events,
        "output_rows": sum(metrics.get("rows") or 0 for metrics in observed),
        "digest": combine(observed) if options.digest else None,
        "digest_kind": DIGEST_KIND if options.digest else None,
        "batches": [_batch(batch) for batch in run.batches],
        "state": state(run.batches),
        "late_rows": sum(batch.late_rows for batch in run.batches),
        "plan": asdict(plan),
    }


def head(
    spark: SparkSession, query: str, formulation: Formulation, output_mode: str
) -> dict[str, Any]:
    """Return the fields that every result file has: the query, and the Spark that ran it.

    Args:
        spark: the session.
        query: the name of the query.
        formulation: the formulation that ran.
        output_mode: Spark's output mode.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "query": query,
        "formulation": formulation.name,
        "output_mode": output_mode,
        "build": spark.conf.get(BUILD, None),
        "spark_version": spark.version,
        "application_id": spark.sparkContext.applicationId,
        "confs": confs(spark),
    }


def input_of(options: Options) -> dict[str, Any]:
    """Return the settings that must not change when a run resumes from a checkpoint."""
    given = options.source
    if isinstance(given, TablesOptions):
        return {"query": options.query.name, "tables": str(given.directory)}
    assert isinstance(given, DatagenOptions)
    return {"query": options.query.name, **given.described()}


def write(result: dict[str, Any], path: Path) -> None:
    """Write the result in one step: a reader sees the whole file or none."""
    write_whole(path, json.dumps(result, indent=1) + "\n", READABLE)


def confs(spark: SparkSession) -> dict[str, str]:
    """Return the Spark confs that somebody set, without those that Spark sets for every run.

    In place of a secret, and of all that secures a Kafka connection, is its fingerprint.
    """
    context = spark.sparkContext
    return given_confs(dict(context.getConf().getAll()), key_of_environment())


def _workload(options: Options, events: int, source: Source) -> dict[str, Any]:
    given, sink = options.source, {"sink": str(options.sink)}
    if isinstance(given, DatagenOptions):
        return {"source": "datagen", **given.described(), **sink}
    workload: dict[str, Any] = {"source": "boundary", "rows_per_batch": None}
    if isinstance(given, Recording):
        workload["source"] = f"files:{given.directory}"
    elif isinstance(given, TablesOptions):
        workload["source"] = "tables"
    elif isinstance(source, Kafka):
        workload = {"source": str(source), "rows_per_batch": source.rows_per_batch}
        workload["kafka"] = source.facts()
    return {**workload, "events": events, "tps": None, "seed": None, **sink, "generator": {}}


def _batch(batch: Batch) -> dict[str, Any]:
    times = {"start": _instant(batch.start), "end": _instant(batch.end)}
    return {name: times.get(name) or getattr(batch, name) for name in _OF_BATCH}


def state(batches: list[Batch]) -> dict[str, Any]:
    """Return the sizes of the state over all batches, in rows, bytes and ms; 0 without state."""
    last = batches[-1].operators if batches else ()
    commits = [
        sum(batch.operators[place].commit_ms for batch in batches) for place in range(len(last))
    ]
    return {
        "rows_max": max((batch.state_rows for batch in batches), default=0),
        "rows_final": batches[-1].state_rows if batches else 0,
        "bytes_max": max((batch.state_bytes for batch in batches), default=0),
        "commit_ms_total": sum(batch.state_commit_ms for batch in batches),
        "operators": [
            asdict(operator) | {"commit_ms": ms} for operator, ms in zip(last, commits, strict=True)
        ],
    }


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
