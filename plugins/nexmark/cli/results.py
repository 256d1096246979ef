"""The verbs about recorded nights: history, nights, show, report, export; verify, validate, replay.

RUN is the name of a run as `nexmark nights` prints it, any part of it that is unique, or latest.
"""

import csv
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from nexmark.cli import shared_options as option
from nexmark.cli.acceptance import TIME, Limit, place, queries
from nexmark.errors import ConfigError, NexmarkError
from nexmark.model import GROWTH, SUITE, Value, query_name
from nexmark.terminal import columns, sentences

if TYPE_CHECKING:
    from nexmark.store.query_history import LevelChange, QueryHistory, RatioPoint
    from nexmark.store.table_rows import AcceptanceRow
    from nexmark.verdict.verdict import Verdict

#: The highest confidence in a date that is printed.
_SURE = 0.999
_SERIES = ("night", "build", "against", "ratio", "95 % interval", "pairs", "verdict")
_OfTheNewest = Annotated[str | None, option.text("Default: of the newest night.")]
_VERDICTS = ("query", "verdict", "ratio", "pairs", "")
_INDENT = 4 * " "
_ACCEPTED = ("id", "accepted", "state", "ratio", "run", "by", "reason")


def out_directory(text: str) -> Path:
    """Return the directory of --out; refuse an empty text."""
    if not text.strip():
        raise typer.BadParameter("where to? give --out DIR")
    return Path(text)


def _query(text: str) -> str:
    if not text.strip():
        raise typer.BadParameter("which query? give --query q5")
    return query_name(text)


def history(
    query: Annotated[
        str, typer.Option(parser=_query, metavar="Q", help="The query, as q5; or suite.")
    ],
    metric: Annotated[str | None, option.text("The metric (default: what decides).")] = None,
    engine: _OfTheNewest = None,
    workload: _OfTheNewest = None,
    cluster: _OfTheNewest = None,
    limit: Limit = 30,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"], help="The day from which the accepted builds are multiplied."
        ),
    ] = None,
    format: Annotated[
        Literal["table", "csv"], typer.Option(help="How the nights are printed.")
    ] = "table",
    db: option.Database = None,
) -> None:
    """Show one query over all nights, and what changed.

    The table has the newest nights, --format csv has all of them. Without engine, workload or
    cluster, it takes the newest night's.
    """
    from nexmark.evidence.creep import creeps_of

    with option.opened(db) as opened, opened.at_one_moment() as store:
        wanted = {"engine": engine, "workload": workload, "cluster": cluster}
        recorded = store.history(query, metric, wanted)
        measured = [point for point in recorded.points if point.verdict.shift is not None]
        day = f"{since:%Y-%m-%d}" if since else None
        if measured and format == "table":
            last, now = store.night(measured[-1].verdict.night), datetime.now(UTC)
            creeps = creeps_of(store, last, query, recorded.metric, day, now)
        else:
            creeps = []
    if format == "csv":
        write_history(recorded, sys.stdout)
    else:
        _print_history(recorded, limit)
        print("accepted builds, multiplied:" if creeps else "accepted builds, multiplied: none")
        for creep in creeps:
            print(f"  {creep.words}")


def _print_history(history: "QueryHistory", limit: int) -> None:
    """Print the last ``limit`` nights, all changes and all acceptances."""
    first, count = history.points[0], len(history.points)
    shown = f", the last {limit}" if count > limit else ""
    where = f"{history.engine} on {history.workload}, cluster {history.cluster}"
    print(f"{history.query}, {history.metric}: {where}")
    print(f"{count} nights since {first.started:{TIME}}{shown}")
    print(columns(_SERIES, [_series(point) for point in history.points[-limit:]]) + "\n")
    missing = "none" if history.paired else "not looked for, since none of these nights has pairs"
    print("changes that lasted:" if history.changes else f"changes that lasted: {missing}")
    for change in history.changes:
        print(f"  {_change(change)}")
    print("acceptances:" if history.acceptances else "acceptances: none")
    if history.acceptances:
        print(columns(_ACCEPTED, [_acceptance(row, state) for row, state in history.acceptances]))


def write_history(history: "QueryHistory", stream: TextIO) -> None:
    """Write a row of CSV for each night.

    The column ``change`` has the ratio of a change that begins with the night.
    """
    changes = {change.first.verdict.night: change.change.ratio for change in history.changes}
    lines = [_csv_line(point, changes.get(point.verdict.night)) for point in history.points]
    writer = csv.DictWriter(stream, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)


def _csv_line(point: "RatioPoint", change: float | None) -> dict[str, object]:
    verdict = point.verdict
    return {
        "started": point.started.isoformat(),
        "night": verdict.night,
        "build": verdict.build,
        "version": point.version,
        "baseline": point.baseline,
        "mode": verdict.mode,
        "verdict": verdict.value,
        "decides": verdict.decides,
        "figure": verdict.candidate,
        "ratio": verdict.ratio,
        "lo": verdict.lo,
        "hi": verdict.hi,
        "pairs": verdict.pairs,
        "fresh_pairs": verdict.fresh_pairs,
        "acceptance_id": verdict.acceptance,
        "change": change,
    }


def _series(point: "RatioPoint") -> tuple[str, ...]:
    verdict = point.verdict
    fresh = f"+{verdict.fresh_pairs}" if verdict.fresh_pairs else ""
    accepted = " (accepted)" if verdict.acceptance is not None else ""
    known = verdict.lo is not None and verdict.hi is not None
    ratio = "-" if verdict.ratio is None else f"{verdict.ratio:.3f}"
    interval = f"{verdict.lo:.3f} to {verdict.hi:.3f}" if known else "-"
    if verdict.metric == GROWTH and verdict.candidate is not None:
        ratio = f"{verdict.candidate:.2f} times the limit"
        interval = "-" if verdict.baseline is None else f"baseline {verdict.baseline:.2f}"
    return (
        f"{point.started:{TIME}}",
        point.build_name,
        "itself" if point.baseline == verdict.build else point.baseline_name or "-",
        ratio,
        interval,
        "-" if ratio == "-" else f"{verdict.pairs}{fresh}",
        verdict.value + accepted,
    )


def _change(level: "LevelChange") -> str:
    ratio, sure = level.change.ratio, min(level.change.confidence, _SURE)
    change = f"{abs(ratio - 1):.1%} {'more' if ratio > 1 else 'less'}, {sure:.1%} sure"
    builds = f"from {level.last.build_name} to {level.first.build_name}"
    return f"{level.first.started:{TIME}}  {change}: {builds} (night {level.first.verdict.night})"


def _acceptance(row: "AcceptanceRow", state: str) -> tuple[str, ...]:
    size = "-" if row.size is None else f"{row.size:.3f}"
    return str(row.id), f"{row.accepted:{TIME}}", state, size, row.night_id, row.who, row.reason


def nights(
    limit: Limit = 20,
    every: Annotated[
        bool,
        typer.Option("--all", help="Why and what next for each run, and the metrics that inform."),
    ] = False,
    db: option.Database = None,
) -> None:
    """List the newest runs with their colours.

    The newest run of each DAG has its answer, why, what to do next, since when it is red, and what
    changed in the source.
    """
    from nexmark.evidence.night_evidence import make_report
    from nexmark.evidence.night_list import NOT_COMPARED, lines_of
    from nexmark.store.store import MOST_ROWS

    with option.opened(db) as opened, opened.at_one_moment() as store:
        newest = store.nights(min(limit, MOST_ROWS))
        if not newest:
            print("No run is recorded yet.")
        accepted = Counter(row.night_id for row in store.acceptances())
        explained: set[str] = set()
        for line in lines_of(store, newest):
            night, of = line.night, accepted[line.night.id]
            words = [f"{number} {one.word}" for one, number in line.counts]
            words += [f"{line.known} accepted"] if line.known else []
            words += [f"baseline of {of} queries"] if of else []
            colour = f"{line.colour:<{len(NOT_COMPARED)}}"
            print(f"{night.started:{TIME}}  {colour}  {', '.join(words)}".rstrip())
            print(f"    {night.id}\n    {place(night)}, {line.build.name}")
            if every or night.dag_id not in explained:
                explained.add(night.dag_id)
                print(sentences(make_report(store, night.id).first_lines, _INDENT))
            if every:
                print(sentences(_informing(store.verdicts(night.id)), _INDENT))


def _informing(verdicts: "Sequence[Verdict]") -> list[str]:
    """Return a line on the metrics that inform and whose verdict is not OK; [] without one."""
    words = [
        f"{row.query} {row.metric} {row.value}"
        for row in verdicts
        if not row.decides and row.value is not Value.OK
    ]
    return [f"Informing: {', '.join(words)}"] if words else []


def show(
    run: option.Run,
    engine: option.OfEngine = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also the metrics that inform, and all reasons.")
    ] = False,
    db: option.Database = None,
) -> None:
    """Show one run: its answer, why, and what next.

    Then the verdicts, what needs attention first. --all has the metrics that inform, too.
    """
    from nexmark.evidence.alarms import acknowledged, together
    from nexmark.evidence.night_evidence import make_report

    with option.opened(db) as opened, opened.at_one_moment() as store:
        night = option.named_run(store, run, engine)
        report = make_report(store, night.id)
        verdicts = store.verdicts(night.id)
        build = store.build(night.build_id).name
        acceptances = store.acceptances(night.engine, night.workload, night.cluster)
        accepted = together(acknowledged(acceptances, datetime.now(UTC)))
    print(sentences(report.first_lines))
    deciding = sorted((row for row in verdicts if row.decides), key=lambda row: row.value.attention)
    metrics = dict.fromkeys(row.metric for row in verdicts if row.decides)
    if deciding:
        print(f"\nWhat decides, {' and '.join(metrics)}:")
        print(columns(_VERDICTS, [_verdict(row) for row in deciding]))
    for metric in dict.fromkeys(row.metric for row in verdicts if not row.decides and every):
        print(f"\nWhat informs, {metric}:")
        rows = [row for row in verdicts if (row.metric, row.decides) == (metric, False)]
        print(columns(_VERDICTS, [_verdict(row) for row in rows]))
    if every:
        print("\nReasons:")
        reasons = [f"{row.query} {row.metric}: {row.value}: {row.reason}" for row in verdicts]
        print(sentences(reasons, _INDENT))
    elif informing := sum(not row.decides for row in verdicts):
        worth = sum(not row.decides and row.value is not Value.OK for row in verdicts)
        print(
            f"\n{informing} verdicts on metrics that inform, {worth} of them not OK: --all has them"
        )
    print(f"\nrun        {night.id}")
    print(f"started    {night.started:{TIME}}")
    print(f"place      {place(night)}")
    print(f"build      {build}")
    print(f"directory  {night.directory}")
    print("accepted for this engine and workload, newest last:")
    for group in accepted:
        first, state = group.first.row, group.first.state
        said = f"{queries(group.queries)}, by {first.who}: {first.reason or '-'} ({state})"
        print(f"  {first.accepted:{TIME}}  {first.night_id}  {said}")
    if not accepted:
        print("  nothing yet")


def _verdict(row: "Verdict") -> tuple[str, ...]:
    """Return the row of a verdict: its reason only where there is no ratio to say it."""
    known = row.ratio is not None and row.lo is not None and row.hi is not None
    return (
        row.query,
        row.value + (" (accepted)" if row.acceptance is not None else ""),
        f"{row.ratio:.3f} ({row.lo:.3f}-{row.hi:.3f})" if known else "-",
        "-" if row.ratio is None or row.query == SUITE else str(row.pairs + row.fresh_pairs),
        "" if known else row.reason,
    )


def report(
    run: option.Run,
    out: Annotated[Path | None, typer.Option(help="Also write table, CSV and JSON here.")] = None,
    engine: option.OfEngine = None,
    db: option.Database = None,
) -> None:
    """Print the table of a recorded run again."""
    from nexmark.evidence.night_evidence import make_report
    from nexmark.report.evidence_files import write_report
    from nexmark.report.table import report_text

    try:
        with option.opened(db) as store:
            run = option.named_run(store, run, engine).id
            made = make_report(store, run) if out is None else write_report(out, store, run)
    except OSError as error:
        raise NexmarkError(f"cannot write the report: {error}; give another --out") from None
    print(report_text(made))


def export(
    out: Annotated[
        Path, typer.Option(parser=out_directory, metavar="DIR", help="A new or empty directory.")
    ],
    format: Annotated[
        Literal["parquet", "csv"], typer.Option(help="The format of the files.")
    ] = "parquet",
    db: option.Database = None,
) -> None:
    """Write every table, and the nights for replay, as files."""
    with option.opened(db) as store:
        for name, count in store.export(out, format).items():
            what = "nights" if name.startswith("nights") else "rows"
            print(f"{count:>10} {what:<6} {out / name}")


def verify(
    directory: Annotated[Path, typer.Argument(help="The evidence of a sign-off.")],
    seal: Annotated[
        str | None,
        typer.Option(help="The seal that the task `evidence` logged; it must be the same."),
    ] = None,
) -> int:
    """Say whether the evidence of a sign-off is unchanged.

    0 if it is as it was written, 1 if not.
    """
    from nexmark.evidence import signoffs

    problems = signoffs.verify(directory)
    actual = signoffs.seal(directory)
    if seal and seal.lower() != actual:
        problems.append(f"seal: is {actual}, not the one given: the whole bundle was replaced")
    for problem in problems:
        print(f"{directory}: {problem}", file=sys.stderr)
    if not problems:
        print(f"{directory}: unchanged; seal {actual}")
    return 1 if problems else 0


def replay(context: typer.Context) -> int:
    """Judge the nights of an export again.

    nexmark replay --nights nights.csv [--gate gate.yaml]
    """
    from nexmark.verdict.__main__ import main

    return main(context.args)


def validate(
    query: Annotated[str, option.query("The query: q0 to q23, or q14_python_udf.")],
    events: Annotated[Path, typer.Option(help="A directory with dumped or recorded events.")],
    output: Annotated[Path, typer.Option(help="The directory that the query job wrote.")],
    sink: Annotated[
        Literal["parquet", "filesystem"],
        typer.Option(help="The sink of the job; only q10 has filesystem."),
    ] = "parquet",
    data_docs: Annotated[
        Path | None, typer.Option(help="Add the result to the Data Docs in this directory.")
    ] = None,
) -> int:
    """Check the output of one query job against the reference.

    0 if it is right, 1 if it is wrong, 2 if it cannot be checked.
    """
    from nexmark.expectations.contract import ExpectationsError
    from nexmark.expectations.suites import validate as checked

    docs = None if data_docs is None else str(data_docs)
    try:
        outcome = checked(query, str(output), str(events), docs, sink)
    except (ConfigError, ExpectationsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    numbers = outcome.statistics
    met = outcome.expectations_evaluated - outcome.expectations_failed
    print(
        f"{outcome.query}: {'right' if outcome.success else 'WRONG'}: {met} of "
        f"{outcome.expectations_evaluated} expectations met; {numbers['rows']} rows, reference "
        f"{numbers['reference_rows']}, from {numbers['events']} events in {numbers['seconds']} s"
    )
    for failure in outcome.failures:
        print(f"  {failure}")
    if outcome.docs:
        print(f"Data Docs: {outcome.docs}")
    return 0 if outcome.success else 1
