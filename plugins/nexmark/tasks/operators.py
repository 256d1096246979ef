"""The SparkSubmit operator of a night."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nexmark.tasks.progress import reason, say

#: The jobs end with exit code 2 when their arguments or input are wrong.
_USAGE_ERROR = "Error code is: 2."

_FAILURE = "failure.txt"
_APPLICATIONS = "applications.jsonl"

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
        started = time.time()
        try:
            super().execute(context)
        except AirflowException as error:
            write_failure(Path(submission["directories"][0]), reason(str(error)))
            if _USAGE_ERROR in str(error):  # no retry will mend it
                raise AirflowFailException(str(error)) from None
            raise
        finally:
            note_application(Path(submission["night"]), submission["label"], started, time.time())
        for unfinished, finished in submission["renames"]:
            if Path(unfinished).exists():
                Path(unfinished).replace(finished)
        say(f"{submission['label']}: done in {time.time() - started:.1f} s")


def note_application(night: Path, label: str, start: float, end: float) -> None:
    """Note in the run directory when an application ran; times in epoch seconds."""
    with (night / _APPLICATIONS).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"label": label, "start": start, "end": end}) + "\n")


def overhead_s(night: Path) -> float:
    """How long no application ran between the start of the first and the end of the last one."""
    lines = (night / _APPLICATIONS).read_text(encoding="utf-8").splitlines()
    ran = [json.loads(line) for line in lines]
    span = max(each["end"] for each in ran) - min(each["start"] for each in ran)
    return float(span - sum(each["end"] - each["start"] for each in ran))


def write_failure(directory: Path, reason: str) -> None:
    """Leave in `directory` why its application failed, for those who miss its result."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _FAILURE).write_text(reason)


def read_failure(directory: Path) -> str:
    """Why the application of `directory` failed, in one line."""
    try:
        return (directory / _FAILURE).read_text()
    except FileNotFoundError:
        return "it was not started, or was killed"


def prepare(directories: Sequence[Path]) -> None:
    """Make `directories` anew; the application fills them."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)


__all__ = [
    "NexmarkSubmitOperator",
    "note_application",
    "overhead_s",
    "prepare",
    "read_failure",
    "write_failure",
]
