"""How secrets among the Spark confs reach Spark: by a file for the owner only, while it runs.

A plan, an XCom and a command line have their fingerprints. What stands behind these is read from
`include/conf` again when the application is submitted, and has to be what was planned.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from nexmark.config import load, profile_path
from nexmark.config.document import display
from nexmark.config.load import conf_entries
from nexmark.config.own_jobs import read_job
from nexmark.errors import NexmarkError
from nexmark.home import write_private
from nexmark.night.submission import SparkApplication
from nexmark.secrets import fingerprinted, remember
from nexmark_jobs.redaction import is_fingerprint, is_secret

_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})


def split(confs: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the confs that all may see, and the fingerprints of those that nobody may."""
    secret = {name: value for name, value in confs.items() if is_fingerprint(value)}
    return {name: value for name, value in confs.items() if name not in secret}, secret


@contextlib.contextmanager
def private_properties(
    application: SparkApplication,
    shared: Path,
    mask: Callable[[str], None],
    of_connection: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield the properties file of an application, with its secrets; it is removed at the end.

    NexmarkError if a secret is no longer the one that the night was planned with.

    Args:
        application: What is submitted.
        shared: The properties file of its cluster, which is the file where there are no secrets.
        mask: Hides a secret in the log of the task.
        of_connection: Confs out of an Airflow connection, which are all secrets.
    """
    text = shared.read_text(encoding="utf-8")
    _hide(properties(text), mask)
    planned = application.secret_confs
    if not planned and not of_connection:
        yield str(shared)
        return
    confs = {**(of_connection or {}), **_secrets(application, planned)}
    _hide(confs, mask)
    private = application.private / f"{application.label.replace(' ', '-')}.conf"
    try:
        write_private(private, f"{text}\n{as_properties(confs)}")
        yield str(private)
    finally:
        private.unlink(missing_ok=True)


def as_properties(confs: Mapping[str, str]) -> str:
    """Return confs as the text of a properties file."""
    return "".join(f"{name}={_value(value)}\n" for name, value in confs.items())


def properties(text: str) -> dict[str, str]:
    """Return the confs in the text of a properties file."""
    return {name: value for _, name, value in conf_entries(text)}


def profile_confs(profile: str) -> dict[str, str]:
    """Return the Spark confs of a conf profile."""
    return properties(profile_path(profile).read_text(encoding="utf-8"))


def _secrets(application: SparkApplication, planned: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets behind the fingerprints in the confs of an engine, and of a job."""
    engine, file = load().engines.get(application.engine), application.job_file
    job = read_job(file) if file and file.is_file() else None
    of_job = job.application.confs if job and job.application else {}
    known = {**(engine.conf if engine else {}), **of_job}
    confs = {name: known.get(name, "") for name in planned}
    now = fingerprinted(confs)
    for name, value in planned.items():
        if now.get(name) != value:
            where, whose = "include/conf/engines.yaml", application.engine
            if file and job and name in of_job:
                where, whose = display(file), job.name
            problem = f"{name} of {whose} is not what it was when the night was planned"
            raise NexmarkError(f"{where}: {problem}; start the DAG run again")
    return confs


def _hide(confs: Mapping[str, str], mask: Callable[[str], None]) -> None:
    """Let no message and no log of this task show the secrets among `confs`."""
    values = [value for name, value in confs.items() if is_secret(name, value)]
    remember(values)
    for value in values:
        mask(value)


def _value(value: str) -> str:
    """Return a value as Java's properties files have it."""
    return ("\\" if value[:1] == " " else "") + value.translate(_ESCAPED)
