"""The SparkSubmit operator of a night."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nexmark.errors import NexmarkError
from nexmark.tasks.links import LINKS, publish_event_log
from nexmark.tasks.night import Night
from nexmark.tasks.progress import reason, say
from nexmark.tasks.watching import Watch

#: The jobs end with exit code 2 when their arguments or input are wrong.
_USAGE_ERROR = "Error code is: 2."

_FAILURE = "failure.txt"
_APPLICATIONS = "applications.jsonl"

if TYPE_CHECKING:
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk import Context


class NexmarkSubmitOperator(SparkSubmitOperator):
    """SparkSubmitOperator whose arguments are decided while the night runs.

    `submission` (templated, usually from XCom) is made by `nexmark.tasks.submission`: the
    engine's own spark-submit with its SPARK_HOME, the connection of the cluster, and the rest.
    Directories that the application fills are emptied first, so that a retry starts clean.

    Of a mapped task it is `in_sequence` instead: Airflow starts mapped instances in any order, but
    the arms of a query have to take turns. So whichever instance is started next runs what is next.
    """

    operator_extra_links = LINKS
    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "submission")

    def __init__(self, *, submission: dict[str, Any], **kwargs: Any) -> None:
        """`submission` is the only argument of its own; the rest is the operator's."""
        super().__init__(**kwargs)
        self.submission = submission
        self.running: Mapping[str, Any] | None = None
        self._watch: Watch | None = None

    def execute(self, context: Context) -> None:
        """Run the application to its end; AirflowException with its last words if it fails."""
        submission = self.submission
        if "sequence" in submission:
            submission = claim(Path(submission["sequence"]), context["ti"].map_index or 0)
        self.running = submission
        self._keep_links(context)
        if "recorded" not in submission:
            self._run(context, submission)
            return
        from nexmark.tasks.recorded import fetch

        try:
            self._run(context, submission)
            fetch(submission)
        except (AirflowException, NexmarkError) as error:
            why = reason(str(error))
            write_failure(Path(submission["directories"][0]), why)
            say(f"{submission['label']}: no flame graphs, the verdict is not concerned: {why}")

    def _run(self, context: Context, submission: dict[str, Any]) -> None:
        """Run the application to its end."""
        context["application"] = submission["label"]  # type: ignore[typeddict-unknown-key]
        for field in ("application", "application_args", "name", "properties_file"):
            setattr(self, field, submission[field])
        self.conf = dict(submission["conf"])
        self.env_vars = dict(submission["env_vars"])
        self._conn_id = submission["conn_id"]
        self._spark_binary = submission["spark_binary"]
        if "heal" in submission:
            self._heal(submission["heal"])
        prepare([Path(directory) for directory in submission["directories"]])
        self._watch = Watch(Night.current(), submission["label"])
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
            publish_event_log(submission)
        for unfinished, finished in submission["renames"]:
            if Path(unfinished).exists():
                Path(unfinished).replace(finished)
        say(f"{submission['label']}: done in {time.time() - started:.1f} s")

    def _get_hook(self) -> SparkSubmitHook:
        """The provider's hook; what it reads of the application goes by the watch."""
        hook = super()._get_hook()
        watch, read = self._watch, hook._process_spark_submit_log
        if watch is not None:
            hook._process_spark_submit_log = (  # type: ignore[method-assign]
                lambda itr: read(watch.lines(itr))
            )
        return hook

    def _keep_links(self, context: Context) -> None:
        """Keep the links that are known now, as Airflow does when the task has ended."""
        instance = context["ti"]
        for link in LINKS:
            url = link.get_link(self, ti_key=instance)  # type: ignore[arg-type]
            if url:
                instance.xcom_push(key=link.xcom_key, value=url)

    @staticmethod
    def _heal(query: str) -> None:
        """Make the clusters that `query` needs whole: no task before this one has done so."""
        from nexmark.tasks.infrastructure import heal

        heal(Night.current(), query)


def in_sequence(path: Path, submissions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What to map the operator over so that it runs `submissions` one by one in this order.

    They are kept in `path`; beside it, which instance has run which.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(submissions))
    _claims(path).unlink(missing_ok=True)
    return [{"submission": {"sequence": str(path)}} for _ in submissions]


def claim(path: Path, instance: int) -> dict[str, Any]:
    """The submission that a mapped instance runs: its own if it is tried again, else the next."""
    file = _claims(path)
    claims: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    position = claims.setdefault(str(instance), len(claims))
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(claims))
    temporary.replace(file)
    submission: dict[str, Any] = json.loads(path.read_text())[position]
    return submission


def _claims(path: Path) -> Path:
    return path.with_name(f"{path.stem}-claims.json")


def note_application(night: Path, label: str, start: float, end: float) -> None:
    """Note in the run directory when an application ran; times in epoch seconds."""
    with (night / _APPLICATIONS).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"label": label, "start": start, "end": end}) + "\n")


def overhead(night: Path) -> tuple[float, int]:
    """Seconds without an application from the first one's start to the last one's end.

    And how many of them were timed repetitions.
    """
    lines = (night / _APPLICATIONS).read_text(encoding="utf-8").splitlines()
    ran = [json.loads(line) for line in lines]
    span = max(each["end"] for each in ran) - min(each["start"] for each in ran)
    timed = sum("rep-" in each["label"] for each in ran)
    return float(span - sum(each["end"] - each["start"] for each in ran)), timed


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
    "claim",
    "in_sequence",
    "note_application",
    "overhead",
    "prepare",
    "read_failure",
    "write_failure",
]
