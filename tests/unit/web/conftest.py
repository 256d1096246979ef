from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import HTTPException, Request
from fastapi.testclient import TestClient

from nexmark.store import Store, open_store
from nexmark.web.auth import NextRun
from nexmark.web.web_app import Database, create_app


@dataclass
class TestAccess:
    """Let in who has a name in a header; a test sets what they may do."""

    __test__ = False

    dags: Callable[[str], bool] = lambda dag: True
    accepts: bool = True
    runs: dict[str, NextRun] = field(default_factory=dict)
    running: bool | None = True

    @property
    def user(self) -> Any:
        async def user(request: Request) -> str:
            name = request.headers.get("x-user")
            if not name:
                raise HTTPException(401, "Not authenticated")
            return name

        return user

    def name(self, user: str) -> str:
        return user

    def readable(self, user: str, dags: Collection[str]) -> frozenset[str]:
        return frozenset(filter(self.dags, dags))

    def next_runs(self, dags: Collection[str]) -> dict[str, NextRun]:
        return {dag: self.runs[dag] for dag in dags if dag in self.runs}

    def is_running(self, dag: str, run: str) -> bool | None:
        return self.running

    def may_accept(self, user: str) -> bool:
        return self.accepts

    def login_url(self) -> str:
        return "/auth/login"

    def origins(self) -> frozenset[str]:
        return frozenset({"https://airflow.example"})

    def secret(self) -> str:
        return "secret of the tests"


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("database") / "results.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def database(tmp_path: Path, empty_database: Path) -> str:
    shutil.copy(empty_database, tmp_path / "results.db")
    return f"sqlite:///{tmp_path / 'results.db'}"


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    with open_store(database) as opened:
        yield opened


@pytest.fixture
def access() -> TestAccess:
    return TestAccess()


@pytest.fixture
def browser(database: str, access: TestAccess) -> Iterator[TestClient]:
    """What asks for pages, as ada."""
    app = create_app(Database(database), access)
    client = TestClient(app, headers={"x-user": "ada"}, raise_server_exceptions=True)
    with client:
        yield client
