"""A build is measured by a night of `nexmark_build`, and one that was measured is not again."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexmark.bisect.build_sequence import GivenBuilds
from nexmark.bisect.measured_builds import MeasuredBuilds
from nexmark.cli import night_runner
from nexmark.cli.app import main
from nexmark.config import BUILD_DAG_ID, Config, load, paths
from nexmark.engines import parse_source, resolve
from nexmark.night.make_night import make_night
from nexmark.store import BuildRecord, open_store
from tests.git_repository import STATE_STORE, GitRepository
from tests.unit.engines.test_resolve import make_spark_home
from tests.unit.store.night_builder import paired, record_pair, validate

NAMES = ("a", "b", "c", "d", "e")
PAIRS = 5


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    homes = [make_spark_home(tmp_path / name) for name in NAMES]
    for home in homes:
        (home / "RELEASE").write_text(home.name)  # or they would be the same build
    return [f"directory:{home}" for home in homes]


class Machine:
    """In place of `run_night`: nights that are recorded at once, some builds 20 % slower."""

    def __init__(self, slow: set[str]) -> None:
        self.slow = slow
        self.ran: list[str] = []
        self.code = 0
        self.wrong: set[str] = set()

    def __call__(self, config: Config, dag_id: str, engine: str, params: Mapping[str, Any]) -> int:
        if self.code:
            return self.code
        self.ran.append(params["build"][-1])
        planned = make_night(config, engine, dag_id, f"manual__{datetime.now(UTC)}", params)
        planned.write()
        (query,) = planned.queries
        ids = {
            build: resolve(parse_source(build), paths.builds_dir()).id
            for build in (params["build"], params["against"])
        }
        with open_store(paths.database_url()) as store:
            row = paired(
                dag_id=dag_id,
                run_id=planned.run_id,
                engine=engine,
                queries=planned.queries,
                repetitions=PAIRS,
                build=BuildRecord(ids[params["build"]], "4.3.0", params["build"]),
                baselines={query: ids[params["against"]]},
                started=datetime.now(UTC),
            )
            store.record_night(row)
            validate(store, row.run, [query])
            for number in range(1, PAIRS + 1):
                noise = 1 + 0.01 * math.sin(number + len(self.ran))
                slower = 1.2 if self.is_slow(params["build"]) else 1.0
                candidate: Any = 10.0 * slower * noise
                if params["build"][-1] in self.wrong:
                    candidate = {"failed": "it does not start"}
                record_pair(store, row.run, query, number, candidate=candidate, baseline=10.0)
        return 1 if self.is_slow(params["build"]) else 0

    def is_slow(self, build: str) -> bool:
        return build[-1] in self.slow


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(slow={"d", "e"})
    monkeypatch.setattr(night_runner, "run_night", made)
    return made


def arguments(builds: list[str], **changes: str) -> list[str]:
    options = {
        "good": builds[0],
        "bad": builds[-1],
        "builds": ",".join(builds[1:-1]),
        "query": "q5",
        "workload": "small",
        "cluster": "local",
        **changes,
    }
    return ["bisect", *(f"--{name}={value}" for name, value in options.items())]


def test_the_first_bad_build_is_found_by_nights_of_builds_on_demand(
    builds: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(builds)) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1].startswith(f"first bad build: {builds[3]}, with 9")
    assert "; q5 is 19.8 % slower (" in said[-1]
    assert machine.ran[0] == "e"
    assert set(machine.ran) == {"c", "d", "e"}


def test_the_answer_has_the_commits_between_the_last_good_and_the_first_bad_build(
    builds: list[str],
    machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each build says from which commit it was made; the commits are in a clone."""
    clone = GitRepository.make(tmp_path / "clone")
    commits = [clone.commit(f"Change {name}", {STATE_STORE: name}) for name in "abcde"]
    for build, commit in zip(builds, commits, strict=True):
        release = f"Spark 4.3.0 (git revision {commit[:11]}) built for Hadoop 3.4.1"
        (Path(build.removeprefix("directory:")) / "RELEASE").write_text(release)
    clone.name_in_copy_of_conf(tmp_path / "conf")
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path / "conf"))
    assert main(arguments(builds)) == 0
    *_, change, address, commit, answer = capsys.readouterr().out.splitlines()
    old, new = (revision[:11] for revision in commits[2:4])
    assert change.startswith(f"changed from {old} to {new}: 1 of 1 commit touches streaming")
    assert address == f"  https://forge.example/{old}..{new}"
    assert commit == f"  {commits[3][:12]} Change d (2026-11-03; state store)"
    assert answer.startswith(f"first bad build: {builds[3]}")


def test_builds_whose_commits_are_not_known_have_no_line_on_what_changed(
    builds: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(builds)) == 0
    assert "changed" not in capsys.readouterr().out


def test_a_job_of_ones_own_is_searched_by_its_name(
    builds: list[str],
    machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    (conf / "jobs" / "busy.yaml").write_text("tables: nexmark\nsql: busy.sql\n")
    (conf / "jobs" / "busy.sql").write_text("SELECT 1 FROM bid")
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    assert main(arguments(builds, query="busy")) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith(f"first bad build: {builds[3]}, with 9")
    assert "; busy is 19.8 % slower (" in said


def test_the_same_command_again_uses_the_nights_that_are_recorded(
    builds: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    main(arguments(builds))
    first = list(machine.ran)
    assert main(arguments(builds)) == 0
    assert machine.ran == first
    assert f"{len(first)} nights of an earlier search are used" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes",
    [{"workload": "compare"}, {"queries": "q0"}, {"repetitions": 7}, {"against": "c"}],
    ids=lambda changes: "".join(changes),
)
def test_a_night_of_something_else_is_not_used(
    builds: list[str], machine: Machine, changes: dict[str, Any], tmp_path: Path
) -> None:
    params: dict[str, Any] = {
        "queries": "q5",
        "workload": "small",
        "cluster": "local",
        "against": builds[0],
        "mode": "paired",
        "repetitions": PAIRS,
    }

    def known(**others: Any) -> int:
        sequence = GivenBuilds(builds, "spark-4.3.0")
        nights = MeasuredBuilds(load(), "spark-4.3.0", params | others, lambda _: 0, sequence)
        return len(nights.known())

    machine(load(), BUILD_DAG_ID, "spark-4.3.0", {**params, "build": builds[1]})
    assert known() == 1
    if "against" in changes:
        changes = {"against": builds[2]}
    assert known(**changes) == 0
    (tmp_path / "b" / "RELEASE").write_text("another build at the same place")
    assert known() == 0


def test_a_build_that_cannot_be_fetched_or_does_not_run_is_left_out(
    builds: list[str], machine: Machine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine.wrong = {"c"}
    builds[3] = f"directory:{tmp_path}/none"
    assert main(arguments(builds)) == 0
    said = capsys.readouterr().out
    assert "left out: " in said
    assert "it does not start" in said
    assert f"{tmp_path}/none: there is no such directory" in said
    assert f"one of {builds[2]}, {builds[3]}, {builds[4]}" in said.splitlines()[-1]


def test_ends_that_cannot_be_fetched_end_the_search_before_any_night(
    builds: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(builds, good="directory:/none")) == 2
    assert "directory:/none: there is no such directory" in capsys.readouterr().err
    assert machine.ran == []


def test_an_interrupt_ends_the_search_and_says_that_it_goes_on(
    builds: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.code = 130
    assert main(arguments(builds)) == 130
    assert "interrupted: the same command goes on from here" in capsys.readouterr().out


def test_a_night_that_recorded_nothing_ends_the_search_with_the_remedy(
    builds: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.code = 1
    assert main(arguments(builds)) == 2
    assert "ended before it was measured, see above; repair it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"query": ""}, "query: '' is not one query; give --query q5"),
        ({"query": "q5,q7"}, "query: 'q5,q7' is not one query"),
        ({"query": "q77"}, "queries: unknown query 'q77'"),
        ({"workload": "smok"}, "workload: unknown workload 'smok'; did you mean 'smoke'?"),
        ({"cluster": "lokal"}, "cluster: unknown cluster 'lokal'; did you mean 'local'?"),
        ({"engine": "spark-4.3"}, "engine: unknown engine 'spark-4.3'"),
        ({"repetitions": "2"}, "repetitions: 2 are too few for a verdict"),
        ({"repetitions": "-1"}, "'-1' is not a whole number from 1 to 100"),
        ({"measurements": "0"}, "'0' is not a whole number from 1 to 10000"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_run(
    builds: list[str],
    machine: Machine,
    changes: dict[str, str],
    says: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(arguments(builds, **changes)) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert machine.ran == []
