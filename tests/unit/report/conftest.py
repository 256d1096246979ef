from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.store import Store, open_store

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))  # its builders


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
