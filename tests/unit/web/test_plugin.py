"""What Airflow imports of us in every component, and in every task, is next to nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[3] / "plugins"
HEAVY = ("numpy", "scipy", "pandas", "pyspark", "great_expectations", "duckdb", "alembic")
OURS = ("nexmark.store", "nexmark.verdict", "nexmark.report", "nexmark.web.web_app", "jinja2")

IMPORT = """
import sys
import airflow.plugins_manager, airflow.configuration
before = set(sys.modules)
import nexmark_plugin
print(*sorted(set(sys.modules) - before))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The modules that are loaded for the plugin beside those that Airflow has already."""
    home = tmp_path_factory.mktemp("airflow")
    run = subprocess.run(
        [sys.executable, "-c", IMPORT],
        env={"AIRFLOW_HOME": str(home), "PYTHONPATH": str(PLUGINS), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return run.stdout.split()


def test_the_plugin_imports_nothing_heavy(imported: list[str]) -> None:
    assert "nexmark_plugin" in imported
    for name in (*HEAVY, *OURS, "sqlalchemy", "fastapi"):
        assert not [x for x in imported if x == name or x.startswith(f"{name}.")], name
    assert len(imported) < 20, imported


def test_the_scan_for_plugins_leaves_the_library_alone() -> None:
    lines = (PLUGINS / ".airflowignore").read_text().splitlines()
    assert "nexmark/" in lines


def test_each_view_has_a_route_of_its_own_and_an_address_of_ours(tmp_path: Path) -> None:
    code = "import json, nexmark_plugin as x; print(json.dumps(x.NexmarkPlugin.external_views))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PLUGINS), "PATH": "/usr/bin:/bin", "AIRFLOW_HOME": str(tmp_path)}
        | {"AIRFLOW__API__BASE_URL": "https://ci.example/airflow"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    views = json.loads(run.stdout.strip().splitlines()[-1])
    assert {view["destination"] for view in views} == {
        *("nav", "dag", "dag_run", "task", "task_instance")
    }
    assert len({view["url_route"] for view in views}) == len(views)
    assert all(view["href"].startswith("/airflow/nexmark/") for view in views)


def test_the_pages_are_made_once_with_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    from nexmark.web import entry

    made, answered = [], []

    async def app(scope: object, receive: object, send: object) -> None:
        answered.append(scope)

    def make() -> object:
        made.append(1)
        return app

    monkeypatch.setattr(entry, "_make", make)
    point = entry.EntryPoint()

    async def ask() -> None:
        await asyncio.gather(*(point({"type": "http"}, None, None) for _ in range(5)))  # type: ignore[arg-type]

    assert made == []
    asyncio.run(ask())
    assert (len(made), len(answered)) == (1, 5)
