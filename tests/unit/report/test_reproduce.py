"""The line that measures again is taken by make, the shell and `nexmark build` as it was meant."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nexmark.cli import night_runner
from nexmark.cli.app import main
from nexmark.config import load
from nexmark.engines import parse_source
from nexmark.evidence.explaining import reproduce
from nexmark.evidence.night_rows import night_rows
from nexmark.model import CANDIDATE_JOB, Value
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night
from nexmark.store import BuildRecord, Store
from tests.unit.store.night_builder import paired
from tests.unit.store.store_builder import by_bounds, night

ROOT = Path(__file__).parents[3]
OLD, NEW = (
    BuildRecord("sha-429", "4.2.9", "pypi:4.2.1"),
    BuildRecord("sha-430", "4.3.0", "pypi:4.3.0"),
)


def arguments(line: str, tmp_path: Path) -> list[str]:
    """What the program gets when a shell runs the line."""
    programs = tmp_path / "bin"
    programs.mkdir(exist_ok=True)
    fake = programs / "nexmark"
    fake.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    fake.chmod(0o755)
    path = {"PATH": f"{programs}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", line], env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    assert found[0] == "build"
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `nexmark build` would run."""
    found: list[Any] = []

    def run_night(config: Any, dag_id: str, engine: str, params: Any) -> int:
        night = make_night(config, engine, dag_id, "", params)
        # Preflight refuses some of these paths; here every letter has to come through to it.
        refused = "Spark cannot work in a path"
        problems = [x for x in find_problems(night) if x.startswith("build ") and refused not in x]
        assert problems == []
        found.append(night)
        return 0

    monkeypatch.setattr(night_runner, "run_night", run_night)
    return found


@pytest.mark.parametrize(
    "name",
    ["plain", "a b", "it's", '$(touch x) "$HOME" `id`', "a#b;c&d|e", "--against", "ü\\n%s"],
)
def test_any_build_comes_through(store: Store, tmp_path: Path, asked: list[Any], name: str) -> None:
    place = tmp_path / name
    for part in ("bin/spark-submit", "jars/spark-core_2.13-4.3.0.jar"):
        (place / part).parent.mkdir(parents=True)
        (place / part).touch()
    source = f"directory:{place}"
    made = paired(
        1,
        build=BuildRecord("sha-1", "4.3.0", source),
        repetitions=4,
        workload="small",
        directory=tmp_path,
    )
    store.record_night(night(0, build=OLD))
    store.record_night(made)
    line = reproduce(store, night_rows(store, store.night(made.run)), "q5")
    assert main(arguments(line, tmp_path)) == 0
    (found,) = asked
    assert found.candidate == parse_source(source)
    assert {q: str(x) for q, x in found.against.items()} == {"q5": OLD.source}
    assert (found.mode, found.workload.name, found.cluster.name) == ("paired", "small", "local")
    assert found.workload.repetitions == 4


def test_confs_of_the_candidate_come_through(
    store: Store, tmp_path: Path, asked: list[Any]
) -> None:
    confs = {"spark.sql.codegen.wholeStage": "false", "spark.a": "x y='$z'"}
    made = paired(1, build=NEW, baselines={}, directory=tmp_path, candidate_conf=confs)
    store.record_night(made)
    line = reproduce(store, night_rows(store, store.night(made.run)), "q0")
    assert "--candidate-conf" in shlex.split(line)
    assert main(arguments(line, tmp_path)) == 0
    assert asked[0].candidate_conf == confs
    assert asked[0].against == {}


def test_the_changed_job_of_the_candidate_comes_back(store: Store, tmp_path: Path) -> None:
    """What the night records of it are no confs."""
    alone = {"spark.a": "1", CANDIDATE_JOB: "/my jobs", f"{CANDIDATE_JOB}.busy": "sql-1"}
    made = paired(1, build=NEW, baselines={}, directory=tmp_path, candidate_conf=alone)
    store.record_night(made)
    words = shlex.split(reproduce(store, night_rows(store, store.night(made.run)), "q5"))
    assert words[words.index("--candidate-job") + 1] == "/my jobs"
    assert words[words.index("--candidate-conf") + 1] == "spark.a=1"
    assert not any("candidateJob" in word for word in words)


def test_a_night_by_bounds_is_measured_by_bounds_again(
    store: Store, tmp_path: Path, asked: list[Any]
) -> None:
    """Pairs would run both builds with today's confs, and smoke is too short for them."""
    accepted = night(0, build=OLD)
    tonight = night(1, build=NEW)
    for made in (accepted, tonight):
        store.record_night(made)
    numbers: dict[str, Any] = {"ratio": 1.5, "baseline_run": accepted.run, "repetitions": 1}
    said = by_bounds("q5", Value.REGRESSION, metric="cpu_s_per_mevent", **numbers)
    store.record_verdicts(tonight.run, [said])
    line = reproduce(store, night_rows(store, store.night(tonight.run)), "q5")
    assert main(arguments(line, tmp_path)) == 0
    (found,) = asked
    assert (found.mode, found.workload.name, found.against) == ("bounds", "smoke", {})
    assert found.candidate == parse_source(NEW.source)


def test_the_engines_of_the_repository_are_taken(store: Store, tmp_path: Path) -> None:
    """The names in the line are those that `nexmark build` looks up."""
    made = paired(1, build=NEW, baselines={}, directory=tmp_path)
    store.record_night(made)
    words = shlex.split(reproduce(store, night_rows(store, store.night(made.run)), "q0"))[2:]
    found = dict(zip(words[::2], words[1::2], strict=True))
    assert found["--engine"] in load().engines
    assert found["--workload"] in load().workloads
