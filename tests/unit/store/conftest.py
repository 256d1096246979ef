from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.store import Store, open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'home' / 'results.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
