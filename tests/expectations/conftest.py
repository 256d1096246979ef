"""Events opened once per session: the recorded sample and the edge cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nexmark.expectations.tables import Events, open_events
from tests.expectations.event_builders import RECORDED, edge_events, write_events


@pytest.fixture(scope="session")
def recorded() -> Iterator[Events]:
    with open_events(RECORDED) as events:
        yield events


@pytest.fixture(scope="session")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Events]:
    with open_events(write_events(tmp_path_factory.mktemp("edge"), edge_events())) as events:
        yield events


@pytest.fixture(scope="session")
def edge_without_numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Events]:
    directory = tmp_path_factory.mktemp("edge-without-numbers")
    with open_events(write_events(directory, edge_events(), numbered=False)) as events:
        yield events
