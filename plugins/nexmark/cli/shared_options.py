"""The options that several verbs have, and the checks of their values."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nexmark import model
from nexmark.config import load, paths
from nexmark.errors import suggest
from nexmark.model import Say, query_name
from nexmark.night.params import BUILD as WRITTEN
from nexmark.night.params import help_of
from nexmark.secrets import without_secrets
from nexmark_jobs.host.whole_files import write_whole

if TYPE_CHECKING:
    from nexmark.engines import Build
    from nexmark.store import Store
    from nexmark.store.table_rows import NightRow

BUILD = f"as {WRITTEN}"
#: The context settings of a verb that passes the arguments behind its name on as they are.
PASSED_ON: dict[str, Any] = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}
_SHOWN = 40


def given(text: str | None) -> str | None:
    """Refuse a text that is empty or has control characters; let None pass, for the default."""
    if text is None:
        return None
    if not text.strip():
        raise typer.BadParameter("is empty; give a value, or leave it out for the default")
    if not text.isprintable():
        raise typer.BadParameter(f"{text[:_SHOWN]!r} has a control character; write one line")
    return text


def absolute(text: str | None) -> str | None:
    """Return the absolute path of a directory, as Airflow needs it; refuse an empty text."""
    checked = given(text)
    return None if checked is None else str(Path(checked).expanduser().resolve())


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return a function that parses a whole number from ``low`` to ``high``."""

    def parse(text: str) -> int:
        wanted = f"a whole number from {low} to {high}"
        text = str(text)
        if not re.fullmatch(r"[+-]?[0-9]{1,30}", text) or not low <= int(text) <= high:
            raise typer.BadParameter(f"{text[:_SHOWN]!r} is not {wanted}; correct it")
        return int(text)

    return parse


def day(option: str, text: str) -> date:
    """Return the date in the value of an option, a text like 2026-11-03."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        problem = f"{text!r} is not a date; write it like 2026-11-03"
        raise typer.BadParameter(f"{option}: {problem}") from None


def confs(texts: list[str] | None) -> list[str] | None:
    """Refuse a text that is not KEY=VALUE."""
    for text in texts or ():
        if "=" not in text:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE")
    return texts


def confs_of(texts: Sequence[str] | None) -> dict[str, str]:
    """Return the Spark confs by key from texts KEY=VALUE."""
    return dict(text.split("=", 1) for text in texts or ())


def new(out: Path | None) -> Path | None:
    """Refuse a file that exists, and a file whose directory does not."""
    if out is not None and (out.exists() or not out.parent.is_dir()):
        raise typer.BadParameter(f"{out} exists, or its directory does not; name a new one")
    return out


def write(out: Path | None, results: Any) -> None:
    """Write the results as JSON to the file of --out; do nothing if none is given."""
    if out is not None:
        write_whole(out, json.dumps(results, indent=1) + "\n")


def known_query(query: str, jobs: Iterable[str] = ()) -> None:
    """Refuse a query that does not exist; `jobs` are further names, to choose from."""
    from nexmark_jobs.queries import QUERIES

    known = [*QUERIES, *jobs]
    if query not in known:
        raise typer.BadParameter(f"--query: unknown query {query!r}; {suggest(query, known)}")


def given_query(text: str | None) -> str | None:
    """Return the name of a query as the package writes it, of several as well: Q5 is q5."""
    checked = given(text)
    return None if checked is None else query_name(checked)


def comparable_query(query: str) -> None:
    """Refuse a query that does not exist, or whose result differs from run to run."""
    from nexmark_jobs.queries import QUERIES

    known_query(query)
    if not QUERIES[query].deterministic:
        problem = f"the result of {query} differs from run to run; give another query"
        raise typer.BadParameter(f"--query: {problem}")


def build_of(engine: str | None, say: Say) -> "tuple[str, Build]":
    """Return the name and the build of an engine; without a name, of the newest engine."""
    from nexmark.engines import usable

    chosen = load().engine(engine)
    return chosen.name, usable(chosen.build, paths.builds_dir(), say=say)


def on_stderr(text: str) -> None:
    """Print a line of progress on stderr at once; the output of a verb goes to stdout."""
    print(without_secrets(text), file=sys.stderr, flush=True)


def opened(url: str | None) -> "Store":
    """Return the results database; NexmarkError where there is none."""
    from nexmark.store import open_store
    from nexmark.store.connecting import INTERACTIVE_TIMEOUT_S

    return open_store(url or paths.database_url(), create=False, patience_s=INTERACTIVE_TIMEOUT_S)


def named_run(store: "Store", run: str, of_engine: str | None) -> "NightRow":
    """Return the run that --run names, and say which one is the latest; NexmarkError for none.

    Args:
        store: The results database.
        run: The value of --run.
        of_engine: The value of --engine, which belongs to --run latest.
    """
    check_latest(run, of_engine)
    night = store.find_run(run, of_engine)
    if run == model.LATEST:
        on_stderr(f"latest: {night.id}")
    return night


def check_latest(run: str, of_engine: str | None) -> None:
    """Refuse an engine beside a run that is named."""
    if of_engine is not None and run != model.LATEST:
        raise typer.BadParameter("--engine: a run has its engine; give it with --run latest only")


def text(help: str | None = None, metavar: str | None = None) -> Any:
    """Return an option whose value is a text that is not empty."""
    return typer.Option(callback=given, help=help, metavar=metavar)


def query(help: str) -> Any:
    """Return an option whose value is the name of a query."""
    return typer.Option(callback=given_query, help=help)


def number(low: int, high: int, metavar: str = "N", help: str | None = None) -> Any:
    """Return an option whose value is a whole number.

    Args:
        low: The least value.
        high: The greatest value.
        metavar: The letter for the value in the help.
        help: The help text.
    """
    return typer.Option(parser=whole(low, high), metavar=metavar, help=help)


def confs_option(help: str) -> Any:
    """Return an option whose value is a Spark conf, and which can be repeated."""
    return typer.Option(callback=confs, metavar="KEY=VALUE", help=f"{help} Repeat for more.")


Engine = Annotated[str | None, text("The engine, of engines.yaml (default: the newest).")]
Workload = Annotated[str | None, text("The workload, of workloads.yaml (default: smoke).")]
SoakWorkload = Annotated[str | None, text("The workload, of workloads.yaml (default: soak).")]
CompareWorkload = Annotated[str | None, text("The workload, of workloads.yaml (default: compare).")]
EngineWorkload = Annotated[
    str | None, text("The workload, of workloads.yaml (default: the engine's).")
]
Queries = Annotated[str | None, text(help_of("queries"))]
Against = Annotated[str | None, text(help_of("against"))]
ClusterName = Annotated[str | None, text("The cluster, of clusters.yaml (default: the first).")]
EngineCluster = Annotated[
    str | None, text("The cluster, of clusters.yaml (default: the engine's).")
]
Mode = Annotated[model.Mode | None, typer.Option(help=help_of("mode"))]
Repetitions = Annotated[int | None, number(1, 100, help=help_of("repetitions"))]
CandidateConf = Annotated[list[str] | None, confs_option(help_of("candidate_conf"))]
CandidateJob = Annotated[
    str | None,
    typer.Option(callback=absolute, metavar="DIR", help=help_of("candidate_job")),
]
Conf = Annotated[list[str] | None, confs_option("A Spark conf of the query.")]
Compatibility = Annotated[
    bool | None, typer.Option("--compatibility/--no-compatibility", help=help_of("compatibility"))
]
Run = Annotated[str, typer.Option(help="The name of the run, a unique part of it, or latest.")]
Continued = Annotated[
    str | None,
    typer.Option(
        "--continue",
        metavar="RUN",
        callback=given,
        help="Go on with the queries that a run (or latest) left undecided; its pairs count. "
        "Begin again with those that were INVALID, or not measured.",
    ),
]
OfEngine = Annotated[str | None, text("With --run latest: the newest run of this engine.")]
Port = Annotated[int, number(1, 65535, help="The port of Airflow.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        help="The URL of the results database (default: $NEXMARK_DB, or a file in .nexmark).",
    ),
]
By = Annotated[
    str | None, text("Who decides; the user of this process is on record beside this name.")
]
Seed = Annotated[int, number(0, 2**31 - 1, "S", "The seed of the events.")]
Out = Annotated[
    Path | None, typer.Option(callback=new, help="A new file for all results, as JSON.")
]
