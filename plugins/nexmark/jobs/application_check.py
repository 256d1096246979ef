"""What a night will do with an application of a person's own, before it has run once."""

from nexmark.config.application_models import JobApplication
from nexmark.secrets import hidden_arguments, shown_confs


def description(name: str, application: JobApplication) -> list[str]:
    """Return what runs, how it ends, and by what it is right, a line each."""
    arguments, _ = hidden_arguments(application.args)
    main = " ".join(filter(None, [application.file_name, application.java_class]))
    lines = [f"{name}: spark-submit of each build runs {main} as it is"]
    if arguments:
        lines.append(f"arguments: {' '.join(arguments)}")
    for key, paths in application.shipped.items():
        if paths:
            lines.append(f"{key}: {', '.join(paths)}")
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
