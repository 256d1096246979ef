"""The options that several verbs have, and what keeps a value from being taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Any, Literal

import typer

from nexmark.night.params import help_of

_SHOWN = 40


def given(text: str | None) -> str | None:
    """Refuse a text that is empty or has control characters; None, for the default, passes."""
    if text is None:
        return None
    if not text.strip():
        raise typer.BadParameter("is empty; give a value, or leave it out for the default")
    if not text.isprintable():
        shown = repr(text[:_SHOWN])
        raise typer.BadParameter(f"{shown} has a control character; write one line")
    return text


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return the parser of a whole number from ``low`` to ``high``."""

    def number(text: str) -> int:
        wanted = f"a whole number from {low} to {high}"
        text = str(text)
        if not re.fullmatch(r"[+-]?[0-9]{1,30}", text) or not low <= int(text) <= high:
            raise typer.BadParameter(f"{text[:_SHOWN]!r} is not {wanted}; correct it")
        return int(text)

    return number


def day(option: str, text: str) -> date:
    """Return the date in a text like 2026-11-03."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{option}: {text!r} is no date; write it like 2026-11-03"
        ) from None


def confs(texts: list[str] | None) -> list[str] | None:
    """Refuse a text that is not KEY=VALUE."""
    for text in texts or ():
        if "=" not in text:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    return texts


def confs_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Return the Spark confs in texts that ``confs`` has let pass."""
    return dict(text.split("=", 1) for text in texts or ())


def _text(help: str, *names: str) -> Any:
    return typer.Option(*names, callback=given, help=help)


Engine = Annotated[str | None, _text("Of engines.yaml (default: the newest).")]
Workload = Annotated[str | None, _text("Of workloads.yaml (default: smoke).")]
EngineWorkload = Annotated[str | None, _text("Of workloads.yaml (default: the engine's).")]
Queries = Annotated[str | None, _text(help_of("queries"))]
Against = Annotated[str | None, _text(help_of("against"))]
ClusterName = Annotated[str | None, _text("Of clusters.yaml (default: the first).")]
EngineCluster = Annotated[str | None, _text("Of clusters.yaml (default: the engine's).")]
Mode = Annotated[Literal["bounds", "paired"] | None, typer.Option(help=help_of("mode"))]
Repetitions = Annotated[
    int | None,
    typer.Option(parser=whole(1, 100), metavar="N", help=help_of("repetitions")),
]
CandidateConf = Annotated[
    list[str] | None,
    typer.Option(
        callback=confs,
        metavar="KEY=VALUE",
        help=f"{help_of('candidate_conf')} Repeat for more.",
    ),
]
Compatibility = Annotated[
    bool | None,
    typer.Option("--compatibility/--no-compatibility", help=help_of("compatibility")),
]
Port = Annotated[int, typer.Option(parser=whole(1, 65535), metavar="N", help="Of Airflow.")]
Database = Annotated[
    str | None, typer.Option("--db", help="Database URL (default: $NEXMARK_DB, else in .nexmark).")
]
By = Annotated[str | None, _text("Who does it (default: the user of this process).")]
Optional = Annotated[str | None, typer.Option(callback=given)]
