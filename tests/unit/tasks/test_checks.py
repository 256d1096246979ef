"""What is asked of a night is understood or refused before Airflow starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import KNOWN_QUERIES, Config, load
from nexmark.errors import NexmarkError
from nexmark.tasks.checks import find_problems, make_night, select_queries
from nexmark.tasks.night import Night


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def config() -> Config:
    return load()


def night(config: Config, **params: Any) -> Night:
    given: Mapping[str, Any] = {"workload": "smoke", "cluster": "local", **params}
    return make_night(config, "spark-4.3.0", "nexmark_spark_4_3_0", "manual__1", given)


def test_queries_are_taken_in_the_order_of_the_suite(config: Config) -> None:
    workload = config.workloads["smoke"]
    assert select_queries("q5, q0", workload) == ("q0", "q5")
    assert select_queries(["q14_python_udf", "q2"], workload) == ("q2", "q14_python_udf")
    assert select_queries("", workload) == workload.queries
    assert select_queries(None, workload) == workload.queries
    assert len(select_queries(None, workload)) == 24


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"queries": "q0,q55"}, "queries: unknown query 'q55'; did you mean 'q5'?"),
        ({"workload": "smal"}, "workload: unknown workload 'smal'; did you mean 'small'?"),
        ({"cluster": "lokal"}, "cluster: unknown cluster 'lokal'; did you mean 'local'?"),
        ({"candidate": "4.3.0"}, "build '4.3.0': not known; write pypi:4.3.0"),
    ],
)
def test_a_name_that_does_not_exist_is_one_line(
    config: Config, params: Mapping[str, Any], says: str
) -> None:
    with pytest.raises(NexmarkError) as caught:
        night(config, **params)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_engine_that_does_not_exist_is_one_line(config: Config) -> None:
    with pytest.raises(NexmarkError, match=r"engine: unknown engine 'spark-4\.3'; did you mean"):
        make_night(config, "spark-4.3", "x", "y", {"workload": "smoke", "cluster": "local"})


def test_params_change_the_night_and_nothing_else(config: Config) -> None:
    asked = night(config, repetitions=7, candidate="directory:/opt/spark", queries="q5")
    assert asked.workload.repetitions == 7
    assert config.workloads["smoke"].repetitions == 1
    assert asked.candidate.directory == "/opt/spark"
    assert asked.queries == ("q5",)


def test_a_night_reads_back_as_it_was_written(config: Config, tmp_path: Path) -> None:
    asked = night(config, queries="q0,q5")
    asked.write()
    assert Night.read(asked.dag_id, asked.run_id) == asked
    assert (tmp_path / "runs" / "nexmark_spark_4_3_0" / "manual__1" / "night.json").is_file()
    with pytest.raises(NexmarkError, match=r"night\.json: there is no such file; start"):
        Night.read(asked.dag_id, "manual__2")


def test_a_machine_that_has_everything_has_no_problem(config: Config) -> None:
    assert [p for p in find_problems(night(config)) if not p.startswith("port ")] == []


def test_a_build_that_does_not_exist_is_said_before_anything_starts(
    config: Config, tmp_path: Path
) -> None:
    problems = list(find_problems(night(config, candidate=f"directory:{tmp_path}/none")))
    assert any(f"{tmp_path}/none does not exist; correct the path" in p for p in problems)


def test_a_generator_knob_that_does_not_exist_is_said(config: Config) -> None:
    asked = night(config)
    workload = asked.workload.model_copy(update={"generator": {"hot_ratio": 3}})
    problems = list(find_problems(asked.model_copy(update={"workload": workload})))
    assert any("workload smoke: generator: " in p and "hot_ratio" in p for p in problems)


def test_an_unsupported_jdk_and_a_full_disk_are_both_said(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nexmark.engines import prerequisites

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    usage = prerequisites.shutil.disk_usage("/")._replace(free=1)
    monkeypatch.setattr(prerequisites.shutil, "disk_usage", lambda _: usage)
    problems = list(find_problems(night(config)))
    assert any(p.startswith("JDK: JAVA_HOME is") for p in problems)
    assert any(p.startswith("disk: 0.0 GB") for p in problems)


def test_the_checks_need_no_airflow() -> None:
    """`make run` says what is wrong at once, not after the seconds that Airflow takes."""
    program = "import sys, nexmark.run; print('airflow' in sys.modules, 'pyspark' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.split() == ["False", "False"], run.stderr


def test_the_names_known_here_are_those_of_the_jobs() -> None:
    from nexmark_jobs.queries import QUERIES

    assert tuple(QUERIES) == KNOWN_QUERIES
