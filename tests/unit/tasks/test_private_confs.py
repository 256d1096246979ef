"""Secrets reach Spark by a file that is gone afterwards; a plan has their fingerprints."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from nexmark.config import ConfigError, load, paths, profile_path
from nexmark.dag.dag_params import nightly_params
from nexmark.errors import NexmarkError
from nexmark.night import applications
from nexmark.night.deployments import Deployment
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.private_confs import private_properties, properties
from nexmark.night.submission import SparkApplication
from nexmark.secrets import fingerprinted, load_key, without_secrets
from nexmark_jobs.redaction import is_fingerprint
from tests.site import ENGINE

MARKER = "Xk7hushQ2"
NAME = "spark.hadoop.fs.azure.account.key.store"


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `include/conf` whose engine has a secret and a setting."""
    directory = tmp_path / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", directory)
    monkeypatch.setenv("NEXMARK_CONF", str(directory))
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    set_conf(directory, {NAME: MARKER, "spark.sql.shuffle.partitions": 7})
    return directory


def set_conf(directory: Path, conf: dict[str, Any]) -> None:
    path = directory / "engines.yaml"
    engine = {"build": {"pypi": "4.3.0"}, "workload": "smoke", "conf": conf}
    path.write_text(yaml.safe_dump({"engines": {ENGINE: engine}}))


def planned(**params: Any) -> Night:
    given = {"workload": "smoke", "cluster": "local", "queries": "q0"} | params
    return make_night(load(), ENGINE, "nexmark_spark_4_3_0", "run 1", given)


def submitted(night: Night, tmp_path: Path) -> SparkApplication:
    (tmp_path / "spark" / "jars").mkdir(parents=True, exist_ok=True)
    deployment = Deployment(
        program="fedc",
        build="0123456789abcdef",
        spark_version="4.3.0",
        spark_home=str(tmp_path / "spark"),
        source="pypi:4.3.0",
        jobs="fedc",
        jobs_home="/opt/jobs/nexmark_jobs",
    )
    return applications.dump_submission(night, deployment).application


def shared() -> Path:
    """The properties file of the night's cluster."""
    return planned().spark_cluster.properties_file(profile_path("quick"))


def test_a_plan_and_a_submission_have_fingerprints(conf: Path, tmp_path: Path) -> None:
    night = planned()
    made = submitted(night, tmp_path)
    assert MARKER not in night.model_dump_json() + made.model_dump_json()
    assert is_fingerprint(night.engine.conf[NAME])
    assert list(made.secret_confs) == [NAME]
    assert NAME not in made.confs
    assert made.confs["spark.sql.shuffle.partitions"] == "7"
    assert Night.model_validate_json(night.model_dump_json()).engine.conf == night.engine.conf


def test_two_plans_with_one_secret_are_the_same_and_with_two_are_not(conf: Path) -> None:
    first = planned()
    assert planned().engine.conf == first.engine.conf
    set_conf(conf, {NAME: f"{MARKER}2"})
    assert planned().engine.conf[NAME] != first.engine.conf[NAME]


def test_spark_gets_them_by_a_file_for_the_owner_that_is_gone_afterwards(
    conf: Path, tmp_path: Path
) -> None:
    odd = "a\\b = c: d"
    set_conf(conf, {NAME: MARKER, "spark.my.password": odd})
    made = submitted(planned(), tmp_path)
    masked: list[str] = []
    with private_properties(made, shared(), masked.append) as name:
        assert {MARKER, odd} <= set(masked), "the log of the task hides them"
        path = Path(name)
        text = path.read_text()
        assert properties(text)[NAME] == MARKER
        assert "spark.my.password=a\\\\b = c: d\n" in text
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not path.exists()
    with pytest.raises(KeyError), private_properties(made, shared(), masked.append):
        raise KeyError
    assert not path.exists()
    assert MARKER not in without_secrets(f"org.apache.Failure: no such account {MARKER}!")


def test_without_secrets_spark_reads_the_file_of_the_cluster(conf: Path, tmp_path: Path) -> None:
    set_conf(conf, {"spark.sql.shuffle.partitions": 7})
    made = submitted(planned(), tmp_path)
    with private_properties(made, shared(), str) as name:
        assert name == str(shared())


def test_a_secret_that_changed_meanwhile_is_not_what_was_planned(
    conf: Path, tmp_path: Path
) -> None:
    made = submitted(planned(), tmp_path)
    set_conf(conf, {NAME: "another"})
    with (
        pytest.raises(NexmarkError, match=rf"{NAME} of {ENGINE} is not what it was") as caught,
        private_properties(made, shared(), str),
    ):
        pass
    assert "another" not in str(caught.value)


def test_spark_hides_as_much_in_its_event_logs_unless_a_profile_says_otherwise(
    conf: Path, tmp_path: Path
) -> None:
    name = "spark.redaction.regex"
    assert "account" in submitted(planned(), tmp_path).confs[name]
    (conf / "spark" / "quick.conf").write_text(f"{name} (?i)mine\n")
    assert name not in submitted(planned(), tmp_path).confs


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("spark.ssl.keyStorePwd", MARKER, "command line of every executor"),
        ("spark.network.my.secret", MARKER, "command line of every executor"),
        ("spark.executor.extraJavaOptions", f"-Dx.password={MARKER}", "give @FILE"),
        ("spark.driver.extraJavaOptions", f"-Dx.token={MARKER}", "give @FILE"),
    ],
)
def test_what_spark_would_put_on_a_command_line_is_refused(
    conf: Path, name: str, value: str, words: str
) -> None:
    set_conf(conf, {name: value})
    with pytest.raises(ConfigError, match=words) as caught:
        load()
    assert MARKER not in str(caught.value)
    set_conf(conf, {})
    (conf / "spark" / "quick.conf").write_text(f"{name}   {value}\n")
    with pytest.raises(ConfigError, match=rf"quick\.conf:1: .*{words}") as caught:
        load()
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize(
    "given", [{"spark.my.password": MARKER}, {"spark.my.url": f"https://a:{MARKER}@x/"}]
)
def test_a_param_is_no_place_for_a_secret(conf: Path, given: dict[str, str]) -> None:
    """Airflow keeps them, and `airflow dags test` has them on its command line."""
    with pytest.raises(NexmarkError, match=r"candidate_conf: spark\.my\.\w+ is a secret") as caught:
        planned(candidate_conf=given)
    assert MARKER not in str(caught.value)
    config = load()
    param = nightly_params(config.engines[ENGINE], config)["candidate_conf"]
    with pytest.raises(ValueError, match=r"candidate_conf|not"):
        param.resolve(given)
    assert param.resolve({"spark.sql.shuffle.partitions": 5, "spark.a": "b"})


@pytest.mark.parametrize(
    "address", [f"https://ada:{MARKER}@ci.example/spark.tgz", f"https://x/s.tgz?sig={MARKER}"]
)
def test_the_address_of_a_build_has_no_secret(conf: Path, address: str) -> None:
    """It is kept with every result."""
    for name in ("candidate", "against"):
        source = f"tarball:{address}#sha512={'0' * 128}"
        with pytest.raises(NexmarkError, match="has a secret in its address") as caught:
            planned(workload="small", mode="paired", **{name: source})
        assert MARKER not in str(caught.value)
        assert "\n" not in str(caught.value)


def test_the_key_is_the_owners_and_stays(conf: Path) -> None:
    key = load_key()
    assert len(key) == 32
    assert load_key() == key
    assert (paths.home() / "fingerprint.key").stat().st_mode & 0o777 == 0o600
    assert paths.home().stat().st_mode & 0o777 == 0o700
    assert [x.name for x in paths.home().iterdir()] == ["fingerprint.key"]
    assert fingerprinted({"spark.a": "b"}) == {"spark.a": "b"}
