"""Links from the SparkSubmit tasks: to the page of the measurement, and to Spark's own page.

Airflow 3 asks the operator for its links when a task has ended and keeps them as XComs of the task
instance. The UI shows the links that are not empty; a class of links needs no registration. Our
links are also kept when the application starts, so that they are there while it runs.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from airflow.sdk import BaseOperatorLink

from nexmark.config import known_queries, paths
from nexmark.night.submission import Submission

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

_APPLICATION = re.compile(r"(?:eventlog_v2_)?(app-\d+-\d+)")


class MeasurementLink(BaseOperatorLink):
    """A link to the page of the query in this night; without a query, to the page of the night."""

    name = "Measurement"

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:
        """Return the path of the page, from the root of Airflow's host."""
        from airflow.sdk.configuration import conf

        submission = running(operator)
        words = (submission.query_name if submission else "", str(ti_key.task_id).split(".")[0])
        query = next((word for word in words if word in known_queries()), "")
        parts = ["nexmark", "night", ti_key.dag_id, ti_key.run_id]
        parts += ["query", query] if query else []
        below = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")
        return "/".join([below, *(quote(part, safe="") for part in parts)])


class SparkHistoryLink(BaseOperatorLink):
    """A link to the application in the cluster's history server (`history_server`), if any."""

    name = "Spark history"

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:
        """Return the URL; "" without a history server, or while there is no event log."""
        submission = running(operator)
        server = submission.history_server_url if submission else None
        log = event_log(submission) if submission and server else None
        application = _APPLICATION.match(log.name) if log else None
        return f"{str(server).rstrip('/')}/history/{application[1]}/" if application else ""


LINKS: tuple[BaseOperatorLink, ...] = (MeasurementLink(), SparkHistoryLink())


def running(operator: "BaseOperator") -> Submission | None:
    """Return the submission that an operator runs; None if it has not begun to run one."""
    # Airflow also asks for the links of an operator that it has deserialized: it has no `running`.
    submission = getattr(operator, "running", None)
    return submission if isinstance(submission, Submission) else None


def event_log(submission: Submission) -> Path | None:
    """Return the event log of an application, a file or a directory of files; None without one."""
    logs = submission.directory.events.glob("*app-*")
    return max((log for log in logs if _APPLICATION.match(log.name)), default=None)


def publish_event_log(submission: Submission) -> None:
    """Let the history server see the event log: its directory has a link to each of them.

    The server reads one directory without its subdirectories: `spark.history.fs.logDirectory` is
    `<home>/event-logs`.
    """
    log = event_log(submission) if submission.history_server_url else None
    if log is None:
        return
    directory = paths.home() / "event-logs"
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.iterdir():
        if not old.exists():  # the run was removed
            old.unlink(missing_ok=True)
    link = directory / log.name
    link.unlink(missing_ok=True)
    link.symlink_to(log)
