"""A night's answer for a stage: the gate's verdicts, and whether running queries survive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nexmark.config import paths
from nexmark.evidence.night_evidence import make_report
from nexmark.evidence.summary import GROSS, is_gross
from nexmark.model import RunKey
from nexmark.rollout.state import QueryStep, RolloutStage

if TYPE_CHECKING:
    from nexmark.evidence.rows import Row
    from nexmark.store import Store
    from nexmark.store.table_rows import CompatibilityRow


def judged(store: Store, stage: RolloutStage, run: str) -> RolloutStage:
    """The stage with what its night found.

    Red is what turns a night red. While the gate does not know the noise of a query, so is one
    that is slower by more than 10 % in every pair: nobody would go on from there.
    """
    report = make_report(store, run)
    survive = {row.query: row for row in report.upgrades.rows}
    steps = [_step(row, survive.get(row.query)) for row in report.rows]
    red = report.failed or any(step.red for step in steps)
    key = RunKey.parse(run)
    page = paths.run_dir(key.dag_id, key.run_id) / "report" / "evidence.html"
    return stage.model_copy(
        update={
            "night": run,
            "evidence": str(page),
            "steps": tuple(steps),
            "state": "red" if red else "green",
            "why": _why(report.lines, steps) if red else "",
        }
    )


def _why(lines: tuple[str, ...], steps: list[QueryStep]) -> str:
    """Return what stopped the stage: queries, or else the night's own reason."""
    named = [f"{step.query} {step.red}" for step in steps if step.red]
    return " | ".join(named) or lines[0]


def _step(row: Row, survives: CompatibilityRow | None) -> QueryStep:
    red = f"{row.verdict}: {row.reason}" if row.red else ""
    if is_gross(row):
        red = f"{row.verdict}: every pair is slower by more than {GROSS - 1:.0%}"
    found = {}
    if survives is not None:
        names = ("outcome", "forward", "backward")
        found = {name: getattr(survives, name) for name in names} | {"carried": survives.reason}
    return QueryStep(
        query=row.query,
        verdict=row.verdict,
        ratio=row.ratio,
        lo=row.lo,
        hi=row.hi,
        red=red,
        **found,
    )
