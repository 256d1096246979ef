"""A build that no connector fits is refused before a night of Kafka begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.config import BuildSource, load
from nexmark.engines import known_version
from nexmark.kafka import KafkaError
from nexmark.kafka.jars import connectors
from nexmark.night.kinds import kind_of
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night

SHA512 = "0" * 128


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))


def night(workload: str, candidate: str, against: str = "") -> Night:
    params = {"workload": workload, "cluster": "local", "queries": "q0"}
    builds = {"candidate": candidate, "against": against} if against else {"candidate": candidate}
    return make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params | builds)


def directory(place: Path, version: str) -> str:
    """A build of that version, as far as anything looks at it."""
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "spark-submit").touch()
    (place / "jars").mkdir()
    (place / "jars" / f"spark-core_2.13-{version}.jar").touch()
    return f"directory:{place}"


def refusals(planned: Night) -> list[str]:
    return [problem for problem in find_problems(planned) if "connector" in problem]


def test_every_release_of_a_feature_release_is_taken() -> None:
    for version in ("3.5.0", "3.5.6", "3.5.9", "4.0.0", "4.1.0", "4.1.4", "4.2.0", "4.3.0"):
        assert refusals(night("kafka", f"pypi:{version}")) == []


def test_a_build_without_a_connector_is_refused_in_one_line(tmp_path: Path) -> None:
    for build in ("pypi:3.4.4", directory(tmp_path / "old", "3.4.4")):
        (problem,) = refusals(night("kafka", build))
        assert problem.startswith("kafka: no connector for Spark 3.4.4; there is one for Spark 3.5")
        assert refusals(night("smoke", build)) == []


def test_a_baseline_without_a_connector_is_refused_as_well() -> None:
    (problem,) = refusals(night("latency", "pypi:4.3.0", against="pypi:3.4.4"))
    assert "Spark 3.4.4" in problem


def test_a_build_whose_version_does_not_show_is_refused_when_it_is_deployed(tmp_path: Path) -> None:
    planned = night("kafka", f"tarball:{tmp_path / 'nightly.tgz'}#sha512={SHA512}")
    assert refusals(planned) == []
    with pytest.raises(KafkaError, match=r"no connector for Spark 5\.0\.0"):
        kind_of(planned.workload).check_build(planned, "5.0.0")
    smoke = night("smoke", "pypi:3.4.4")
    kind_of(smoke.workload).check_build(smoke, "3.4.4")


def test_the_name_of_a_tarball_tells_its_version() -> None:
    named = "https://ci.example/spark-3.5.4-bin-hadoop3.tgz"
    assert known_version(BuildSource(tarball=named, sha512=SHA512)) == "3.5.4"
    assert known_version(BuildSource(tarball="/builds/today.tgz", sha512=SHA512)) == ""


def test_there_is_one_connector_for_a_feature_release() -> None:
    features = [version.rpartition(".")[0] for version in connectors()]
    assert features == sorted(set(features))
