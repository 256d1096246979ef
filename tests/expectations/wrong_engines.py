"""What a wrong engine would do: each query's reference SQL with one thing changed.

The changes are in ``wrong_engines.yaml``. Each must be caught by the checks it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from nexmark.expectations.checks import reference_sql
from nexmark.expectations.contract import contract

# The reference has no windows of processing time: a right output has some, of an engine's clock.
RIGHT_Q12 = """
SELECT bidder, count(*) AS bid_count, starttime, starttime + INTERVAL 10 SECOND AS endtime
FROM (SELECT bidder, TIMESTAMP '2020-01-01' + to_seconds(10 * (n // 500)) AS starttime FROM bid)
GROUP BY bidder, starttime
"""


@dataclass(frozen=True)
class Mutation:
    """One way to be wrong: replace text (old: new) in the SQL of a right output."""

    query: str
    wrong: str
    change: Mapping[str, str]
    caught_by: tuple[str, ...]
    data: str = "recorded"

    @property
    def sql(self) -> str:
        text = right_sql(self.query, typed=False)
        for old, new in self.change.items():
            assert old in text, f"{self}: '{old}' is not in the SQL"
            text = text.replace(old, new)
        return _typed(self.query, text)

    def __str__(self) -> str:
        return f"{self.query} {self.wrong}"


def right_sql(query: str, *, typed: bool = True) -> str:
    """Return SQL of a right output of `query`, over the events."""
    text = RIGHT_Q12 if query == "q12" else reference_sql(query)
    return _typed(query, text) if typed else text


def _typed(query: str, sql: str) -> str:
    """Cast the columns of `sql` to the contract's, so that only values can be wrong."""
    casts = ", ".join(f"CAST({c.name} AS {c.type}) AS {c.name}" for c in contract(query).columns)
    return f"SELECT {casts} FROM ({sql})"


def _load() -> list[Mutation]:
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return [
        Mutation(query, **entry)
        for query, entries in yaml.safe_load(text).items()
        for entry in entries
    ]


MUTATIONS = _load()
