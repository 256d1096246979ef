"""A night reads every byte of its builds: one that changed keeps size and time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nexmark.config import BuildSource
from nexmark.night.night_clusters import checked_build


def test_one_changed_byte_of_a_build_in_place_is_another_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("nexmark.engines.fetch.java_problem", lambda _: "")
    (tmp_path / "spark" / "bin").mkdir(parents=True)
    (tmp_path / "spark" / "bin" / "spark-submit").write_text("#!/bin/sh\n")
    jar = tmp_path / "spark" / "jars" / "spark-core_2.13-4.3.0.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"core" * 1000)
    source = BuildSource(directory=str(tmp_path / "spark"))
    before, times = checked_build(source), jar.stat()
    jar.write_bytes(b"core" * 999 + b"cord")
    os.utime(jar, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert checked_build(source).id != before.id
