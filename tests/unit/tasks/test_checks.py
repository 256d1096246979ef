"""What is asked of a night is understood or refused before Airflow starts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import KNOWN_QUERIES, Config, Snapshots, load
from nexmark.errors import NexmarkError
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night, select_queries, with_snapshot
from nexmark.night.night_plan import Night
from tests.unit.engines.test_resolve import make_spark_home


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
    assert select_queries("q5, q0", workload, config) == ("q0", "q5")
    assert select_queries(["q14_python_udf", "q2"], workload, config) == ("q2", "q14_python_udf")
    assert select_queries("", workload, config) == workload.queries
    assert select_queries(None, workload, config) == workload.queries
    assert len(select_queries(None, workload, config)) == 24


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"queries": "q1,,q2"}, "queries: an empty name in 'q1,,q2'; write them like q1,q5"),
        ({"queries": "q0,q55"}, "queries: unknown query 'q55'; did you mean 'q5'?"),
        ({"workload": "smal"}, "workload: unknown workload 'smal'; did you mean 'small'?"),
        ({"cluster": "lokal"}, "cluster: unknown cluster 'lokal'; did you mean 'local'?"),
        ({"candidate": "4.3.0"}, "build '4.3.0': not known; write pypi:4.3.0"),
        ({"candidate": "pypy:4.3.0"}, "not known; did you mean 'pypi:4.3.0'?"),
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


def test_a_verification_that_params_make_too_large_is_said(config: Config) -> None:
    assert night(config, verify_scale=2.5).workload.verify.events == 250_000
    too_large = r"verify_scale: 1000000000000000: input should be less than or equal to 1000"
    with pytest.raises(NexmarkError, match=too_large):
        night(config, verify_scale=10**15)


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"spark.master": "x"}, "candidate_conf: spark.master: spark.master is set by the bench"),
        ({"spark.a": "x\ny"}, "candidate_conf: spark.a: the value of spark.a has a line break"),
        ({"spark.sql.shuffle.partitions": -1}, "is '-1', not a number from 1 to 2147483647"),
        ({"spark.a": None}, "candidate_conf: spark.a: expected text, got nothing"),
        ({"a": "x"}, "'a' is not a Spark conf; names start with 'spark.'"),
    ],
)
def test_a_conf_of_the_candidate_is_checked_as_those_of_engines(
    config: Config, conf: Mapping[str, Any], says: str
) -> None:
    with pytest.raises(NexmarkError) as caught:
        night(config, candidate_conf=conf)
    assert says in str(caught.value)


def test_a_build_that_is_none_is_said_before_anything_starts(
    config: Config, tmp_path: Path
) -> None:
    (tmp_path / "x.tgz").write_text("text")
    for build in (f"tarball:{tmp_path}/x.tgz", f"tarball:file://{tmp_path}/x.tgz"):
        asked = night(config, candidate=f"{build}#sha512={'a' * 128}")
        assert any("x.tgz is not a tarball; give a .tgz" in p for p in find_problems(asked))
    asked = night(config, candidate=f"directory:{tmp_path}")
    assert any("not a Spark build (no bin/spark-submit" in p for p in find_problems(asked))


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
    names = "'airflow' in sys.modules, 'pyspark' in sys.modules"
    program = f"import sys, nexmark.cli.night_runner; print({names})"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.split() == ["False", "False"], run.stderr


def test_the_names_known_here_are_those_of_the_jobs() -> None:
    from nexmark_jobs.queries import QUERIES

    assert tuple(QUERIES) == KNOWN_QUERIES


def on_demand(config: Config, **params: Any) -> Night:
    given = {"build": "pypi:4.2.1", "workload": None, "cluster": None, **params}
    return make_night(config, "spark-4.3.0", "nexmark_build", "manual__1", given)


def test_a_build_on_demand_takes_from_its_engine_what_is_not_given(config: Config) -> None:
    asked = on_demand(config)
    engine = config.engines["spark-4.3.0"]
    assert str(asked.candidate) == "pypi:4.2.1"
    assert (asked.workload.name, asked.cluster.name) == (engine.workload, engine.cluster)
    assert asked.engine == engine
    assert not asked.gate.self_test  # it would double what a query costs
    assert config.gate.self_test


def test_a_build_to_compare_with_makes_pairs_whatever_the_workload(config: Config) -> None:
    assert on_demand(config, workload="smoke").mode == "bounds"
    asked = on_demand(config, workload="small", against="pypi:4.3.0", queries="q5")
    assert asked.mode == "paired"
    assert {query: str(build) for query, build in asked.against.items()} == {"q5": "pypi:4.3.0"}
    assert asked.workload.repetitions == config.gate.for_comparison().pairs
    with pytest.raises(NexmarkError, match="against: nights in mode bounds measure no second"):
        on_demand(config, against="pypi:4.3.0", mode="bounds")


@pytest.mark.parametrize("chosen", [{"against": "pypi:4.2.1"}, {"mode": "paired"}])
def test_a_workload_that_is_mostly_the_start_of_the_jvm_is_refused_for_pairs(
    config: Config, chosen: Mapping[str, str]
) -> None:
    with pytest.raises(NexmarkError) as caught:
        night(config, **chosen)
    assert str(caught.value) == (
        "workload: smoke is too short for pairs: 1 steady batch a repetition, else the start of "
        "the JVM; take another workload (compare, nightly), or mode bounds"
    )


@pytest.mark.parametrize("param", ["build", "against"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("latest", "build 'latest': not known; write pypi:4.3.0, tarball:"),
        ("tarball:/x.tgz", "build 'tarball:/x.tgz': a tarball needs its #sha512=HEX; add it"),
        ("tarball:/x.tgz#sha512=abc", "tarball is not well-formed; write pypi:4.3.0"),
        ("pypi:3.4.4", "build pypi:3.4.4: Spark 3.4.4 is too old; give 3.5 or newer"),
        ("directory:/no/such", "build directory:/no/such: /no/such does not exist"),
        (
            f"tarball:file:///etc/passwd#sha512={'a' * 128}",
            "'file:///etc/passwd' is not a tarball by its name; give a Spark build as",
        ),
        (f"tarball:/no/x.tgz#sha512={'a' * 128}", "/no/x.tgz does not exist; correct the path"),
    ],
)
def test_a_build_that_cannot_be_is_one_line_before_anything_is_fetched(
    config: Config, param: str, text: str, says: str
) -> None:
    try:
        problems = list(find_problems(on_demand(config, **{param: text})))
    except NexmarkError as error:
        problems = [str(error)]
    (problem,) = [each for each in problems if says in each]
    assert "\n" not in problem


@pytest.mark.parametrize("param", ["build", "against"])
def test_a_directory_of_an_old_spark_is_refused_before_anything_is_measured(
    config: Config, tmp_path: Path, param: str
) -> None:
    home = make_spark_home(tmp_path / "spark", "3.4.4")
    problems = list(find_problems(on_demand(config, **{param: f"directory:{home}"})))
    (problem,) = [each for each in problems if "too old" in each]
    assert problem == f"build directory:{home}: Spark 3.4.4 is too old; give 3.5 or newer"


def test_a_night_tests_the_snapshot_of_its_date_unless_a_candidate_is_given(
    config: Config, tmp_path: Path
) -> None:
    from datetime import UTC, datetime

    from nexmark.engines import MissingBuild

    (tmp_path / "spark-20261103.tgz").touch()
    (tmp_path / "spark-20261103.tgz.sha512").write_text(f"{'b' * 128}  spark-20261103.tgz\n")
    template = f"{tmp_path}/spark-{{{{ ds_nodash }}}}.tgz"
    snapshots = Snapshots(tarball=template, sha512=f"{template}.sha512")
    asked = night(config)
    engine = asked.engine.model_copy(update={"snapshots": snapshots})
    asked = asked.model_copy(update={"engine": engine})
    day = datetime(2026, 11, 3, 22, tzinfo=UTC)
    found = with_snapshot(asked, {}, day).candidate
    assert str(found) == f"tarball:{tmp_path}/spark-20261103.tgz#sha512={'b' * 128}"
    assert with_snapshot(asked, {"candidate": "pypi:4.3.0"}, day) == asked
    with pytest.raises(MissingBuild, match=r"no build for 2026-11-04: .*spark-20261104\.tgz"):
        with_snapshot(asked, {}, day.replace(day=4))
    with pytest.raises(NexmarkError) as caught:  # by the REST API, with a logical date of null
        with_snapshot(asked, {}, None)
    assert str(caught.value) == (
        "logical date: the DAG run has none, and engine spark-4.3.0 has a build for each date; "
        "trigger it with a logical date, or give a candidate"
    )
    assert with_snapshot(asked, {"candidate": "pypi:4.3.0"}, None) == asked
    assert with_snapshot(night(config), {}, None) == night(config)


@pytest.mark.parametrize(
    ("dag_id", "params", "teaches"),
    [
        ("nexmark_spark_4_3_0", {}, True),
        ("nexmark_spark_4_3_0", {"candidate": None, "against": None, "candidate_conf": {}}, True),
        ("nexmark_spark_4_3_0", {"queries": "q5", "repetitions": 7}, True),
        ("nexmark_spark_4_3_0", {"candidate": "pypi:4.2.1"}, False),
        ("nexmark_spark_4_3_0", {"against": "pypi:4.2.1"}, False),
        ("nexmark_spark_4_3_0", {"candidate_conf": {"spark.x": "1"}}, False),
        ("nexmark_build", {"build": "pypi:4.2.1"}, False),
        ("nexmark_signoff", {"candidate": "pypi:4.3.0"}, False),
    ],
)
def test_a_night_teaches_the_gate_unless_a_person_chose_what_it_compares(
    config: Config, dag_id: str, params: Mapping[str, Any], teaches: bool
) -> None:
    given = {"workload": "small", "cluster": "local", **params}
    made = make_night(config, "spark-4.3.0", dag_id, "manual__1", given)
    assert made.teaches is teaches


def test_the_build_of_a_date_teaches_the_gate(config: Config) -> None:
    """Nobody has chosen it: it is the one of that date."""
    dates = Snapshots(tarball="/x/{{ ds }}.tgz", sha512="/x/{{ ds }}.sha512")
    engine = config.engines["spark-4.3.0"].model_copy(update={"snapshots": dates})
    assert night(config.model_copy(update={"engines": {"spark-4.3.0": engine}})).teaches
