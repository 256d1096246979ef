"""The figures of a Kafka benchmark: a query from Kafka may wait for the brokers."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nexmark.store import Store


@dataclass(frozen=True)
class BrokerFigures:
    """The newest benchmark of a Kafka; `ratios` are those that carry over between machines."""

    cluster: str
    measured: datetime
    records: int
    runs: int
    tests: tuple[Mapping[str, Any], ...]
    ratios: tuple[Mapping[str, Any], ...]


def broker_figures(store: Store) -> list[BrokerFigures]:
    """Return the newest benchmark of every Kafka."""
    found = []
    for row in store.broker_benches():
        told = row.figures
        tests = tuple(test | {"what": told["what"][test["id"]]} for test in told["tests"])
        sizes = told["records"], told["runs"]
        found.append(BrokerFigures(row.cluster, row.measured, *sizes, tests, tuple(told["ratios"])))
    return found
