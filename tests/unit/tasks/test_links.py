"""Links from a task to its measurement and to Spark's history server."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.serialization.serialized_objects import DagSerialization

from nexmark.config import ConfigError, load
from nexmark.config.paths import conf_dir
from nexmark.dag.graph import build_nightly_dag
from nexmark.dag.links import LINKS, MeasurementLink, SparkHistoryLink, publish_event_log
from nexmark.dag.submit_operator import NexmarkSubmitOperator
from nexmark.model import Arm
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Run
from nexmark.night.submission import Repetition, Submission
from nexmark.store.store import shape
from tests.unit.tasks.submissions import of_label, repetition

DAG_ID, RUN_ID = "nexmark_spark_4_3_0", "manual__2026-11-21T07:02:22.257654+00:00"
NIGHT = f"/nexmark/night/{DAG_ID}/manual__2026-11-21T07%3A02%3A22.257654%2B00%3A00"
SERVER = "http://history.example:18080/spark/"


def key(task_id: str) -> Any:
    return SimpleNamespace(dag_id=DAG_ID, run_id=RUN_ID, task_id=task_id, map_index=3, try_number=1)


def operator(submission: Submission | None = None) -> NexmarkSubmitOperator:
    """As it is when its application has been started, of a mapped task too."""
    made = NexmarkSubmitOperator(task_id="x", submission={}, application="x.py")
    made.running = submission
    return made


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    params = {"workload": "nightly", "cluster": "local", "queries": "q5,q16"}
    return make_night(load(), "spark-4.3.0", DAG_ID, RUN_ID, params)


class TestMeasurement:
    @pytest.mark.parametrize(
        ("task_id", "label", "page"),
        [
            ("q5.repetition", "q5 baseline-rep-3", "/query/q5"),
            ("q5.verify", "q5 verify", "/query/q5"),
            ("round_2.repetition", "q16 round-2-rep-1", "/query/q16"),
            ("dump_events", "dump_events", ""),
        ],
    )
    def test_leads_to_the_query_that_the_instance_ran(
        self, night: Night, task_id: str, label: str, page: str
    ) -> None:
        """Instances of a mapped task run whatever is next: the task alone does not tell."""
        url = MeasurementLink().get_link(operator(of_label(night, label)), ti_key=key(task_id))
        assert url == NIGHT + page

    def test_of_one_that_did_not_start_the_task_tells(self) -> None:
        link = MeasurementLink()
        assert link.get_link(operator(), ti_key=key("q5.repetition")) == f"{NIGHT}/query/q5"
        assert link.get_link(operator(), ti_key=key("round_2.repetition")) == NIGHT

    def test_is_below_airflow_wherever_that_is(
        self, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/airflow/")
        started = operator(of_label(night, "q5 rep-1"))
        url = MeasurementLink().get_link(started, ti_key=key("q5.repetition"))
        assert url == f"/airflow{NIGHT}/query/q5"


class TestSparkHistory:
    @pytest.fixture
    def submission(self, night: Night, tmp_path: Path) -> Repetition:
        log = tmp_path / "rep-1" / "events" / "eventlog_v2_app-20261121184648-0002"
        log.mkdir(parents=True)
        run = Run(query="q5", number=1)
        made = repetition(night, run, tmp_path / "rep-1")
        return made.model_copy(update={"history_server": SERVER})

    def link(self, submission: Submission) -> str:
        found = SparkHistoryLink().get_link(operator(submission), ti_key=key("q5.repetition"))
        return str(found)

    def test_leads_to_the_application(self, submission: Repetition) -> None:
        url = "http://history.example:18080/spark/history/app-20261121184648-0002/"
        assert self.link(submission) == url

    def test_knows_a_log_that_is_one_file(self, submission: Repetition, tmp_path: Path) -> None:
        """As Spark 3.5 writes them, and leaves them where it was killed."""
        events = tmp_path / "rep-1" / "events"
        (events / "eventlog_v2_app-20261121184648-0002").rmdir()
        (events / "app-20261121184648-0007.zstd.inprogress").touch()
        assert self.link(submission).endswith("/history/app-20261121184648-0007/")

    def test_is_absent_rather_than_dead(
        self, night: Night, submission: Repetition, tmp_path: Path
    ) -> None:
        assert self.link(submission.model_copy(update={"history_server": None})) == ""
        (tmp_path / "rep-1" / "events" / "eventlog_v2_app-20261121184648-0002").rmdir()
        assert self.link(submission) == ""
        assert self.link(of_label(night, "q5 verify")) == ""

    def test_the_history_server_finds_all_logs_in_one_directory(
        self, submission: Repetition, tmp_path: Path
    ) -> None:
        gone = tmp_path / "home" / "event-logs" / "app-1-1"
        gone.parent.mkdir(parents=True)
        gone.symlink_to(tmp_path / "removed")
        for _ in range(2):  # tried again
            publish_event_log(submission)
        (link,) = (tmp_path / "home" / "event-logs").iterdir()
        assert link.name == "eventlog_v2_app-20261121184648-0002"
        assert link.resolve() == (tmp_path / "rep-1" / "events" / link.name).resolve()

    def test_without_one_nothing_is_written(self, submission: Repetition, tmp_path: Path) -> None:
        publish_event_log(submission.model_copy(update={"history_server": None}))
        assert not (tmp_path / "home" / "event-logs").exists()


def test_airflow_keeps_the_links_of_every_spark_submit_task() -> None:
    """Also after the DAG was serialised, of mapped tasks as of others."""
    config = load()
    dag = build_nightly_dag(config.newest, config)
    serialized = DagSerialization.to_dict(dag)
    again = DagSerialization.from_dict(serialized)
    submits = [task.task_id for task in dag.tasks if task.task_type == "NexmarkSubmitOperator"]
    assert {"dump_events", "q5.verify", "q5.repetition", "round_2.repetition"} <= set(submits)
    for task_id in submits:
        links = again.get_task(task_id).operator_extra_link_dict
        kept = {name: link.xcom_key for name, link in links.items()}
        assert kept == {
            "Measurement": "_link_MeasurementLink",
            "Spark history": "_link_SparkHistoryLink",
        }
    assert len({link.xcom_key for link in LINKS}) == len(LINKS)


class TestHistoryServerSetting:
    @staticmethod
    def clusters(tmp_path: Path, value: str) -> Any:
        """The clusters of the repository, where the first has this history server."""
        directory = tmp_path / "conf"
        shutil.copytree(conf_dir(), directory)
        path = directory / "clusters.yaml"
        text = path.read_text()
        setting = f"    kind: embedded\n    history_server: {value}\n"
        path.write_text(text.replace("    kind: embedded\n", setting, 1))
        return load(directory).clusters

    def test_is_the_same_for_both_arms_and_changes_no_shape(self, tmp_path: Path) -> None:
        cluster = self.clusters(tmp_path, SERVER)["local"]
        assert cluster.of_arm(Arm.BASELINE).history_server == SERVER
        without = cluster.model_dump(exclude={"history_server"})
        assert shape({}, cluster.model_dump()) == shape({}, without)

    @pytest.mark.parametrize(
        "value",
        [
            *("history:18080", "ftp://history", "http://", "'javascript:alert(1)'"),
            *("http://me:pw@history", "'http://a b'", "http://history?x=1"),
        ],
    )
    def test_anything_but_a_web_address_is_refused_in_one_line(
        self, tmp_path: Path, value: str
    ) -> None:
        with pytest.raises(ConfigError, match=r"is not the address of a web server") as caught:
            self.clusters(tmp_path, value)
        assert "history_server" in str(caught.value)
        assert "\n" not in str(caught.value)
