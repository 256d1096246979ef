"""No secret that we are handed is anywhere but where its owner wrote it, on a red night, too.

A marker stands for each. One file may have it, for its owner only and while an application runs:
that by which Spark is given its confs.
"""

from __future__ import annotations

import re
import subprocess
import warnings
from pathlib import Path

import pytest
import zstandard

from bench.web import Anyone
from nexmark.web.web_app import Database, create_app
from tests.nights.marked_secrets import MARKER, RIGHTS, Processes
from tests.site import Site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Night = subprocess.CompletedProcess[str]


def test_the_night_is_red_and_says_which_secrets_changed(red: Night) -> None:
    output = red.stdout + red.stderr
    assert red.returncode == 1, output
    assert "spark.executorEnv.MYSQL_PWD" in output
    assert re.search(r"\*\*\*-[0-9a-f]{12}", output)
    assert MARKER.decode() not in output


@pytest.mark.usefixtures("red")
def test_spark_was_given_them(watching: Processes) -> None:
    assert {f"MYSQL_PWD={MARKER.decode()}-3-{night}" for night in "12"} == watching.handed_over
    assert watching.files == {0o600}


@pytest.mark.usefixtures("red")
def test_no_command_line_showed_one(watching: Processes) -> None:
    assert watching.shown == set()


@pytest.mark.usefixtures("red")
def test_no_file_has_one(site: Site) -> None:
    benchmark = site.home / "detection"  # another test's, with a copy of the configuration
    files = [
        path
        for path in site.home.rglob("*")
        if path.is_file() and not path.is_relative_to(benchmark)
    ]
    assert {"airflow.db", "results.db", "night.json", "table.txt"} <= {path.name for path in files}
    assert {"evidence.html", "results.json"} <= {path.name for path in files}
    assert [str(path) for path in files if MARKER in content(path)] == []


def content(path: Path) -> bytes:
    data = path.read_bytes()
    if "zstd" not in path.name:
        return data
    with zstandard.ZstdDecompressor().stream_reader(data) as reader:
        return reader.read()


def test_no_page_shows_one(site: Site, red: Night) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

    night = f"/night/{run_name(red)}"
    url = f"sqlite:///{site.home / 'results.db'}"
    with TestClient(create_app(Database(url), Anyone())) as browser:
        for path in ("/", "/nights", night, f"{night}/query/q5", "/builds", "/gate", "/acks"):
            answer = browser.get(path)
            assert answer.status_code == 200, path
            assert MARKER.decode() not in answer.text, path


@pytest.mark.usefixtures("red")
def test_nobody_else_can_enter_the_home(site: Site) -> None:
    assert site.home.stat().st_mode & RIGHTS == 0o700
    for name in ("results.db", "fingerprint.key"):
        assert (site.home / name).stat().st_mode & RIGHTS == 0o600
