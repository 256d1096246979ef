"""A person accepts by the DAG: some queries, until a day; and is told in one line what is wrong."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nexmark.airflow_home import airflow_command, airflow_environment, prepare
from nexmark.config import load
from nexmark.store import open_store
from tests.unit.store.store_builder import night, record

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a night of q0 and q5, and an Airflow."""
    made = tmp_path_factory.mktemp("accept")
    with open_store(f"sqlite:///{made / 'results.db'}") as store:
        record(store, night())
    return made


def accept(home: Path, **conf: Any) -> tuple[int, list[str]]:
    """Run the DAG; its exit code, and what it told."""
    progress = home / "progress.txt"
    progress.write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEXMARK_HOME", str(home))
        environment = airflow_environment(load()) | {"NEXMARK_PROGRESS": str(progress)}
        prepare(environment)
    given = {"run": night().run, "by": "ada", "reason": "meant", **conf}
    command = airflow_command(["dags", "test", "nexmark_accept", "-c", json.dumps(given)])
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    return run.returncode, progress.read_text().splitlines()


def test_some_queries_until_a_day_with_a_link(home: Path) -> None:
    code, told = accept(home, queries="q5", expires="30d", link="https://issues/1")
    assert code == 0
    (line,) = told
    assert line.startswith(f"{night().run} is now the baseline of q5 until 20")
    with open_store(f"sqlite:///{home / 'results.db'}") as store:
        (row,) = store.acceptances()
    assert (row.query, row.who, row.reason, row.link) == ("q5", "ada", "meant", "https://issues/1")
    assert row.expires is not None
    assert timedelta(days=29) < row.expires - datetime.now(UTC) < timedelta(days=30)


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"queries": ["q55"]}, "has no query 'q55'; did you mean 'q5'?"),
        ({"expires": "2020-01-01"}, "until 2020-01-01 00:00 is over already; give a later day"),
        ({"expires": "soon"}, "expires: 'soon' is neither a day (2027-01-31) nor a number"),
        ({"reason": "  "}, "needs a reason"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_accepted(
    home: Path, conf: dict[str, Any], says: str
) -> None:
    code, told = accept(home, **conf)
    assert code == 1
    (line,) = told
    assert line.startswith("accept: failed: ")
    assert says in line
