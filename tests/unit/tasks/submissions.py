"""Submissions as the tasks of a night make them, with a spark-submit of the test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nexmark.model import FIRST_ROUND, PROFILED, Arm
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Run
from nexmark.night.submission import QueryVerification, Repetition, SparkApplication, Submission


def application(night: Night, label: str, **changes: Any) -> SparkApplication:
    fields: dict[str, Any] = {
        "label": label,
        "program": "run_query.py",
        "arguments": ("--query", label.split(" ")[0]),
        "arm": "candidate",
        "profile": "default",
        "confs": {},
        "environment": {},
        "connection": "nexmark_local",
        "spark_binary": "/bin/true",
        "engine": "spark-4.3.0",
        "private": night.directory / "private",
    }
    return SparkApplication(**fields | changes)


def repetition(night: Night, run: Run, place: Path | None = None, **changes: Any) -> Repetition:
    """Return a repetition in `place`; `changes` are of its application."""
    directory = place or night.files.application(run).path
    return Repetition(
        application=application(night, run.label, **changes), directories=(directory,), run=run
    )


def of_label(night: Night, label: str) -> Submission:
    """Return the submission that messages call `label`."""
    runs = (
        Run(query=query, number=number, arm=arm, stage=stage)
        for query in night.queries
        for number in range(1, 10)
        for arm in Arm
        for stage in (FIRST_ROUND, 2, PROFILED)
    )
    if found := next((run for run in runs if run.label == label), None):
        return repetition(night, found)
    made, directories = application(night, label), (night.directory / label,)
    query, _, name = label.partition(" ")
    if name == "verify":
        return QueryVerification(application=made, directories=directories, query=query)
    return Submission(application=made, directories=directories)
