"""Exports the whole results database to files: CSV or Parquet.

It exports the paired nights, too, as CSV for ``python -m nexmark.verdict --nights``, which judges
them again. These files have measurements only, no acceptances and no settings of the gate. A query
that is not proven right has one more pair whose value is nan, so that the replay finds it INVALID,
too. A missing repetition has no row. A soak night has the figures of its samples, too, by which its
growth is judged. A night from which the gate does not learn has 0 in the column
``teaches``. A night whose raw rows were deleted is left out.
"""

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from sqlalchemy import Boolean, Column, Float, Integer, RowMapping, select
from sqlalchemy.orm import Session

from nexmark.config.paths import safe_name
from nexmark.home import whole_directory
from nexmark.measure.cpu_series import unpack
from nexmark.model import ARMS, CANARY, CPU, FIRST_ROUND, Arm, Mode, Status, grouped
from nexmark.store.gate_rows import read_night
from nexmark.store.store_error import StoreError
from nexmark.store.table_base import Base, Utc
from nexmark.store.table_rows import CanaryRow, NightRow, RepetitionRow, SeriesRow
from nexmark.verdict.aged_rows import named_figures
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.stored_nights import COLUMNS, OPTIONAL

NAME = "nights.csv"


def write_nights(session: Session, directory: Path) -> dict[str, int]:
    """Write a CSV file for each series of comparable paired nights; return the nights by file.

    The series with the newest night is in ``nights.csv``.
    """
    paired = select(NightRow).where(NightRow.mode == Mode.PAIRED, NightRow.rows_pruned.is_(None))
    newest_first = paired.order_by(NightRow.started.desc(), NightRow.id)
    series = grouped(
        session.scalars(newest_first),
        lambda night: night.comparable[:-1],  # all of them are in pairs
    )
    written: dict[str, int] = {}
    for series_of, nights in series.items():
        name = f"nights-{safe_name('-'.join(series_of))}.csv" if written else NAME
        with (directory / name).open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, [*COLUMNS, *OPTIONAL], lineterminator="\n")
            writer.writeheader()
            for night in reversed(nights):
                writer.writerows(rows_of(session, night))
        written[name] = len(nights)
    return written


class _Figure(NamedTuple):
    """The value of one arm in one pair of a query and metric."""

    measured: Measured
    stage: int
    pair: int
    arm: str
    value: float


_CsvRow: TypeAlias = dict[str, str | int | None]


def rows_of(session: Session, night: NightRow) -> Iterator[_CsvRow]:
    """Return the rows of one night for the CSV file: its figures, and its canary's readings."""
    judged = read_night(session, night)
    row = RepetitionRow
    columns = select(row.query, row.arm, row.stage, row.number, row.position)
    repetitions = session.execute(columns.where(row.night_id == night.id))
    positions = {tuple(place): position for *place, position in repetitions}
    of_night: _CsvRow = {
        "night": night.id,
        "teaches": int(night.teaches),
        "candidate": _candidate(night),
    }
    plan: _CsvRow = {"asked": judged.asked, "queries": " ".join(judged.expected)}
    for figure in (*_figures(judged), *_wrong(judged)):
        measured = figure.measured
        yield {
            **of_night,
            **plan,
            "baseline": judged.baseline.get(measured.query, ""),
            "order": positions.get((measured.query, figure.arm, figure.stage, figure.pair)),
            "query": measured.query,
            "basis": measured.basis,
            "metric": measured.metric,
            "stage": figure.stage,
            "pair": figure.pair,
            "arm": figure.arm,
            "value": repr(float(figure.value)),
        }
    for aged in _figures_of_samples(session, night):
        baseline = judged.baseline.get(str(aged["query"]), "")
        yield {**of_night, **plan, "baseline": baseline, "warmup": judged.warmup, **aged}
    for reading in _canaries(session, night.id):
        yield {**of_night, **reading}


def _candidate(night: NightRow) -> str:
    """Return the candidate build; if it alone had confs, with a hash of these confs.

    The replay adds up nights that have the same candidate.
    """
    if not night.candidate_conf:
        return night.build_id
    confs = json.dumps(night.candidate_conf, sort_keys=True)
    return f"{night.build_id} {hashlib.sha256(confs.encode()).hexdigest()[:8]}"


def _figures(night: MeasuredNight) -> Iterator[_Figure]:
    for one in night.measured:
        for stage, pairs in enumerate((one.pairs, *one.later), FIRST_ROUND):
            for pair in pairs:
                for arm, value in pair.arms:
                    if value is not None:
                        yield _Figure(one, stage, pair.number, arm, value)


def _wrong(night: MeasuredNight) -> Iterator[_Figure]:
    """Return a figure nan for each metric of each query that is not proven right."""
    measured = grouped(night.measured, lambda one: one.query)
    for query in night.invalid:
        for one in measured.get(query) or [Measured(query, CPU, ())]:
            number = 1 + max((pair.number for pair in one.pairs), default=0)
            yield _Figure(one, FIRST_ROUND, number, Arm.CANDIDATE, math.nan)


def _figures_of_samples(session: Session, night: NightRow) -> Iterator[_CsvRow]:
    """Return the figures of the samples of a soak night."""
    row = RepetitionRow
    wanted = select(row.query, row.stage, row.number, row.arm, row.ageing)
    wanted = wanted.where(row.night_id == night.id, row.status == Status.OK)
    wanted = wanted.where(row.arm.in_(ARMS), row.ageing.is_not(None))
    for query, stage, pair, arm, samples in session.execute(wanted.order_by(row.id)):
        for sample in samples or ():
            for metric, value in named_figures(sample):
                yield {
                    "query": query,
                    "metric": metric,
                    "stage": stage,
                    "pair": pair,
                    "arm": arm,
                    "batch": sample["batch"],
                    "value": repr(value),
                }


def _canaries(session: Session, run: str) -> Iterator[_CsvRow]:
    query = select(CanaryRow).where(CanaryRow.night_id == run)
    readings = session.scalars(query.order_by(CanaryRow.taken, CanaryRow.id))
    for order, reading in enumerate(readings, 1):
        yield {
            "query": CANARY,
            "metric": reading.metric,
            "host": reading.host,
            "group": reading.group,
            "arm": reading.moment,
            "order": order,
            "value": repr(math.nan if reading.value is None else reading.value),
        }


_AT_ONCE, _ROW_GROUP = 200, 50_000
_MOMENT = "moment"
_OTHER = "give another directory: --out DIR"
_TYPES = ((Utc, _MOMENT), (Boolean, "bool"), (Integer, "int64"), (Float, "double"))
_PACKED = "series"
_CUMULATIVE = ("executors", "python", "driver", "busy", "steal")
_SERIES = {
    "sampler_cores": "double",
    "executor_count": "int64",
    "executor_starts": "string",
    "executor_ends": "string",
    "executors_gone_before": "int64",
}
_SAMPLE = {"repetition_id": "int64", "host": "string"} | dict.fromkeys(
    ("time", *_CUMULATIVE), "double"
)

Columns: TypeAlias = Mapping[str, str]
"""The columns of an exported table, with Arrow's names of their types."""
Rows: TypeAlias = Iterable[Mapping[str, object] | RowMapping]
"""The rows of an exported table: the values by the name of their column."""


def export(session: Session, directory: Path, form: str) -> Mapping[str, int]:
    """Write every table and the paired nights into a new directory; return the rows by file.

    ``form`` is ``csv`` or ``parquet``. If writing fails, no directory is left. StoreError if the
    directory exists and is not empty, or if a file cannot be written.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "is not empty" if directory.is_dir() else "is a file"
        raise StoreError(f"cannot export to {directory}: it {what}; {_OTHER}")
    try:
        with whole_directory(directory.resolve()) as temporary:
            written = {
                f"{name}.{form}": _WRITERS[form](columns, rows, temporary / f"{name}.{form}")
                for name, columns, rows in tables(session)
            }
            return {**written, **write_nights(session, temporary)}
    except OSError as error:
        raise StoreError(
            f"cannot export to {directory}: {error.strerror or error}; {_OTHER}"
        ) from error


def tables(session: Session) -> Iterator[tuple[str, Columns, Rows]]:
    """Return every table: its name, its columns and its rows.

    The table ``samples`` has the series of ``sample_series``, one row per sample, in cumulative
    CPU-seconds.
    """
    for table in Base.metadata.sorted_tables:
        columns = {column.name: _type(column) for column in table.columns}
        if table.name == SeriesRow.__tablename__:
            del columns[_PACKED]
            yield table.name, columns | _SERIES, _series(session)
            yield "samples", _SAMPLE, _samples(session)
        else:
            statement = select(table).order_by(*table.primary_key.columns)
            rows = session.execute(statement.execution_options(yield_per=_AT_ONCE))
            yield table.name, columns, rows.mappings()


def write_csv(columns: Columns, rows: Rows, path: Path) -> int:
    """Write a table as CSV, with empty fields for NULL; return the number of rows."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        count = 0
        for row in rows:
            values = (_text(row[name]) for name in columns)
            writer.writerow(
                value.isoformat() if isinstance(value, datetime) else value for value in values
            )
            count += 1
    return count


def write_parquet(columns: Columns, rows: Rows, path: Path) -> int:
    """Write a table as Parquet; return the number of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    moment = pa.timestamp("us", "UTC")
    schema = pa.schema(
        [(name, moment if kind == _MOMENT else kind) for name, kind in columns.items()]
    )
    left, count = iter(rows), 0
    try:
        with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            while group := list(islice(left, _ROW_GROUP)):
                values = {name: [_text(row[name]) for row in group] for name in schema.names}
                writer.write_table(pa.table(values, schema))
                count += len(group)
    except pa.ArrowException as error:
        raise StoreError(f"cannot write {path.name}: {error}; try --format csv") from error
    return count


def _text(value: object) -> object:
    """Return a list or an object as JSON text, any other value as it is."""
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value


def _type(column: Column[object]) -> str:
    """Return Arrow's name of the type of a column."""
    return next((name for kind, name in _TYPES if isinstance(column.type, kind)), "string")


def _stored(session: Session) -> Iterator[SeriesRow]:
    statement = select(SeriesRow).order_by(SeriesRow.id)
    for row in session.scalars(statement.execution_options(yield_per=_AT_ONCE)):
        yield row
        session.expunge(row)


def _series(session: Session) -> Rows:
    for row in _stored(session):
        series = unpack(row.series)
        yield {
            "id": row.id,
            "repetition_id": row.repetition_id,
            "host": row.host,
            "path": row.path,
            "interval_s": row.interval_s,
            "readings": row.readings,
            "sampler_cores": series.sampler_cores,
            "executor_count": series.executor_count,
            "executor_starts": series.executor_starts,
            "executor_ends": series.executor_ends,
            "executors_gone_before": series.executors_gone_before,
        }


def _samples(session: Session) -> Rows:
    for row in _stored(session):
        series = unpack(row.series)
        unknown = [None] * len(series.times)
        cumulative: dict[str, Sequence[float | None]] = {
            "executors": series.executors or unknown,
            "python": series.python or unknown,
            "driver": series.driver or unknown,
            "busy": series.busy or unknown,
            "steal": series.steal or unknown,
        }
        for place, time in enumerate(series.times):
            figures = {name: values[place] for name, values in cumulative.items()}
            yield {"repetition_id": row.repetition_id, "host": row.host, "time": time, **figures}


_WRITERS = {"csv": write_csv, "parquet": write_parquet}
