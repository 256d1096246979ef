"""Are the rows of a job of a person's own right, or at least always the same?

The job says which columns there are. With a reference, its rows are compared as a query's are.
Without one, the rows of both builds have to be equal. In any case two runs of one build over the
same input have to be equal.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.config import Job
from nexmark.expectations.comparable import plain_times, sorted_maps
from nexmark.expectations.contract import Column, Contract, ExpectationsError
from nexmark.expectations.findings import row_text
from nexmark.expectations.quoting import identifier
from nexmark.expectations.suites import ValidationOutcome, judge
from nexmark.expectations.tables import (
    Events,
    data_files,
    first_line,
    listed_files,
    load_output,
    open_events,
    open_laid_out,
)
from nexmark_jobs import boundary

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: A reference without rows proves nothing, unless there are few events, as in the boundary events.
_FEW_BIDS = "SELECT count(*) < 5000 FROM bid"
_FEW_ROWS = 5000
_EXAMPLES = 3
PROVEN, ARMS = "proven", "arms"
"""Statistics: whether a reference was compared (1 or 0), and the number of builds that agree."""


def validate_own(
    job: Job,
    output_dir: Path,
    events_dir: Path,
    data_docs_dir: Path | None = None,
    *,
    again_dir: Path | None = None,
    baseline_dir: Path | None = None,
    name: str = "",
) -> ValidationOutcome:
    """Validate the output of a job, as `suites.validate` does for a query.

    Args:
        job: The job.
        output_dir: The output of the candidate.
        events_dir: The events that it has read, or its own tables as they are laid out.
        data_docs_dir: The directory of the Data Docs to which the result is added, if any.
        again_dir: The output of a second run: of the baseline if there is one, else the candidate.
        baseline_dir: The output of the baseline.
        name: The name of the result in the Data Docs, by default the name of the job.

    Raises:
        ExpectationsError: An output, the events or the reference cannot be read.
    """
    started = time.monotonic()
    opened = open_events(events_dir) if job.own_tables is None else open_laid_out(events_dir)
    with opened as events:
        columns = _columns(events.connection, output_dir)
        entry = Contract(
            job.name,
            job.reference or "",
            columns,
            may_be_empty=_FEW_BIDS if job.own_tables is None else _few(events.count),
            reference=_statement(job.reference_text),
            compared=job.is_proven,
        )
        if unknown := [each for each in job.key if each not in entry.names]:
            listed = ", ".join(entry.names)
            raise ExpectationsError(f"key: {unknown[0]} is no column of the result; use {listed}")
        findings = list(_unequal(events.connection, job, output_dir, again_dir, baseline_dir))
        if job.is_proven:
            _check_reference(events, job, entry)
        output = load_output(events.connection, entry, output_dir, "parquet")
        outcome = judge(events, entry, output, data_docs_dir, name, job.added)
    statistics = {
        **outcome.statistics,
        PROVEN: int(job.is_proven),
        ARMS: 1 if baseline_dir is None else 2,
        "seconds": round(time.monotonic() - started, 3),
    }
    return replace(
        outcome,
        success=outcome.success and not findings,
        failures=(*findings, *outcome.failures),
        statistics=statistics,
    )


def reference_problem(job: Job) -> str:
    """Return why the reference of a job is not one SELECT of DuckDB, as one line; '' if it is."""
    import duckdb

    if not job.is_proven:
        return ""
    try:
        statements = duckdb.extract_statements(job.reference_text)
    except duckdb.Error as error:
        return f"{job.reference}: {first_line(error)}; correct it"
    if len(statements) != 1:
        return f"{job.reference}: it has {len(statements)} statements; write one SELECT"
    if statements[0].type != duckdb.StatementType.SELECT:
        return f"{job.reference}: its statement is no SELECT; write one"
    return ""


def _statement(text: str) -> str:
    """Return a SELECT without the `;` and the comments behind it."""
    import duckdb

    sql = text.encode()
    for offset, kind in reversed(duckdb.tokenize(text)):
        if kind != duckdb.token_type.comment and sql[offset:].strip()[:1] != b";":
            break
        sql = sql[:offset]
    return sql.decode()


def _few(rows: int) -> str:
    """Return the condition under which a reference over as many rows may have none."""
    return f"SELECT {rows} < {_FEW_ROWS}"


def validate_own_boundary(
    job: Job, output_dir: Path, data_docs_dir: Path | None = None
) -> ValidationOutcome:
    """Validate the output of a job over the boundary events; see `validate_own`."""
    with tempfile.TemporaryDirectory(prefix="nexmark-boundary-") as events_dir:
        boundary.write(Path(events_dir))
        name = f"{job.name}_boundary"
        return validate_own(job, output_dir, Path(events_dir), data_docs_dir, name=name)


def rows_apart(outputs: tuple[Path, Path], names: tuple[str, str], key: Sequence[str]) -> str:
    """Return how the rows of two outputs differ; '' if they are equal. See `differences`."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return differences(connection, outputs, names, key)


def _unequal(
    connection: DuckDBPyConnection,
    job: Job,
    output_dir: Path,
    again_dir: Path | None,
    baseline_dir: Path | None,
) -> Sequence[str]:
    """Return a line where two runs of a build, or the builds, put out different rows.

    Args:
        connection: A connection to DuckDB.
        job: The job.
        output_dir: The output of the candidate.
        again_dir: The output of the second run.
        baseline_dir: The output of the baseline; None to compare no builds.
    """
    first = baseline_dir or output_dir
    if again_dir is not None:
        names = ("one run", "another")
        if difference := differences(connection, (first, again_dir), names, job.key):
            causes = "now(), rand(), an order without a tie-break, a sum of floating numbers"
            remedy = f"look for {causes}"
            return [f"not deterministic over the same input: {difference}; {remedy}"]
    if baseline_dir is not None:
        names = ("the baseline", "the candidate")
        if difference := differences(connection, (baseline_dir, output_dir), names, job.key):
            return [f"the builds differ: {difference}"]
    return []


def differences(
    connection: DuckDBPyConnection,
    outputs: tuple[Path, Path],
    names: tuple[str, str],
    key: Sequence[str],
) -> str:
    """Return how many rows only one of two outputs has, with examples by key; '' if none.

    Args:
        connection: A connection to DuckDB.
        outputs: The directories of the outputs.
        names: What the line calls them.
        key: The columns that say which rows belong together; none to show rows by themselves.

    Raises:
        ExpectationsError: An output cannot be read.
    """
    one, other = map(_scan, outputs)
    if {*_columns(connection, outputs[0])} != {*_columns(connection, outputs[1])}:
        listed = [", ".join(map(str, _columns(connection, each))) for each in outputs]
        return f"{names[0]} has the columns {listed[0]}, {names[1]} has {listed[1]}"
    only = "({} EXCEPT ALL {})"
    columns = ", ".join(
        f"{sorted_maps(identifier(each.name), each.type)} AS {identifier(each.name)}"
        for each in _columns(connection, outputs[0])
    )
    left = only.format(f"SELECT {columns} FROM {one}", f"SELECT {columns} FROM {other}")
    right = only.format(f"SELECT {columns} FROM {other}", f"SELECT {columns} FROM {one}")
    counts = [
        _rows(connection, f"SELECT count(*) AS rows FROM {each}")[0]["rows"]
        for each in (left, right)
    ]
    if not any(counts):
        return ""
    of_one, of_other = (
        _rows(connection, f"FROM {each} ORDER BY ALL LIMIT {_EXAMPLES}") for each in (left, right)
    )
    shown = _by_key(connection, of_one or of_other, (left, right), names, key)
    if not shown:
        shown = [f"{names[0]} {row_text(row)}" for row in of_one]
        shown += [f"{names[1]} {row_text(row)}" for row in of_other]
    numbers = f"{counts[0]} of {names[0]}, {counts[1]} of {names[1]}"
    return f"rows that only one has: {numbers}, e.g. {'; '.join(shown[:_EXAMPLES])}"


def first_rows(output: Path, count: int) -> tuple[tuple[Column, ...], list[tuple[object, ...]]]:
    """Return the columns of an output, and its first rows in the order of their values."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows = connection.execute(f"FROM {_scan(output)} ORDER BY ALL LIMIT {count}").fetchall()
        return _columns(connection, output), rows


def _by_key(
    connection: DuckDBPyConnection,
    rows: Sequence[Mapping[str, Any]],
    sides: tuple[str, str],
    names: tuple[str, str],
    key: Sequence[str],
) -> list[str]:
    """Return for each row what both sides have for its key, without the columns that are equal.

    Args:
        connection: A connection to DuckDB.
        rows: Rows of one of the sides.
        sides: The rows of each side that the other has not, in parentheses.
        names: What the line calls the sides.
        key: The columns of the key; () for none.
    """
    shown = []
    for row in rows if key else ():
        same = " AND ".join(f"{identifier(each)} IS NOT DISTINCT FROM ?" for each in key)
        values = [row[each] for each in key]
        rows_of_key = [
            _rows(connection, f"FROM {side} WHERE {same} LIMIT 1", values) for side in sides
        ]
        known = [each[0] for each in rows_of_key if each]
        rest = [name for name in row if name not in key]
        if len(known) == len(rows_of_key):
            rest = [name for name in rest if known[0][name] != known[1][name]]
        texts = [
            row_text({name: each[0][name] for name in rest}) if each else "no row"
            for each in rows_of_key
        ]
        at = row_text({each: row[each] for each in key})
        shown.append(f"{at}: {names[0]} {texts[0]}, {names[1]} {texts[1]}")
    return shown


def _rows(
    connection: DuckDBPyConnection, sql: str, values: Sequence[object] = ()
) -> list[dict[str, Any]]:
    cursor = connection.execute(sql, values)
    names = [each[0] for each in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _scan(directory: Path) -> str:
    files = data_files(directory, "**/*.parquet") if directory.is_dir() else []
    if not files:
        raise ExpectationsError(f"{directory} holds no *.parquet: the job wrote nothing there")
    return f"read_parquet({listed_files(files)}, hive_partitioning = false)"


def _columns(connection: DuckDBPyConnection, directory: Path) -> tuple[Column, ...]:
    described = connection.execute(f"DESCRIBE FROM {_scan(directory)}").fetchall()
    return tuple(Column(name, plain_times(kind)) for name, kind, *_ in described)


def _check_reference(events: Events, job: Job, entry: Contract) -> None:
    """Raise ExpectationsError for a reference that is not one SELECT, or has other columns."""
    import duckdb

    if problem := reference_problem(job):
        raise ExpectationsError(problem)
    try:
        names = events.connection.sql(entry.reference).columns
    except duckdb.Error as error:
        raise ExpectationsError(f"{job.reference}: {first_line(error)}; correct it") from None
    if sorted(names) != sorted(entry.names):
        listed = f"has the columns {', '.join(names)}, and the job puts out"
        wanted = ", ".join(entry.names)
        raise ExpectationsError(f"{job.reference}: {listed} {wanted}; name them alike")
