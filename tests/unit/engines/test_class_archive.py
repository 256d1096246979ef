"""Which JVM options an application gets whose time does not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.engines import local_environment
from nexmark.engines.class_archive import C1, ClassArchive, untimed_options


def test_an_untimed_application_uses_the_archive_that_a_night_has_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, spark = tmp_path / "home", tmp_path / "spark"
    monkeypatch.setenv("NEXMARK_HOME", str(home))
    conf_dir = Path(local_environment(spark, tmp_path)["SPARK_CONF_DIR"])
    archive = ClassArchive.of(spark, "4.3.0", conf_dir).path
    assert untimed_options(spark, "4.3.0") == C1
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert untimed_options(spark, "4.3.0") == f"{C1} -XX:SharedArchiveFile={archive}"
