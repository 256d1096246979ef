"""Options and paths of JVMs: as Spark's own parsers read them, or refused before a start."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nexmark.compatibility.application import Application
from nexmark.config import load
from nexmark.engines import Build, BuildError, launcher, parse_source, resolve
from nexmark.engines.jvm import PathError, check_path, java_option, path_problem, temporary_files
from nexmark.engines.launcher import Launcher
from nexmark.engines.prerequisites import java_program
from nexmark.experiments.local_applications import LocalApplications
from nexmark.kafka.broker import brokers_at
from nexmark.kafka.jars import BROKER, jars
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night
from nexmark_jobs.host.processes import plain_environment

_SPLIT = Path(__file__).with_name("SplitOptions.java")
OPTIONS = (
    "-XX:+UseG1GC",
    "-Djava.io.tmpdir=/plain/path-1.2_x/tmp",
    "-Djava.io.tmpdir=/two  blanks/and (more) & <more> = ~ @ + ^",
    "-XX:SharedArchiveFile=/Zürich/λ/数据/a b.jsa",
    '-Dx=quotes " and \' and \\ and \\\\"',
    "-Dx=\N{NO-BREAK SPACE}\N{EM SPACE}#%?*[x]{y};,:|$HOME`id`",
)


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["spark-3.5.9", "spark-4.3.0"])
def test_spark_reads_each_option_as_it_was_meant(
    engine: str, engine_build: Callable[[str], Build]
) -> None:
    home = engine_build(engine).spark_home
    lines = [*map(java_option, OPTIONS), " ".join(map(java_option, OPTIONS))]
    run = subprocess.run(
        [str(java_program("java")), "-cp", f"{home}/jars/*", str(_SPLIT)],
        env=plain_environment(),
        input="\n".join(lines).encode(),
        capture_output=True,
    )
    found = run.stdout.decode().split("\n")[:-1]
    wanted = [*OPTIONS, "\t".join(OPTIONS)]
    assert found == [each for each in wanted for _ in range(2)], run.stderr.decode()


def test_an_option_without_anything_special_stays_as_it_is() -> None:
    assert java_option("-XX:TieredStopAtLevel=1") == "-XX:TieredStopAtLevel=1"
    assert temporary_files(Path("/a b")) == '"-Djava.io.tmpdir=/a b"'


@pytest.mark.parametrize("character", list("\\\"'`?*%#,:;|[]{}$!\n\t\x7f\udcff\N{PILE OF POO}"))
def test_a_path_that_spark_reads_in_another_way_is_refused(character: str) -> None:
    problem = path_problem(Path(f"/data/a{character}b"), "NEXMARK_HOME")
    assert problem.startswith("NEXMARK_HOME ")
    assert f"Spark cannot work in a path with {character!a} in it; take another" in problem
    assert problem.isprintable()


@pytest.mark.parametrize(
    "path", ["/home/ada/my disk", "/Zürich (2)/λ/данные/数据", "/a&b=c+d@e~f^g"]
)
def test_blanks_and_letters_of_all_alphabets_are_fine(path: str) -> None:
    assert path_problem(Path(path), "NEXMARK_HOME") == ""
    check_path(Path(path), "NEXMARK_HOME")


def test_a_build_is_not_fetched_into_such_a_path(tmp_path: Path) -> None:
    with pytest.raises(PathError, match=r"NEXMARK_HOME .* with '#' in it"):
        resolve(parse_source("pypi:4.3.0"), tmp_path / "c#" / "builds")
    assert list(tmp_path.iterdir()) == []


def test_a_build_in_such_a_path_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a,b" / "bin").mkdir(parents=True)
    (tmp_path / "a,b" / "bin" / "spark-submit").touch()
    (tmp_path / "a,b" / "jars").mkdir()
    (tmp_path / "a,b" / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    with pytest.raises((PathError, BuildError), match="with ',' in it"):
        resolve(parse_source(f"directory:{tmp_path / 'a,b'}"), tmp_path / "builds")


def test_nothing_of_kafka_or_by_a_verb_starts_in_such_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "100%"))
    with pytest.raises(PathError, match=r"NEXMARK_HOME .* with '%' in it"):
        jars(BROKER, print)
    build = Build("0", "4.3.0", tmp_path, "pypi:4.3.0")
    with pytest.raises(PathError, match=r"directory .* with '%' in it"):
        Launcher(build, {}, tmp_path / "100%", {})
    assert list(tmp_path.iterdir()) == []


def test_a_night_in_such_a_home_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "what?"))
    params = {"workload": "smoke", "cluster": "local", "queries": "q0"}
    night = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    found = [problem for problem in find_problems(night) if "NEXMARK_HOME" in problem]
    assert found == [path_problem(tmp_path / "what?", "NEXMARK_HOME")]


def test_kafka_finds_its_files_in_a_home_with_letters_of_all_alphabets(tmp_path: Path) -> None:
    """Java reads properties files as ISO 8859-1, with escapes."""
    (one,) = brokers_at(("127.0.0.1",), 19092)
    one.write(tmp_path, Path("/Zürich λ"))
    for name, line in (
        ("server.properties", b"log.dirs=/Z\\u00fcrich \\u03bb/data"),
        ("log4j2.properties", b"fileName=/Z\\u00fcrich \\u03bb/server.log"),
    ):
        assert line in (tmp_path / name).read_bytes()


def test_an_installation_in_such_a_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "JOBS", tmp_path / "a%20b" / "nexmark_jobs")
    for start in (
        lambda: Launcher(Build("0", "4.3.0", tmp_path, "pypi:4.3.0"), {}, tmp_path, {}),
        lambda: Application(Build("0", "4.3.0", tmp_path, "pypi:4.3.0"), [], tmp_path),
        lambda: LocalApplications(tmp_path),
    ):
        with pytest.raises(PathError, match=r"installation .* with '%' in it"):
            start()
