"""What a night will do with an application of a person's own, before it has run once."""

from collections.abc import Sequence
from pathlib import Path

from nexmark.config import Job
from nexmark.config.application_models import JobApplication
from nexmark.secrets import hidden_arguments, shown_confs


def description(name: str, application: JobApplication) -> list[str]:
    """Return what runs, how it ends, and by what it is right, a line each."""
    arguments, _ = hidden_arguments(application.args)
    main = " ".join(filter(None, [application.file_name, application.java_class]))
    lines = [f"{name}: spark-submit of each build runs {main} as it is"]
    if arguments:
        lines.append(f"arguments: {' '.join(arguments)}")
    if application.confs:
        lines.append(f"confs: {shown_confs(application.confs)}")
    ends = "by itself" if application.ends_itself else f"stopped by SIGTERM {application.ends}"
    return [
        *lines,
        f"ends: {ends}",
        f"right: {_right(application)}",
        f"next: nexmark run --queries {name}",
    ]


def _right(application: JobApplication) -> str:
    if not application.output:
        return "by its exit code alone; name its output, and the rows of the builds are compared"
    written = ", ".join(f"{below} ({kind})" for below, kind in application.output.items())
    return f"by its exit code, and by a digest of the rows in {written}"


def unreadable(job: Job) -> Sequence[str]:
    """Return a line if the input is a path of this machine that is not there."""
    source = job.application.input if job.application else None
    if source is None or not source.startswith("/") or Path(source).exists():
        return []
    return [f"input: {source} is not on this machine; correct the path"]
