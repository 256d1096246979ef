"""A job of a person's own goes on from a checkpoint of another build, or of another version."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.compatibility.cases import Input, Side, case_of_job
from nexmark.compatibility.check import check
from nexmark.compatibility.results import Compatibility, UpgradeClass
from nexmark.config import Job, paths
from nexmark.config.own_jobs import read_job
from nexmark.engines import Build
from nexmark.errors import NexmarkError
from tests.conftest import ENGINES

EVENTS = Input(events=2000, tps=100)
COUNTED = """
CREATE TEMPORARY VIEW counted AS SELECT auction, window.start AS window_start, count(*) AS bids,
    {highest} AS highest FROM bid GROUP BY auction, window(dateTime, '10 seconds');
SELECT auction, window_start, bids, highest FROM counted
"""
BUSY = """
tables: nexmark
sql: busy.sql
key: [auction, window_start]
reference: busy.duckdb.sql
"""
REFERENCE = """
SELECT auction, time_bucket(INTERVAL '10 seconds', dateTime) AS window_start, count(*) AS bids,
    max(price) AS highest FROM bid GROUP BY ALL
"""
ORDERS = """
tables:
  orders: {files: DIRECTORY/orders.csv, event_time: at, watermark: 1 minute}
  country: {files: DIRECTORY/country.csv, static: true}
python: orders.py:build
output_mode: update
key: [name]
"""
TOTALS = """
from pyspark.sql import functions as F

def build(spark, tables):
    joined = tables["orders"].join(tables["country"], "id")
    return joined.groupBy("name").agg(F.{function}("amount").alias("amount"))
"""


def say(_: str) -> None:
    pass


def busy(directory: Path, highest: str = "max(price)") -> Job:
    """A job over the bids, with a reference."""
    directory.mkdir(exist_ok=True)
    (directory / "busy.yaml").write_text(BUSY)
    (directory / "busy.sql").write_text(COUNTED.format(highest=highest))
    (directory / "busy.duckdb.sql").write_text(REFERENCE)
    return read_job(directory / "busy.yaml")


def orders(directory: Path, rows: int = 300, function: str = "sum") -> Job:
    """A job over files of its own, without a reference."""
    directory.mkdir()
    (directory / "orders.yaml").write_text(ORDERS.replace("DIRECTORY", str(directory)))
    (directory / "orders.py").write_text(TOTALS.format(function=function))
    times = (f"2026-01-01 10:{place // 60:02}:{place % 60:02}" for place in range(rows))
    lines = (f"{place % 3},{place},{at}" for place, at in enumerate(times))
    (directory / "orders.csv").write_text("\n".join(["id,amount,at", *lines]) + "\n")
    (directory / "country.csv").write_text("id,name\n0,Norway\n1,Peru\n2,Peru\n")
    return read_job(directory / "orders.yaml")


def checked(first: Side, second: Side) -> Compatibility:
    """The one result of a check of a job."""
    assert first.job is not None
    assert second.job is not None
    cases = [case_of_job(first.job, second.job)]
    (result,) = check(first, second, cases, EVENTS, say, only_stateful=True)
    return result


@pytest.mark.long
@pytest.mark.spare
@pytest.mark.spark
def test_a_changed_job_may_mean_something_else_by_the_same_state(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    build = engine_build(ENGINES[0])
    changed = orders(tmp_path / "changed", function="max")
    found = checked(Side(build, job=orders(tmp_path / "jobs")), Side(build, job=changed))
    assert found.class_ == UpgradeClass.WRONG, (found.forward, found.reason)
    assert found.forward is not None
    assert "{name: 'Norway'}: an uninterrupted run {amount: 14850}, the" in found.forward.reason


@pytest.mark.long
@pytest.mark.spare
@pytest.mark.spark
def test_a_job_goes_on_in_another_build_and_back(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    job = orders(tmp_path / "jobs")
    found = checked(*(Side(engine_build(name), job=job) for name in (ENGINES[-1], ENGINES[0])))
    assert [str(found.forward), str(found.backward)] == ["right", "right"], found.reason


def test_too_few_rows_are_said_before_spark_starts(tmp_path: Path) -> None:
    job = orders(tmp_path / "jobs", rows=3)
    side = Side(Build("b", "4.3.0", tmp_path / "nowhere", "pypi:4.3.0"), job=job)
    with pytest.raises(NexmarkError, match="orders: its streams have 3 rows at most, too few"):
        check(side, side, [case_of_job(job, job)], EVENTS, say)


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with a job in SQL and an application."""
    shutil.copytree(paths.repository() / "include" / "conf", tmp_path / "conf")
    busy(tmp_path / "conf" / "jobs")
    application = "application: {main: script.py, ends: itself}\n"
    (tmp_path / "conf" / "jobs" / "script.yaml").write_text(application)
    (tmp_path / "conf" / "jobs" / "script.py").write_text("print(1)\n")
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path / "conf"))
    return tmp_path / "conf"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--query", "bussy"), "--query: unknown query 'bussy'; did you mean 'busy'?"),
        (("--query", "script"), "--query: script: no argument and no conf of it has {{ checkpoi"),
        (("--query", "busy", "--formulation", "x"), "--formulation: busy is a job of yours"),
        (("--query", "busy", "--corpus", "new"), "--corpus: busy is a job of yours; leave it out"),
        (("--candidate-job", "/"), "--candidate-job: needs a job of yours as --query; jobs: busy"),
        (("--query", "busy", "--candidate-job", "/"), "/ has the file of no job in include/conf"),
    ],
)
def test_what_is_refused(
    conf: Path, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compat", "--from", "pypi:4.3.0", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_a_job_with_a_mistake_is_refused_where_it_is_named(
    conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (conf / "jobs" / "broken.yaml").write_text("tables: nexmark\nsqll: a.sql\n")
    assert main(["compat", "--from", "pypi:4.3.0", "--query", "broken"]) == 2
    assert "broken.yaml:2: sqll: unknown key 'sqll'; did you mean 'sql'?" in capsys.readouterr().err
    assert main(["compat", "--from", "pypi:4.3.0", "--query", "script"]) == 2
    assert "--query: script: no argument" in capsys.readouterr().err


@pytest.mark.spark
def test_a_changed_job_whose_state_has_other_types_is_refused(
    conf: Path, tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    shutil.copytree(conf / "jobs", tmp_path / "changed")
    sql = tmp_path / "changed" / "busy.sql"
    sql.write_text(sql.read_text().replace("max(price)", "array_max(collect_list(price))"))
    build, out = f"directory:{engine_build(ENGINES[0]).spark_home}", tmp_path / "out.json"
    arguments = ["--query", "busy", "--candidate-job", str(sql.parent), "--events", "2000"]
    assert main(["compat", "--from", build, *arguments, "--out", str(out)]) == 1
    (found,) = json.loads(out.read_text())
    assert found["class"] == UpgradeClass.INCOMPATIBLE
    assert [found[way]["outcome"] for way in ("forward", "backward")] == ["refused", "refused"]
    assert "types of the values of the" in found["reason"]
