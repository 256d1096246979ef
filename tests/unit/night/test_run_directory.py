"""The files of a run: each name stands in one place, and what is written is read again."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.config import paths
from nexmark.model import Arm
from nexmark.night import run_directory
from nexmark.night.run_directory import (
    ApplicationDirectory,
    ApplicationSpan,
    GroupDirectory,
    Run,
    RunDirectory,
    TaskDirectory,
    TurnFile,
    failure_kept,
)

#: The rooms that handle the files of a run.
ROOMS = ("night", "tasks", "dag", "cli", "evidence", "flames", "web")
FILE_NAME = re.compile(r"[a-z-]+\.(json|jsonl|txt|pid|log)")


def names(path: Path) -> Iterator[str]:
    """Return the names of files among the texts of a module, without its docstrings."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from (x for x in [node.value] if FILE_NAME.fullmatch(x))


def test_no_other_module_names_a_file_of_a_run() -> None:
    package = Path(run_directory.__file__).parents[1]
    owned = set(names(Path(run_directory.__file__)))
    assert {"night.json", "failure.txt", "sampler.pid", "applications.jsonl"} <= owned
    elsewhere = {
        (path.name, name)
        for room in ROOMS
        for path in (package / room).glob("*.py")
        if path.name != "run_directory.py"
        for name in names(path)
        if name in owned
    }
    assert elsewhere == set()


def test_an_instance_that_is_tried_again_has_its_own_turn(tmp_path: Path) -> None:
    turns = TurnFile(tmp_path / "q5" / "sequence.json")
    turns.write([{"number": 1}, {"number": 2}, {"number": 3}])
    assert [turns.claim(instance)["number"] for instance in (2, 0, 2, 1)] == [1, 2, 1, 3]
    turns.write([{"number": 4}])  # planned once more: no instance has a turn
    assert turns.claim(0) == {"number": 4}


def test_of_an_application_that_ran_twice_the_last_time_counts(tmp_path: Path) -> None:
    files = RunDirectory(tmp_path)
    assert files.time_spent() is None
    for start, timed in ((0, False), (10, True), (30, True)):
        label = "q5 rep-1" if timed else "verify"
        files.add_application(ApplicationSpan(label=label, start=start, end=start + 5, timed=timed))
    assert files.last_spans()["q5 rep-1"].start == 30
    assert files.time_spent() == (35.0, 20.0, 2)


def test_whatever_ends_the_work_its_reason_is_kept_in_each_directory(tmp_path: Path) -> None:
    directories = [TaskDirectory(tmp_path / name) for name in ("a", "b")]
    with pytest.raises(KeyboardInterrupt), failure_kept(*directories):
        raise KeyboardInterrupt
    assert [each.failure() for each in directories] == ["KeyboardInterrupt"] * 2
    directories[0].forget_failure()
    assert directories[0].failure("nothing") == "nothing"


def test_a_reason_that_a_full_disk_did_not_take_is_said_to_be_lost(tmp_path: Path) -> None:
    """The file is there then, and empty."""
    directory = TaskDirectory(tmp_path)
    directory.write_failure("")
    assert directory.failure() == "the reason could not be written: is the disk full?"
    assert directory.has_failed


def test_why_a_measurement_was_dropped_outlives_the_next_try(tmp_path: Path) -> None:
    directory = ApplicationDirectory(tmp_path / "rep-1")
    run_directory.prepare([directory.path])
    directory.write_dropped("a host stalled")
    run_directory.prepare([directory.path])
    assert directory.dropped() == "a host stalled"
    assert (tmp_path / "rep-1-dropped.txt").exists()


def test_a_run_has_its_directory_by_stage_and_arm(tmp_path: Path) -> None:
    run = Run(query="q5", number=2, arm=Arm.CONTROL, stage=2)
    assert RunDirectory(tmp_path).application(run).path == tmp_path / "q5" / "round-2-control-rep-2"
    assert (run.label, run.group) == ("q5 round-2-control-rep-2", "round_2")


def test_readings_are_read_as_they_were_written(tmp_path: Path) -> None:
    group = GroupDirectory(tmp_path / "q5")
    assert group.canary("before") is None
    group.write_canary("before", [{"here": {"memory_ms": 1.5}}])
    readings = group.canary("before")
    assert readings is not None
    assert readings[0] == [{"here": {"memory_ms": 1.5}}]
    with pytest.raises(OSError, match="clock-nexmark02"):
        group.clock_readings("nexmark02")


def test_hosts_that_were_not_noted_are_none(tmp_path: Path) -> None:
    files = RunDirectory(tmp_path)
    assert files.hosts() == {}
    files.write_hosts({"here": {"cores": 2}})
    assert files.hosts() == {"here": {"cores": 2}}


@pytest.mark.parametrize("content", ["", "[1]", '{"here": 2}'])
def test_hosts_that_cannot_be_read_are_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "hosts.json").write_text(content)
    assert RunDirectory(tmp_path).hosts() == {}


def test_the_newest_plan_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    for number, (dag, run) in enumerate((("a", "1"), ("b", "1"), ("a", "2"))):
        night = RunDirectory.of(dag, run).night
        night.parent.mkdir(parents=True)
        night.touch()
        os.utime(night, (number, number))
    assert [x.path.parent.name for x in RunDirectory.planned()] == ["a", "b", "a"]
    assert [x.path.name for x in RunDirectory.planned("a")] == ["2", "1"]
    assert RunDirectory.of_night("a/1").path == paths.run_dir("a", "1")
