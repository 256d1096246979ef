"""What an application gets whose time does not count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from nexmark.engines import Build, local_environment
from nexmark.engines.short_runs import C1, ClassArchive, checkpoint_confs, untimed_options


def test_an_untimed_application_uses_the_archive_that_a_night_has_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, spark = tmp_path / "home", tmp_path / "spark"
    monkeypatch.setenv("NEXMARK_HOME", str(home))
    (spark / "jars").mkdir(parents=True)
    (spark / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    conf_dir = Path(local_environment(spark, tmp_path)["SPARK_CONF_DIR"])
    archive = ClassArchive.of(spark, "4.3.0", conf_dir).path
    assert untimed_options(spark, "4.3.0") == C1
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert untimed_options(spark, "4.3.0") == f"{C1} -XX:SharedArchiveFile={archive}"


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["spark-3.5.9", "spark-4.3.0"])
def test_the_file_manager_of_checkpoints_is_a_class_of_the_engine(
    engine: str, engine_build: Callable[[str], Build]
) -> None:
    build = engine_build(engine)
    (name,) = checkpoint_confs(build.version).values()
    (jar,) = (build.spark_home / "jars").glob("spark-sql_*.jar")
    assert f"{name.replace('.', '/')}.class" in ZipFile(jar).namelist()
