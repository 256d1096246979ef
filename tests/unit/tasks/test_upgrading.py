"""Running queries in a night: what is checked, what is recorded, what turns it red, what is shown.

The check itself is tested in `tests/compat`; here it finds what a test says.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from nexmark.compatibility.application import ApplicationError
from nexmark.compatibility.cases import Case, Input, Side
from nexmark.compatibility.plans import PlanDifference, PlanGrade, QueryPlan
from nexmark.compatibility.results import Compatibility, Restart, RestartOutcome
from nexmark.config import load, paths
from nexmark.evidence.night_evidence import make_report, night_evidence
from nexmark.model import FAILING
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.recording.night_records import record_night
from nexmark.report.evidence_files import night_html, question_text
from nexmark.report.evidence_json import night_json
from nexmark.report.table import report_text
from nexmark.store import Store, open_store
from nexmark.tasks import judging, upgrading
from tests.unit.store.night_builder import record_pair, validate
from tests.unit.tasks.in_task import in_task_of

QUERIES = ("q0", "q5", "q17")
NAMES = ("spark.sql.shuffle.partitions", "spark.sql.streaming.stateStore.compression.codec")


def deployment(version: str, build: str) -> Deployment:
    return Deployment(
        program="fedc",
        build=build,
        spark_version=version,
        spark_home=f"/builds/{version}",
        source=f"pypi:{version}",
        jobs="sha-jobs",
        jobs_home="/jobs",
    )


OLD, NEW = deployment("4.2.1", "sha-421"), deployment("4.3.0", "sha-430")


def planned(**params: Any) -> Night:
    given = {"workload": "nightly", "cluster": "local", "queries": ",".join(QUERIES)}
    asked = {**given, "against": "pypi:4.2.1", "repetitions": 3, **params}
    return make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "manual__1", asked)


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Night]:
    """Begin a night of these params, with a candidate, on a home of its own."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)

    def begun(candidate: Deployment = NEW, **params: Any) -> Night:
        night = planned(**params)
        baselines = dict.fromkeys(night.against, OLD)
        deployments = Deployments(candidate=candidate, baselines=baselines)
        deployments.write(night)
        record_night(night, deployments)
        in_task_of(night, monkeypatch)
        return night

    return begun


@pytest.fixture
def store(begin: Callable[..., Night]) -> Iterator[Store]:
    with open_store(paths.database_url()) as opened:
        yield opened


def plan(text: str) -> QueryPlan:
    operator = {"name": "aggregation", "key_types": ("bigint",)}
    return QueryPlan(text, "StateStoreSave", 1, (operator,))


def found(query: str, forward: Restart, backward: Restart | None = None) -> Compatibility:
    return Compatibility(
        Case(query, "sql", "sql"),
        (plan(f"old plan of {query}"), plan(f"new plan of {query}")),
        PlanDifference(PlanGrade.SAME, ()),
        forward,
        backward or Restart(RestartOutcome.RIGHT),
        {NAMES[0]: "2"},
    )


RIGHT = Restart(RestartOutcome.RIGHT)
REFUSED = Restart(
    RestartOutcome.REFUSED, "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "the key is a string"
)
WRONG = Restart(RestartOutcome.WRONG, reason="7 of 9 rows are not in the reference")


def finding(monkeypatch: pytest.MonkeyPatch, *results: Compatibility) -> list[Any]:
    """The check finds these; returns with what it was called."""
    calls: list[Any] = []

    def check(*arguments: Any, **options: Any) -> list[Compatibility]:
        calls.append((arguments, options))
        return list(results)

    monkeypatch.setattr("nexmark.compatibility.upgrade.check", check)
    return calls


def test_on_in_nightly_nights_off_elsewhere_and_as_a_person_says() -> None:
    assert planned().compatibility == load().workloads["nightly"].compatibility
    assert planned(compatibility=False).compatibility is None
    assert planned(workload="small").compatibility is None
    asked = planned(workload="small", compatibility=True).compatibility
    assert asked is not None
    assert (asked.events, asked.tps) == (20_000, 200)


@pytest.mark.parametrize(
    ("candidate", "params", "reason"),
    [
        (NEW, {"compatibility": False}, "neither the workload nor a person asks for it"),
        (NEW, {"against": None, "mode": "bounds"}, "there is no baseline build to go on from"),
        (OLD, {}, "candidate and baseline are the same build"),
    ],
)
def test_what_is_not_checked_is_skipped_with_one_line(
    begin: Callable[..., Night],
    candidate: Deployment,
    params: dict[str, Any],
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    begin(candidate, **params)
    with pytest.raises(AirflowSkipException):
        upgrading.compatibility()
    assert caplog.messages == [f"compatibility: not checked: {reason}"]


def test_both_arms_have_the_confs_of_queries_and_the_candidate_its_own(
    begin: Callable[..., Night], monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = {NAMES[0]: 16, NAMES[1]: "lz4", "spark.locality.wait": "1s"}
    night = begin(OLD, candidate_conf=conf)  # the same build: the confs differ
    calls = finding(monkeypatch, found("q5", RIGHT), found("q17", RIGHT))
    upgrading.compatibility()
    (((first, second, cases, events, _), options),) = calls
    assert isinstance(first, Side)
    assert (first.build.id, first.confs) == ("sha-421", {NAMES[0]: "2"})
    assert (second.build.id, second.confs) == ("sha-421", {NAMES[0]: "16", NAMES[1]: "lz4"})
    assert [case.query for case in cases] == list(QUERIES)
    assert isinstance(events, Input)
    assert (events.events, events.tps) == (20_000, 200)
    assert options["only_stateful"]
    assert options["below"].is_relative_to(night.spark_cluster.scratch)


STOPPED = f"""
application:
  main: script.py
  args: ["{{{{ checkpoint }}}}"]
  confs:
    {NAMES[0]}: 3
    {NAMES[1]}: zstd
    spark.jars.ivy: /ivy
    spark.hadoop.s3.password: hunter22
  ends: itself
"""


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with the job `busy` and two applications; returns its jobs."""
    conf = tmp_path / "conf"
    shutil.copytree(paths.repository() / "include" / "conf", conf)
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    files = {
        "busy.yaml": f"tables: nexmark\nsql: busy.sql\nconfs: {{{NAMES[1]}: zstd}}\n",
        "busy.sql": "SELECT 1 FROM bid",
        "script.yaml": "application: {main: script.py, ends: itself}\n",
        "stopped.yaml": STOPPED,
        "script.py": "print(1)\n",
    }
    for name, text in files.items():
        (conf / "jobs" / name).write_text(text)
    return conf / "jobs"


def test_a_job_is_checked_by_itself_with_its_confs(
    busy: Path, begin: Callable[..., Night], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(queries="q5,busy", candidate_conf={NAMES[0]: 16})
    calls = finding(monkeypatch)
    upgrading.compatibility()
    of_query, of_job = ((*arguments[:2], arguments[2]) for arguments, _ in calls)
    assert [case.query for case in of_query[2]] == ["q5"]
    assert [case.query for case in of_job[2]] == ["busy"]
    first, second, _ = of_job
    assert first.job.name == second.job.name == "busy"
    assert first.confs == {NAMES[0]: "2", NAMES[1]: "zstd"}
    assert second.confs == {NAMES[0]: "16", NAMES[1]: "zstd"}


def test_a_changed_job_is_checked_on_one_build_without_being_asked_for(
    busy: Path, begin: Callable[..., Night], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changed = tmp_path / "changed"
    changed.mkdir()
    shutil.copy(busy / "busy.yaml", changed)
    (changed / "busy.sql").write_text("SELECT 2 FROM bid")
    begin(OLD, queries="q5,busy", candidate_job=str(changed), workload="compare")
    calls = finding(monkeypatch)
    upgrading.compatibility()
    (((first, second, cases, *_), _),) = calls
    assert (first.build, first.job.text) == (second.build, "SELECT 1 FROM bid")
    assert second.job.text == "SELECT 2 FROM bid"
    assert [(case.query, case.first != case.second) for case in cases] == [("busy", True)]


NO_CHECKPOINT = "script: no argument and no conf of it has {{ checkpoint }}, so it cannot go on"


def test_an_application_that_has_no_checkpoint_is_left_out_with_a_line(
    busy: Path, begin: Callable[..., Night]
) -> None:
    begin(queries="script")
    with pytest.raises(AirflowSkipException, match=re.escape(NO_CHECKPOINT)):
        upgrading.compatibility()


def test_an_application_is_checked_with_all_confs_and_its_secrets(
    busy: Path,
    begin: Callable[..., Night],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A conf of the candidate alone goes before the same conf of the application."""
    night = begin(queries="script,stopped", candidate_conf={NAMES[0]: 16})
    sides: list[Side] = []

    def check(first: Side, second: Side, *_: Any, below: Path) -> Compatibility:
        sides.extend((first, second))
        assert below.is_relative_to(night.spark_cluster.scratch)
        return replace(found("stopped", RIGHT), plans=(None, None))

    monkeypatch.setattr("nexmark.compatibility.upgrade.check_application", check)
    upgrading.compatibility()
    own = {NAMES[1]: "zstd", "spark.jars.ivy": "/ivy", "spark.hadoop.s3.password": "hunter22"}
    for side, partitions in zip(sides, ("3", "16"), strict=True):
        assert side.confs.items() >= {NAMES[0]: partitions, **own}.items()
    assert [(row.query, row.outcome, row.red) for row in store.compatibility(night.name)] == [
        ("stopped", "same", False)
    ]
    assert f"compatibility: {NO_CHECKPOINT.replace(':', ' is not checked:', 1)}" in caplog.messages
    assert "hunter22" not in (night.directory / "compatibility.json").read_text()


def test_queries_that_survive_are_recorded_and_shown_in_a_line(
    begin: Callable[..., Night], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = begin()
    finding(monkeypatch, found("q5", RIGHT), found("q17", RIGHT))
    upgrading.compatibility()
    rows = store.compatibility(night.name)
    assert [(x.query, x.outcome, x.red, x.checkpoint) for x in rows] == [
        ("q5", "same", False, "partitions 2"),
        ("q17", "same", False, "partitions 2"),
    ]
    assert store.paired_night(night.name).invalid == {}
    (line,) = make_report(store, night.name).upgrades.lines
    assert line == "Running queries, from the baseline to the candidate and back: 2 same."
    written = json.loads((night.directory / "compatibility.json").read_text())
    assert [one["class"] for one in written] == ["same", "same"]


def measured(store: Store, night: Night) -> None:
    validate(store, night.name, QUERIES)
    for query in QUERIES:
        for pair in (1, 2, 3):
            record_pair(store, night.name, query, pair, candidate=10.0 + pair / 9, baseline=10.0)


def test_a_query_that_does_not_survive_turns_the_night_red_with_class_and_plans(
    begin: Callable[..., Night],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    night = begin()
    measured(store, night)
    finding(monkeypatch, found("q5", RIGHT, WRONG), found("q17", REFUSED))
    with pytest.raises(AirflowFailException, match="q17 state incompatible: the key is a string"):
        upgrading.compatibility()
    plans = ("baseline:\nold plan of q17", "candidate:\nnew plan of q17")
    assert "\n".join(f"q17, plan of the {x}" for x in plans) in caplog.messages
    judging.judge()
    values = {x.query: (x.value, x.reason) for x in store.verdicts(night.name) if x.decides}
    assert values["q17"] == ("INVALID", "state incompatible: the key is a string")
    assert values["q5"][0] == "INVALID"
    assert values["q5"][1].startswith("silently wrong: back: 7 of 9 rows")
    assert values["q0"][0] not in FAILING
    with pytest.raises(AirflowFailException, match="2 of 3 queries fail the night"):
        judging.verdict()
    report = make_report(store, night.name)
    assert report.failed
    text = report_text(report)
    assert "back: 1 silently wrong, 1 state incompatible." in text
    assert "Upgrade of q17: state incompatible (forward refused: STATE_STORE_KEY" in text
    assert "Next: compare the plans of q5 in" in text
    evidence = night_evidence(store, store.night(night.name), deep=False)
    page = night_html(evidence)
    assert report.upgrades.lines[1] in question_text(evidence, night.directory, night.directory)
    for piece in (*report.upgrades.lines, "old plan of q17", "new plan of q17"):
        assert piece in page
    assert evidence.reproduce["q17"].endswith(" --compatibility")
    kept = {one["query"]: one for one in night_json(evidence)["compatibility"]}
    assert kept["q17"]["candidate_plan"] == "new plan of q17"


def test_such_a_night_can_be_accepted_for_later_ones_are_compared_with_its_build(
    begin: Callable[..., Night], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = begin()
    measured(store, night)
    finding(monkeypatch, found("q17", REFUSED))
    with pytest.raises(AirflowFailException):
        upgrading.compatibility()
    judging.judge()
    assert store.accept(night.name, "ada", "a new state format", ["q17"]).queries == ("q17",)


@pytest.mark.parametrize("error", [ApplicationError("Spark 4.2.1: no JVM"), KeyboardInterrupt()])
def test_what_is_not_checked_to_the_end_is_not_known_and_red(
    begin: Callable[..., Night],
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    night = begin()

    def check(*_: Any, **__: Any) -> list[Compatibility]:
        raise error

    monkeypatch.setattr("nexmark.compatibility.upgrade.check", check)
    with pytest.raises((AirflowFailException, KeyboardInterrupt)):
        upgrading.compatibility()
    rows = store.compatibility(night.name)
    assert [(x.query, x.outcome, x.red) for x in rows] == [(x, "not known", True) for x in QUERIES]
    assert store.paired_night(night.name).invalid.keys() == set(QUERIES)
