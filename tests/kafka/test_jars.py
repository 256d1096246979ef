"""The jars of Spark's connector: the ones in the lock, or none."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from nexmark.config import load
from nexmark.kafka import KafkaError, jars
from tests.kafka.conftest import BrokerOfTests


def test_the_connector_is_the_one_of_the_feature_release_or_the_newest_before_it() -> None:
    versions = [str(engine.build.pypi) for engine in load().engines.values()]
    found = {version: jars.connector_of(version) for version in versions}
    assert found == {
        "4.3.0": "4.2.0",
        "4.2.1": "4.2.0",
        "4.1.4": "4.1.1",
        "4.0.5": "4.0.0",
        "3.5.9": "3.5.7",
    }
    assert jars.connector_of("4.4.0.dev2") == "4.2.0"
    first = {version: jars.connector_of(version) for version in ("3.5.0", "4.0.0", "4.1.0")}
    assert first == {"3.5.0": "3.5.7", "4.0.0": "4.0.0", "4.1.0": "4.1.1"}
    for version in ("3.4.4", "5.0.0"):
        with pytest.raises(KafkaError, match=f"no connector for Spark {version}; there is one"):
            jars.connector_of(version)


def test_the_jars_of_an_engine_are_printed_as_spark_submit_takes_them(
    broker: BrokerOfTests,
) -> None:
    said = broker.command("jars", "--engine", "spark-4.3.0").stdout.strip()
    files = [Path(each) for each in said.split(",")]
    assert [file.name for file in files] == [
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.2.0.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
    ]
    assert all(zipfile.is_zipfile(file) for file in files)


def test_an_unknown_engine_is_refused_with_the_nearest(broker: BrokerOfTests) -> None:
    said = broker.command("jars", "--engine", "spark-4.3.9", code=2)
    assert "did you mean 'spark-4.3.0'?" in said.stderr


def test_a_jar_that_was_changed_is_fetched_again(
    broker: BrokerOfTests,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "ivy").symlink_to(broker.home / "kafka" / "ivy")
    first = jars.connector("3.5.9", print)[3]
    whole = first.read_bytes()
    first.write_bytes(whole[:-1] + b"x")
    assert jars.connector("3.5.9", print)[3].read_bytes() == whole


def test_what_the_repository_lacks_is_named_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path / "conf"))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "ivysettings.xml").write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers>'
        f'<filesystem name="none"><artifact pattern="{tmp_path}/[artifact].[ext]"/></filesystem>'
        "</resolvers></ivysettings>"
    )
    with pytest.raises(KafkaError, match=r"spark-sql-kafka-0-10_2.12:3.5.7 cannot be fetched"):
        jars.connector("3.5.9", print)
    assert not list((tmp_path / "home" / "kafka" / "jars").glob("*-*/"))
