"""The result file of a run, schema version 1."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from nexmark_jobs import digest
from nexmark_jobs.options import DatagenOptions, Options
from nexmark_jobs.plan import Fingerprint
from nexmark_jobs.progress import Batch
from nexmark_jobs.queries import Formulation

SCHEMA_VERSION = 1

_BUILD = "spark.nexmark.build"
_SECRET = re.compile(r"secret|password|passwd|token|credential|access.?key|private.?key", re.I)
_OF_THIS_RUN = re.compile(
    r"spark\.app\..*|spark\.driver\.(host|port)|spark\.executor\.id|spark\.sql\.warehouse\.dir"
    r"|spark\.repl\..*|spark\.submit\..*"
)
_IPV6 = "-Djava.net.preferIPv6Addresses=false"
_OF_PYSPARK = {
    ("spark.rdd.compress", "True"),
    ("spark.serializer.objectStreamReset", "100"),
    ("spark.sql.artifact.isolation.enabled", "false"),
}


@dataclass(frozen=True)
class Run:
    """What happened: the batches of a query and when it began."""

    start: datetime
    batches: list[Batch]

    @property
    def input_rows(self) -> int:
        """Events read, without sentinels."""
        return sum(batch.input_rows for batch in self.batches)


def describe(
    spark: SparkSession, options: Options, formulation: Formulation, plan: Fingerprint, run: Run
) -> dict[str, Any]:
    """The result as it is written to the file."""
    observed = [batch.observed for batch in run.batches]
    return {
        "schema_version": SCHEMA_VERSION,
        "query": options.query.name,
        "formulation": formulation.name,
        "output_mode": options.query.output_mode,
        "build": spark.conf.get(_BUILD, None),
        "spark_version": spark.version,
        "conf_profile": options.conf_profile,
        "workload": _workload(options, run.input_rows),
        "application_id": spark.sparkContext.applicationId,
        "start": _instant(run.start),
        "end": _instant(run.batches[-1].end),
        "input_rows": run.input_rows,
        "output_rows": sum(metrics.get("rows") or 0 for metrics in observed),
        "digest": digest.combine(observed) if options.digest else None,
        "digest_kind": digest.KIND if options.digest else None,
        "batches": [_batch(batch) for batch in run.batches],
        "state": _state(run.batches),
        "late_rows": sum(batch.late_rows for batch in run.batches),
        "plan": asdict(plan),
        "confs": confs(spark),
    }


def write(result: dict[str, Any], path: Path) -> None:
    """Write the result in one step: the file is whole or not there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def confs(spark: SparkSession) -> dict[str, str]:
    """The Spark confs that were set, but for secrets and what Spark itself sets for every run."""
    launcher = spark.sparkContext._jvm.org.apache.spark.launcher  # type: ignore[union-attr]
    modules = launcher.JavaModuleOptions.defaultModuleOptions()
    given = {
        name: value.replace(modules, "").replace(_IPV6, "").strip()
        for name, value in sorted(spark.sparkContext.getConf().getAll())
        if not _SECRET.search(name) and not _OF_THIS_RUN.fullmatch(name)
    }
    return {
        name: value for name, value in given.items() if value and (name, value) not in _OF_PYSPARK
    }


def _workload(options: Options, events: int) -> dict[str, Any]:
    sink = str(options.sink)
    if isinstance(options.source, DatagenOptions):
        config = options.source.config
        return {
            "source": "datagen",
            "events": options.source.events,
            "tps": config.tps,
            "seed": config.seed,
            "rows_per_batch": options.source.rows_per_batch,
            "sink": sink,
            "generator": options.source.knobs,
        }
    return {
        "source": f"files:{options.source.recording.directory}",
        "events": events,
        "tps": None,
        "seed": None,
        "rows_per_batch": None,
        "sink": sink,
        "generator": {},
    }


def _batch(batch: Batch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "phase": batch.phase,
        "start": _instant(batch.start),
        "end": _instant(batch.end),
        "input_rows": batch.input_rows,
        "duration_ms": batch.duration_ms,
        "steps_ms": batch.steps_ms,
        "state_rows": batch.state_rows,
        "state_bytes": batch.state_bytes,
        "state_commit_ms": batch.state_commit_ms,
        "watermark": batch.watermark,
        "late_rows": batch.late_rows,
    }


def _state(batches: list[Batch]) -> dict[str, Any]:
    last = batches[-1].operators
    return {
        "rows_max": max(batch.state_rows for batch in batches),
        "rows_final": batches[-1].state_rows,
        "bytes_max": max(batch.state_bytes for batch in batches),
        "commit_ms_total": sum(batch.state_commit_ms for batch in batches),
        "operators": [
            {
                "name": operator.name,
                "rows": operator.rows,
                "bytes": operator.bytes,
                "commit_ms": sum(batch.operators[place].commit_ms for batch in batches),
            }
            for place, operator in enumerate(last)
        ],
    }


def _instant(moment: datetime) -> str:
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
