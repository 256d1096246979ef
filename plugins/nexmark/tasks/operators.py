"""The SparkSubmit operator of a night."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from nexmark.tasks.progress import say

if TYPE_CHECKING:
    from airflow.sdk import Context


class NexmarkSubmitOperator(SparkSubmitOperator):
    """SparkSubmitOperator whose arguments are decided while the night runs.

    `submission` (templated, usually from XCom) is made by `nexmark.tasks.submission`: the
    engine's own spark-submit with its SPARK_HOME, the connection of the cluster, and the rest.
    Directories that the application fills are emptied first, so that a retry starts clean.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "submission")

    def __init__(self, *, submission: dict[str, Any], **kwargs: Any) -> None:
        """`submission` is the only argument of its own; the rest is the operator's."""
        super().__init__(**kwargs)
        self.submission = submission

    def execute(self, context: Context) -> None:
        """Run the application to its end; AirflowException with its last words if it fails."""
        submission = self.submission
        for field in ("application", "application_args", "name", "properties_file"):
            setattr(self, field, submission[field])
        self.conf = dict(submission["conf"])
        self.env_vars = dict(submission["env_vars"])
        self._conn_id = submission["conn_id"]
        self._spark_binary = submission["spark_binary"]
        prepare([Path(directory) for directory in submission["directories"]])
        started = time.monotonic()
        try:
            super().execute(context)
        except Exception as error:
            say(f"{submission['label']}: failed after {_since(started)}: {_reason(str(error))}")
            raise
        say(f"{submission['label']}: done in {_since(started)}")


def prepare(directories: Sequence[Path]) -> None:
    """Empty the first of `directories`, which the application fills, and make the others.

    The first itself is not made: the application refuses an output directory that is not its own.
    """
    first, *others = directories
    shutil.rmtree(first, ignore_errors=True)
    first.parent.mkdir(parents=True, exist_ok=True)
    for directory in others:
        directory.mkdir(parents=True)


def _since(started: float) -> str:
    return f"{time.monotonic() - started:.1f} s"


def _reason(text: str) -> str:
    """The line of spark-submit's output that says most: the job's own, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("run_query", "dump_events"))]
    return (told or lines or ["no reason was given"])[-1][:500]


__all__ = ["NexmarkSubmitOperator", "prepare"]
