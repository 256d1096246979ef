from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.store import Store, open_store
from tests.unit.store.postgresql import Postgresql, pgbouncer, server

SQLITE, POSTGRESQL = "sqlite", "postgresql"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Postgresql]:
    """A PostgreSQL server."""
    with server() as running:
        if running is None:
            pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        yield running


@pytest.fixture(scope="session")
def bouncer(postgresql: Postgresql) -> Iterator[str]:
    """What a URL of the server ends with to pass a PgBouncer in transaction mode."""
    with pgbouncer(postgresql) as end:
        if end is None:
            pytest.skip("PgBouncer is not installed (Debian: apt-get install pgbouncer)")
        yield end


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def backend(request: pytest.FixtureRequest) -> str:
    """Every test that asks for a database runs on both."""
    return str(request.param)


@pytest.fixture
def url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Where there is no database of ours yet."""
    if backend == SQLITE:
        yield f"sqlite:///{tmp_path / 'home' / 'results.db'}"
        return
    running: Postgresql = request.getfixturevalue("postgresql")
    with running.database() as made:
        yield made


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as it is made; made once, for it takes a while."""
    path = tmp_path_factory.mktemp("database") / "results.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def empty_postgresql(postgresql: Postgresql) -> str:
    """The name of a database as it is made."""
    postgresql.execute("CREATE DATABASE empty")
    open_store(postgresql.url("empty")).close()
    return "empty"


@pytest.fixture(scope="session")
def used_postgresql(postgresql: Postgresql, empty_postgresql: str) -> str:
    """The name of the database that tests use one after the other."""
    postgresql.execute(f"CREATE DATABASE used TEMPLATE {empty_postgresql}")
    return "used"


@pytest.fixture
def database(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database with our schema, which stays as it is: PostgreSQL's is used again."""
    if backend == SQLITE:
        path = tmp_path / "home" / "results.db"
        path.parent.mkdir(exist_ok=True)
        shutil.copy(request.getfixturevalue("empty_sqlite"), path)
        yield f"sqlite:///{path}"
        return
    running: Postgresql = request.getfixturevalue("postgresql")
    yield running.emptied(request.getfixturevalue("used_postgresql"))


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    with open_store(database) as opened:
        yield opened
