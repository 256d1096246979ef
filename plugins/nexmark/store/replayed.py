"""Paired nights as CSV for ``python -m nexmark.verdict --nights``, which judges them again.

The files have only measurements, no acceptances and no settings of the gate. A query that is not
proven right has one more pair without a measurement (its value is nan), so that the replay finds it
INVALID too. A missing repetition has no row. A night that taught the gate nothing has 0 in the
column ``teaches``, so that the replay learns nothing from it either.
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
from nexmark.model import CANARY, COMPARABLE, CPU, Arm, Mode, Stage
from nexmark.store.gate_input import read_night
from nexmark.store.table_rows import CanaryRow, NightRow, RepetitionRow
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.stored_nights import COLUMNS, OPTIONAL

NAME = "nights.csv"
Row = dict[str, Any]


def write_nights(session: Session, directory: Path) -> dict[str, int]:
    """Write the paired nights and return how many there are, by the name of the file.

    Only comparable nights are judged together. ``nights.csv`` has the nights with the same engine,
    workload, cluster and shape as the newest night. Every other series has a file of its own.
    """
    series: dict[tuple[str, ...], list[NightRow]] = {}
    newest_first = (
        select(NightRow)
        .where(NightRow.mode == Mode.PAIRED)
        .order_by(NightRow.started.desc(), NightRow.id)
    )
    for night in session.scalars(newest_first):
        place = tuple(str(getattr(night, name)) for name in COMPARABLE if name != "mode")
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


def rows_of(session: Session, night: NightRow) -> Iterator[Row]:
    """Return the rows of one night."""
    judged = read_night(session, night)
    positions = _positions(session, night.id)
    own = {"night": night.id, "teaches": int(night.teaches)}
    facts = {**own, "asked": judged.asked, "queries": " ".join(judged.expected)}
    for row in (*_figures(judged), *_wrong(judged)):
        place = (row["query"], row["arm"], row["stage"], row["pair"])
        baseline = judged.baseline.get(row["query"], "")
        yield {**facts, "baseline": baseline, "order": positions.get(place), **row}
    for row in _canaries(session, night.id):
        yield {**own, **row}


def _figures(night: MeasuredNight) -> Iterator[Row]:
    for one in night.measured:
        for stage, pairs in ((Stage.FIRST, one.pairs), (Stage.FRESH, one.fresh)):
            for pair in pairs:
                for arm, value in pair.arms:
                    if value is not None:
                        yield _row(one, stage, pair.number, arm, value)


def _wrong(night: MeasuredNight) -> Iterator[Row]:
    """Return a pair without a measurement for each metric of a query that is not proven right."""
    measured: dict[str, list[Measured]] = {}
    for one in night.measured:
        measured.setdefault(one.query, []).append(one)
    for query in night.invalid:
        for one in measured.get(query) or [Measured(query, CPU, ())]:
            number = 1 + max((pair.number for pair in one.pairs), default=0)
            yield _row(one, Stage.FIRST, number, Arm.CANDIDATE, math.nan)


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
    columns = (RepetitionRow.query, RepetitionRow.arm, RepetitionRow.stage, RepetitionRow.number)
    rows = session.execute(
        select(*columns, RepetitionRow.position).where(RepetitionRow.night_id == run)
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
