"""What came of each date of a backfill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from nexmark.backfill.airflow import DagRun
from nexmark.config import paths

if TYPE_CHECKING:
    from nexmark.store import Store


@dataclass(frozen=True)
class Outcome:
    """What came of a date: `state` is green, red, no build, or why there was no night."""

    day: date
    build: str
    state: str
    verdicts: str
    failed: bool


def outcomes(dag_id: str, found: Sequence[DagRun]) -> list[Outcome]:
    """What came of the runs of a backfill."""
    from nexmark.store import open_store

    with open_store(paths.database_url()) as store:
        recorded = {row.id for row in store.nights()}
        return [_outcome(store, f"{dag_id}/{run.run_id}", run, recorded) for run in found]


def _outcome(store: Store, name: str, run: DagRun, recorded: set[str]) -> Outcome:
    if run.left_out:
        return Outcome(run.day, "-", f"left out: {run.left_out}", "", False)
    failed = run.state != "success"
    if name not in recorded:
        state = f"{run.state}, before a build was there" if failed else "no build"
        return Outcome(run.day, "-", state, "", failed)
    build = store.build(store.night(name).build_id)
    counts = Counter(row.value for row in store.verdicts(name) if row.decides)
    state = {"success": "green", "failed": "red"}.get(run.state, run.state)
    verdicts = ", ".join(f"{count} {value}" for value, count in counts.most_common())
    return Outcome(run.day, f"{build.version} {build.id}", state, verdicts, failed)


def table(rows: Sequence[Outcome]) -> str:
    """The outcomes for people."""
    lines = [("date", "build", "state", "verdicts")]
    lines += [(row.day.isoformat(), row.build, row.state, row.verdicts) for row in rows]
    widths = [max(len(line[place]) for line in lines) for place in range(4)]
    texts = ("  ".join(f"{x:<{w}}" for x, w in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(text.rstrip() for text in texts)


__all__ = ["Outcome", "outcomes", "table"]
