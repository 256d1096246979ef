from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.store import Store, open_store


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'home' / 'results.db'}"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as the migrations make it; made once, for it takes a while."""
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
