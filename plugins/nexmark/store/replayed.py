"""Paired nights as CSV for ``python -m nexmark.verdict --nights``, which judges them again.

What a person accepted or the gate was set to is not in it: only what was measured. A query that is
not proven right has one more pair that is no measurement (its value is nan), so that it is INVALID
there too; a repetition that is missing has no row.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from nexmark.config.paths import safe_name
from nexmark.store.models import CanaryRow, Night, Repetition
from nexmark.store.paired import ARMS, read_night
from nexmark.store.records import CANDIDATE, CPU, FIRST, FRESH, PAIRED
from nexmark.verdict.nights import Measured
from nexmark.verdict.nights import Night as JudgedNight
from nexmark.verdict.stored_nights import CANARY, COLUMNS, OPTIONAL

NAME = "nights.csv"
Row = dict[str, Any]


def write_nights(session: Session, directory: Path) -> dict[str, int]:
    """Write the paired nights and return how many there are, by the name of the file.

    Only comparable nights are judged together: ``nights.csv`` has those of the newest night's
    engine, workload, cluster and shape, every other series has a file of its own beside it.
    """
    series: dict[tuple[str, ...], list[Night]] = {}
    newest_first = (
        select(Night).where(Night.mode == PAIRED).order_by(Night.started.desc(), Night.id)
    )
    for night in session.scalars(newest_first):
        place = (night.engine, night.workload, night.cluster, night.shape)
        series.setdefault(place, []).append(night)
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


def rows_of(session: Session, night: Night) -> Iterator[Row]:
    """Return the rows of one night."""
    judged = read_night(session, night).night
    positions = _positions(session, night.id)
    facts = {"night": night.id, "asked": judged.asked, "queries": " ".join(judged.expected)}
    for row in (*_figures(judged), *_wrong(judged)):
        place = (row["query"], row["arm"], row["stage"], row["pair"])
        baseline = judged.baseline.get(row["query"], "")
        yield {**facts, "baseline": baseline, "order": positions.get(place), **row}
    for row in _canaries(session, night.id):
        yield {"night": night.id, **row}


def _figures(night: JudgedNight) -> Iterator[Row]:
    for one in night.measured:
        for stage, pairs in ((FIRST, one.pairs), (FRESH, one.fresh)):
            for pair in pairs:
                for arm, value in zip(ARMS, (pair.candidate, pair.baseline), strict=True):
                    if value is not None:
                        yield _row(one, stage, pair.number, arm, value)


def _wrong(night: JudgedNight) -> Iterator[Row]:
    """Return a pair that is no measurement for each metric of what is not proven right."""
    measured: dict[str, list[Measured]] = {}
    for one in night.measured:
        measured.setdefault(one.query, []).append(one)
    for query in night.invalid:
        for one in measured.get(query) or [Measured(query, CPU, ())]:
            number = 1 + max((pair.number for pair in one.pairs), default=0)
            yield _row(one, FIRST, number, CANDIDATE, math.nan)


def _row(one: Measured, stage: int, pair: int, arm: str, value: float) -> Row:
    return {
        "query": one.query,
        "basis": one.basis,
        "stage": stage,
        "pair": pair,
        "arm": arm,
        "metric": one.metric,
        "value": repr(float(value)),
    }


def _positions(session: Session, run: str) -> dict[tuple[str, str, int, int], int | None]:
    columns = (Repetition.query, Repetition.arm, Repetition.stage, Repetition.number)
    rows = session.execute(
        select(*columns, Repetition.position).where(Repetition.night_id == run)
    ).all()
    return {(row[0], row[1], row[2], row[3]): row[4] for row in rows}


def _canaries(session: Session, run: str) -> Iterable[Row]:
    query = select(CanaryRow).where(CanaryRow.night_id == run)
    readings: Sequence[CanaryRow] = session.scalars(
        query.order_by(CanaryRow.taken, CanaryRow.id)
    ).all()
    for order, reading in enumerate(readings, 1):
        yield {
            "query": CANARY,
            "arm": reading.moment,
            "order": order,
            "metric": reading.metric,
            "value": repr(math.nan if reading.value is None else reading.value),
            "host": reading.host,
            "group": reading.group,
        }


__all__ = ["NAME", "rows_of", "write_nights"]
