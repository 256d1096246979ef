from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.store import Store, open_store

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))  # its builders


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as it is made; made once, for it takes a while."""
    path = tmp_path_factory.mktemp("database") / "results.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def store(url: str, empty_database: Path) -> Iterator[Store]:
    path = Path(url.removeprefix("sqlite:///"))
    path.parent.mkdir(exist_ok=True)
    shutil.copy(empty_database, path)
    with open_store(url) as opened:
        yield opened
