"""`--continue` goes on with what a comparison left undecided or unmeasured, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from nexmark.cli import night_runner
from nexmark.cli.app import main
from nexmark.config import BUILD_DAG_ID, Config, load, paths
from nexmark.model import CANDIDATE_JOB, Value
from nexmark.night.make_night import make_night
from nexmark.store import BuildRecord, open_store
from nexmark.terminal import INTERRUPTED
from tests.unit.store.night_builder import OK, judged

Ran = list[tuple[str, str, dict[str, Any]]]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """In place of the night that would run: its DAG, engine and params."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    started: Ran = []

    def run_night(config: Config, dag: str, engine: str, params: Mapping[str, Any]) -> int:
        started.append((dag, engine, dict(params)))
        return 0

    monkeypatch.setattr(night_runner, "run_night", run_night)
    return started


def night(
    further: Mapping[str, int] = MappingProxyType({}),
    repetitions: int = 5,
    alone: Mapping[str, str] | None = None,
    changes: Mapping[str, Any] = MappingProxyType({}),
    **values: Value,
) -> str:
    """Record a night of 4.3.0 against 4.2.1 (q7: 4.1.4); return its name."""
    builds = {"q7": "sha-414"}
    verdicts = [
        replace(
            OK,
            query=query,
            value=value,
            baseline_build=builds.get(query, "sha-421"),
            further_pairs=further.get(query),
        )
        for query, value in values.items()
    ]
    with open_store(paths.database_url()) as store:
        return judged(
            store,
            1,
            *verdicts,
            queries=tuple(values),
            repetitions=repetitions,
            candidate_conf=alone,
            build=BuildRecord("sha-430", "4.3.0", "pypi:4.3.0"),
            baselines={query: builds.get(query, "sha-421") for query in values},
            baseline_builds=[
                BuildRecord("sha-421", "4.2.1", "pypi:4.2.1"),
                BuildRecord("sha-414", "4.1.4", "pypi:4.1.4"),
            ],
            **changes,
        )


def test_what_is_undecided_goes_on_against_the_same_build(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    run = night(q0=Value.OK, q5=Value.UNDECIDED, q7=Value.SUSPECT, q9=Value.UNDECIDED)
    assert main(["build", "--continue", run, "--minutes", "20"]) == 0
    ((dag, engine, params),) = ran
    assert (dag, engine) == (BUILD_DAG_ID, "spark-4.3.0")
    assert params["queries"] == "q5,q9"
    assert (params["build"], params["against"]) == ("pypi:4.3.0", "pypi:4.2.1")
    assert params["budget_minutes"] == 20
    command = f"nexmark build --continue '{run}' --queries q7"
    assert f"q7: compared with another build; go on with {command}" in capsys.readouterr().out
    assert main(["build", "--continue", run, "--queries", "q7"]) == 0
    assert (ran[1][2]["queries"], ran[1][2]["against"]) == ("q7", "pypi:4.1.4")


@pytest.mark.parametrize("value", [Value.INVALID, Value.MISSING])
def test_what_was_invalid_or_not_measured_begins_again(ran: Ran, value: Value) -> None:
    run = night(q0=Value.OK, q5=Value.UNDECIDED, q9=value)
    assert main(["build", "--continue", run]) == 0
    assert ran[0][2]["queries"] == "q5,q9"


@pytest.mark.parametrize(("given", "batches"), [({}, None), ({"batches": 1200}, 1200)])
def test_a_soak_goes_on_with_the_batches_that_it_had(
    ran: Ran, given: Mapping[str, Any], batches: int | None
) -> None:
    params = {"workload": "soak", "against": "pypi:4.2.1", **given}
    workload = make_night(load(), "spark-4.3.0", BUILD_DAG_ID, "run", params).workload
    run = night(
        changes={"workload": "soak", "workload_spec": workload.model_dump(mode="json")},
        q0=Value.OK,
        q5=Value.SUSPECT,
    )
    assert main(["soak", "--continue", run]) == 0
    _, _, of_new = ran[0]
    assert (of_new["queries"], of_new["workload"]) == ("q5", "soak")
    assert of_new.get("batches") == batches
    again = make_night(load(), "spark-4.3.0", BUILD_DAG_ID, "run", {**of_new, "repetitions": None})
    assert again.workload == workload  # else its pairs would not be counted with the others


def test_what_a_soak_compared_with_another_build_goes_on_by_its_verb(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    run = night(q5=Value.SUSPECT, q7=Value.SUSPECT)
    assert main(["soak", "--continue", run]) == 0
    assert f"nexmark soak --continue '{run}' --queries q7" in capsys.readouterr().out
    assert ran[0][2]["queries"] == "q5"


def test_batches_of_a_soak_are_kept(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    run = night(q5=Value.SUSPECT)
    assert main(["soak", "--continue", run, "--batches", "500"]) != 0
    assert "leave out --batches" in " ".join(capsys.readouterr().err.split())
    assert ran == []


@pytest.mark.parametrize("verb", ["build", "soak"])
def test_an_interrupted_comparison_says_how_to_go_on(
    verb: str, ran: Ran, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[str] = []

    def interrupted(config: Config, dag: str, engine: str, params: Mapping[str, Any]) -> int:
        changes = {"dag_id": BUILD_DAG_ID, "started": datetime.now(UTC)}
        begun.append(night(changes=changes, q5=Value.UNDECIDED))
        return INTERRUPTED

    night(changes={"dag_id": BUILD_DAG_ID, "run_id": "earlier"}, q5=Value.UNDECIDED)
    monkeypatch.setattr(night_runner, "run_night", interrupted)
    assert main([verb, "--build", "pypi:4.3.0", "--against", "pypi:4.2.1"]) == INTERRUPTED
    assert f"nexmark {verb} --continue '{begun[0]}'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("further", "first"), [({"q0": 2, "q5": 29}, 3), ({"q0": 4, "q5": 29}, 4), ({"q5": 29}, 5)]
)
def test_the_first_round_has_no_more_pairs_than_decide_a_query(
    ran: Ran, further: Mapping[str, int], first: int
) -> None:
    run = night(further, q0=Value.UNDECIDED, q5=Value.UNDECIDED)
    assert main(["build", "--continue", run]) == 0
    assert ran[0][2]["repetitions"] == first


def test_what_the_candidate_alone_had_goes_on(ran: Ran) -> None:
    alone = {"spark.a": "1", CANDIDATE_JOB: "/changed", f"{CANDIDATE_JOB}.busy": "sql-1"}
    run = night(alone=alone, q5=Value.UNDECIDED)
    assert main(["build", "--continue", run]) == 0
    params = ran[0][2]
    assert (params["candidate_conf"], params["candidate_job"]) == ({"spark.a": "1"}, "/changed")


def test_the_latest_run_goes_on_and_its_name_is_said(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    run = night(q5=Value.UNDECIDED)
    assert main(["build", "--continue", "latest", "--engine", "spark-4.3.0"]) == 0
    ((_, engine, params),) = ran
    assert (engine, params["queries"]) == ("spark-4.3.0", "q5")
    assert capsys.readouterr().err == f"latest: {run}\n"


def test_where_all_is_decided_nothing_runs(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    run = night(q0=Value.OK, q5=Value.REGRESSION)
    assert main(["build", "--continue", run]) == 0
    assert ran == []
    assert "every query is decided; there is nothing to go on with" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--queries", "q0"], "left q5 undecided; leave out q0"),
        (["--workload", "small"], "--continue keeps what the run compared; leave out --workload"),
        (["--against", "pypi:4.1.4"], "leave out --against"),
    ],
)
def test_what_the_run_has_decided_is_refused(
    ran: Ran, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = night(q0=Value.OK, q5=Value.UNDECIDED)
    assert main(["build", "--continue", run, *arguments]) != 0
    assert ran == []
    assert says in " ".join(capsys.readouterr().err.split())
