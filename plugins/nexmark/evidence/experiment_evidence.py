"""The results of an experiment for people: a line for each arm, and remarks below the lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from nexmark.attribution.explained import Attribution
from nexmark.store import Store
from nexmark.store.table_rows import ExperimentRow

HEADS = (
    "experiment",
    "query",
    "rows/batch",
    "arm",
    "CPU s/M",
    "saves",
    "interval",
    "wall s",
    "state rows",
    "exchanges",
    "text",
    "result",
)
"""The names of the columns of the table."""
_BAD = frozenset({"DIFFERS", "WRONG", "FAILED"})


@dataclass(frozen=True)
class ExperimentEvidence:
    """One measurement of an experiment, its arms in the order in which they were measured."""

    run: str
    measured: datetime
    arms: Sequence[ExperimentRow]

    @property
    def right(self) -> bool:
        """Whether all arms were measured, and all results that were compared are equal."""
        return not _BAD & {arm.outcome for arm in self.arms}

    @property
    def table(self) -> list[Sequence[str]]:
        """The table: the names of the columns, then a line for each arm."""
        return [HEADS, *map(cells, self.arms)]

    @property
    def lines(self) -> list[str]:
        """The lines below the table."""
        return remarks(self.arms)

    @property
    def explained(self) -> Iterator[tuple[str, Attribution]]:
        """The arms that were compared with the first one, by name, and why their costs differ."""
        from pydantic import TypeAdapter

        stored = TypeAdapter(Attribution)
        for arm in self.arms:
            if arm.attribution is not None:
                yield _name(arm), stored.validate_python(arm.attribution)


def experiments_of(store: Store, run: str | None = None) -> list[ExperimentEvidence]:
    """Return the measurements of experiments, the newest first; with ``run``, only this one."""
    measurements = groupby(store.experiments(run), key=lambda row: (row.run, row.measured))
    return [ExperimentEvidence(*key, tuple(rows)) for key, rows in measurements][::-1]


def cells(arm: ExperimentRow) -> list[str]:
    """Return the line of an arm in the table: a cell for each of HEADS."""
    head = [arm.name, arm.query, f"{arm.size:,}", arm.arm]
    if arm.outcome == "FAILED":
        return [*head, *["-"] * 7, arm.outcome]
    interval = f"{100 * (arm.lo or 0):.1f} to {100 * (arm.hi or 0):.1f}"
    return [
        *head,
        f"{arm.cpu_s_per_mevent:.2f}",
        "-" if arm.saves is None else f"{100 * arm.saves:.1f} %",
        "-" if arm.saves is None else interval if arm.pairs > 1 else "one pair",
        f"{arm.wall_s:.1f}",
        f"{arm.state_rows:,}",
        str(arm.exchanges),
        "-" if arm.published_gain_percent is None else f"{arm.published_gain_percent:.0f} %",
        arm.outcome,
    ]


def remarks(arms: Sequence[ExperimentRow]) -> list[str]:
    """Return the lines below the table.

    They have the question of each experiment, what the published text says, and the remarks on the
    arms: where a gain turns into a loss, why arms differ, what failed.
    """
    lines = []
    for _, group in groupby(arms, key=lambda arm: arm.name):
        of_experiment = list(group)
        lines.append(f"{of_experiment[0].name}: {of_experiment[0].question}")
        texts = {
            f"  the text: {arm.published_gain_percent:.0f} % of CPU, {arm.published_change}"
            for arm in of_experiment
            if arm.published_change
        }
        lines += sorted(texts)
        lines += [f"  {_name(arm)}: {arm.remarks}" for arm in of_experiment if arm.remarks]
    return lines


def _name(arm: ExperimentRow) -> str:
    return f"{arm.query} at {arm.size:,}, {arm.arm}"
