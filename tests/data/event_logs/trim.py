"""Cut a real event log down to what `nexmark.measure` reads: trim.py REPETITION TARGET [PATH].

REPETITION is the directory of a timed repetition (`events/`, `result.json` if it has one). Whole
events are left out, and of those that stay the fields that are not read; nothing is changed but
PATH, which becomes `/data`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import zstandard

_RESULT = ("query", "spark_version", "application_id", "batches")
_CUT = 60
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryListener$"


def plan(info: dict[str, Any]) -> dict[str, Any]:
    text = info["simpleString"]
    return {
        "nodeName": info["nodeName"],
        "simpleString": text if info["nodeName"] == "Exchange" else text[:_CUT],
        "children": [plan(x) for x in info["children"]],
        "metrics": info["metrics"],
    }


def stage(info: dict[str, Any]) -> dict[str, Any]:
    rdds = [{"Scope": x["Scope"]} for x in info["RDD Info"] if "Scope" in x]
    return {"Stage ID": info["Stage ID"], "RDD Info": rdds}


def trimmed(event: dict[str, Any]) -> dict[str, Any] | None:
    kept = {"Event": event["Event"]}
    if event["Event"].startswith(_STREAMING):
        return event
    match event["Event"].rsplit(".", 1)[-1]:
        case "SparkListenerLogStart" | "SparkListenerApplicationStart":
            return event
        case "SparkListenerApplicationEnd" | "SparkListenerDriverAccumUpdates":
            return event
        case "SparkListenerEnvironmentUpdate":
            return kept | {"Spark Properties": event["Spark Properties"]}
        case "SparkListenerSQLExecutionStart":
            number = {x: event[x] for x in ("executionId", "description")}
            return kept | number | {"sparkPlanInfo": plan(event["sparkPlanInfo"])}
        case "SparkListenerJobStart":
            names = ("streaming.sql.batchId", "spark.sql.execution.id", "spark.jobGroup.id")
            properties = {x: event["Properties"][x] for x in names}
            return kept | {
                "Properties": properties,
                "Stage Infos": [*map(stage, event["Stage Infos"])],
            }
        case "SparkListenerTaskEnd":
            own = [x for x in event["Task Info"]["Accumulables"] if x.get("Metadata") == "sql"]
            updates = [{x: y[x] for x in ("ID", "Update", "Metadata")} for y in own]
            names = ("Executor CPU Time", "Executor Deserialize CPU Time", "Executor Run Time")
            names += ("JVM GC Time", "Shuffle Read Metrics")
            metrics = {x: event["Task Metrics"][x] for x in names}
            task = {"Task Info": {"Accumulables": updates}, "Task Metrics": metrics}
            return kept | {"Stage ID": event["Stage ID"]} | task
    return None


def main(repetition: Path, target: Path, path: str = "/data") -> None:
    (log,) = (repetition / "events").iterdir()
    files = sorted(log.glob("events_*")) if log.is_dir() else [log]
    lines = []
    for file in files:
        with file.open("rb") as stream:
            whole = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
            written = whole.read().splitlines()
        events = (trimmed(json.loads(line)) for line in written)
        lines += [json.dumps(x, separators=(",", ":")) + "\n" for x in events if x]
    made = target / "events" / files[0].relative_to(repetition / "events")
    made.parent.mkdir(parents=True)
    text = "".join(lines).replace(path, "/data")
    made.write_bytes(zstandard.ZstdCompressor(19).compress(text.encode()))
    if not (repetition / "result.json").exists():
        return
    result = json.loads((repetition / "result.json").read_text())
    result = {name: result[name] for name in _RESULT}
    (target / "result.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
