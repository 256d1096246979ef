"""Whether running queries survive the change from the baseline to the candidate of a night."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from textwrap import shorten

from nexmark.store import Store
from nexmark.store.table_rows import CompatibilityRow, NightRow

_WIDTH = 200


@dataclass(frozen=True)
class Upgrades:
    """The stateful queries that were checked; none where the night did not check them."""

    rows: tuple[CompatibilityRow, ...] = ()

    @property
    def red(self) -> tuple[str, ...]:
        """The queries that would not survive."""
        return tuple(row.query for row in self.rows if row.red)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines for a person: one on all queries, one on each that would not survive."""
        if not self.rows:
            return ()
        counted = Counter(row.outcome for row in self.rows)
        classes = ", ".join(f"{number} {outcome}" for outcome, number in counted.most_common())
        every = f"Running queries, from the baseline to the candidate and back: {classes}."
        return (
            every,
            *(
                f"Upgrade of {row.query}: {row.outcome} (forward {row.forward}, back "
                f"{row.backward}; plans: {row.plans}): {shorten(row.reason, _WIDTH)}"
                for row in self.rows
                if row.red
            ),
        )


def upgrades_of(store: Store, night: NightRow) -> Upgrades:
    """Return what a night found of running queries."""
    return Upgrades(tuple(store.compatibility(night.id)))
