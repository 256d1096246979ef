"""The commands of the page on jobs of your own, in its order; each example there is read as it is.

`job new` and `job list` are run, and `job check` of the application, which starts no Spark. What
starts a night is run up to its plan. `tests/nights` runs the rest: `job check` of a new job, and a
night with a job in SQL, one over files, a script and a JAR. `tests/queries/test_own_jobs.py` runs
the examples of queries, and `tests/kafka/test_saving.py` saves topics.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from nexmark.cli import night_runner
from nexmark.cli.app import main
from nexmark.config import Config, paths
from nexmark.config.own_jobs import read_job
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from tests.docs.test_documents import code_of

PAGE = paths.repository() / "docs" / "your-own-jobs.md"


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    conf = tmp_path / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    return conf


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Night]:
    """The nights that commands begin, which are planned only."""
    nights: list[Night] = []

    def plan(config: Config, dag: str, engine: str, params: Mapping[str, Any], *_: Any) -> int:
        nights.append(make_night(config, engine, dag, "run", params))
        return 0

    monkeypatch.setattr(night_runner, "run_night", plan)
    return nights


def commands() -> list[str]:
    """The commands of the page, each once, without verbs that only a sentence names."""
    lines = (line.strip() for line in code_of(PAGE.read_text(encoding="utf-8")))
    found = [line.removeprefix("nexmark ") for line in lines if line.startswith("nexmark ")]
    return [line for line in dict.fromkeys(found) if line not in ("job check", "run")]


def application(source: Path) -> str:
    """The YAML of the application on the page, over an input that is there."""
    (text,) = re.findall(r"^```yaml\n(application:.*?)^```", PAGE.read_text(), re.M | re.S)
    return str(text).replace("/data/orders", str(source))


def test_each_command_does_what_the_page_says(
    conf: Path, planned: list[Night], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, check, listed, save, with_login, build, run, changed, of_application = commands()
    assert main(shlex.split(new)) == 0
    assert check == new.replace("new", "check")
    assert main(shlex.split(listed)) == 0
    assert "busy_auctions.duckdb.sql" in capsys.readouterr().out
    settings = tmp_path / "settings.json"
    settings.write_text('{"bootstrap.servers": "broker:9092", "sasl.password": "secret"}')
    for saving in (save, with_login.replace("~/.kafka-orders.json", str(settings))):
        assert main(shlex.split(saving.replace("/data/orders", str(tmp_path)))) == 2
        assert "is there already; name a new directory" in capsys.readouterr().err
    assert main(shlex.split(build)) == main(shlex.split(run)) == 0
    shutil.copytree(conf / "jobs", tmp_path / "changed")
    with (tmp_path / "changed" / "busy_auctions.sql").open("a") as file:
        file.write("-- changed\n")
    assert main(shlex.split(changed.replace("DIR", str(tmp_path / "changed")))) == 0
    assert [night.queries for night in planned] == [
        ("q5", "busy_auctions"),
        ("busy_auctions",),
        ("busy_auctions",),
    ]
    assert list(planned[2].candidate_jobs) == ["busy_auctions"]
    (conf / "jobs" / "orders.py").write_text("print('a script')\n")
    (conf / "jobs" / "orders.yaml").write_text(application(tmp_path))
    assert main(shlex.split(of_application)) == 0
    assert "next: nexmark run --queries orders" in capsys.readouterr().out


def test_the_example_of_tables_is_read(conf: Path) -> None:
    (text,) = re.findall(r"^```yaml\n(tables:\n.*?)^```", PAGE.read_text(), re.M | re.S)
    (conf / "jobs" / "orders_by_country.sql").write_text("SELECT 1 FROM orders")
    (conf / "jobs" / "orders_by_country.yaml").write_text(text)
    job = read_job(conf / "jobs" / "orders_by_country.yaml")
    assert list(job.own_tables or {}) == list(yaml.safe_load(text)["tables"])
