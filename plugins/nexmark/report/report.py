"""The report of a night: as text, CSV and JSON, from the results database."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nexmark.report.alarms import alarm_lines
from nexmark.report.attribution import attribution_lines
from nexmark.report.health import health
from nexmark.report.rows import Row, rows_of, suite_of
from nexmark.report.summary import failed, summary
from nexmark.report.table import render_table
from nexmark.store import Store
from nexmark.store.accepting import confs_of_candidate
from nexmark.store.models import Base, Night, Repetition

SCHEMA_VERSION = 1
DERIVED = ("cores", "throughput_per_core")
NOT_IN_CSV = frozenset({"id", "night_id", "batch_list", "confs"})


@dataclass(frozen=True)
class Report:
    """A night with its rows; ``failed``: whether it is red.

    ``lines`` are the three that matter, with one on each red query that can be explained, and how
    far to trust them; ``alarms`` tell since which build it is.
    """

    night: Night
    rows: tuple[Row, ...]
    lines: tuple[str, ...]
    failed: bool
    alarms: tuple[str, ...] = ()

    def text(self) -> str:
        """Return what a person reads: a heading, the table, the three lines, the alarms."""
        return "\n".join([self.heading(), render_table(self.rows), *self.lines, *self.alarms])

    def heading(self) -> str:
        """Return what was measured, in one line."""
        night = self.night
        count = max((row.repetitions for row in self.rows), default=0)
        times = "1 repetition" if count == 1 else f"medians of {count} repetitions"
        place = f"{night.engine}, workload {night.workload}, cluster {night.cluster}"
        tried = f"; {confs_of_candidate(night)}" if night.candidate_conf else ""
        when = f"{night.started:%Y-%m-%d %H:%M} UTC"
        return f"Nexmark on {place}, {when}, {times}{tried}. Run {night.id}"


def make_report(store: Store, run: str) -> Report:
    """Return the report of a run; StoreError when the run is not known."""
    night = store.find_run(run)
    rows, suite = tuple(rows_of(store, night)), suite_of(store, night)
    what, why, after = summary(night, rows, suite)
    explained = attribution_lines(store, night, rows)
    lines = [what, why, *explained, after, *health(store, night, rows)]
    alarms = tuple(alarm_lines(store, night))
    return Report(night, rows, tuple(lines), failed(rows, suite), alarms)


def write_report(directory: Path, store: Store, run: str) -> Report:
    """Write the report of a run into a directory and return it.

    table.txt        what a person reads
    results.csv      one line per query, raw numbers
    repetitions.csv  one line per repetition, every figure
    results.json     all of it, with verdicts and validations
    """
    report = make_report(store, run)
    repetitions = [_plain(row) for row in store.repetitions(report.night.id)]
    content = {
        "schema_version": SCHEMA_VERSION,
        "night": _plain(report.night),
        "failed": report.failed,
        "summary": list(report.lines),
        "alarms": list(report.alarms),
        "rows": [_flat(row) for row in report.rows],
        "verdicts": [_plain(row) for row in store.verdicts(report.night.id)],
        "validations": [_plain(row) for row in store.validations(report.night.id)],
        "repetitions": repetitions,
    }
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / "table.txt", report.text() + "\n")
    names = [x.name for x in fields(Row)]
    _write(directory / "results.csv", _csv([*names, *DERIVED], [_flat(x) for x in report.rows]))
    columns = [x.name for x in Repetition.__table__.columns if x.name not in NOT_IN_CSV]
    _write(directory / "repetitions.csv", _csv(columns, repetitions))
    _write(directory / "results.json", json.dumps(content, indent=1, default=_json) + "\n")
    return report


def _flat(row: Row) -> dict[str, Any]:
    return {**asdict(row), **{name: getattr(row, name) for name in DERIVED}}


def _plain(row: Base) -> dict[str, Any]:
    return {column.name: getattr(row, column.name) for column in row.__table__.columns}


def _json(value: object) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
