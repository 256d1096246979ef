"""The scheduler is killed and restarted in mid-query: this night and the next one are right."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from nexmark.airflow_site.api import AirflowApi
from nexmark.airflow_site.backfills import close_abandoned
from nexmark.config import load
from tests.airflow_site import ENDED, Airflow, airflow_of
from tests.cluster.nights import under_way
from tests.cluster.testbed import Testbed
from tests.site import DAG_ID, Site

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]


@pytest.fixture(scope="module")
def airflow(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """As `nexmark ui` starts it: what killed nights have left in Airflow is ended first."""
    logs = tmp_path_factory.mktemp("logs")
    with airflow_of(site, logs, DAG_ID, components=("api-server", "dag-processor")) as made:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NEXMARK_HOME", str(site.home))
            patch.setenv("NEXMARK_CONF", str(site.conf))
            api = AirflowApi(f"http://127.0.0.1:{made.port}", made.token, direct=True)
            close_abandoned(load(), api)
        made.start("scheduler")
        yield made


def trigger(airflow: Airflow) -> str:
    conf = {"queries": "q0", "workload": "tiny", "cluster": "namespaces"}
    return airflow.trigger(DAG_ID, conf)


@dataclass
class Nights:
    """The states that two nights ended in, and their run ids."""

    hit: str
    hit_state: str
    next: str
    next_state: str
    seconds: float


@pytest.fixture(scope="module")
def nights(airflow: Airflow, session_testbed: Testbed) -> Nights:
    run = trigger(airflow)

    def ended(run: str) -> bool:
        return airflow.state(DAG_ID, run) in ENDED

    airflow.wait(lambda: under_way(session_testbed, "q0-rep-1") or ended(run), DAG_ID, run)
    begin = time.monotonic()
    airflow.kill_scheduler()
    time.sleep(2)
    airflow.start("scheduler")
    airflow.wait(lambda: ended(run), DAG_ID, run)
    seconds = time.monotonic() - begin
    print(run, airflow.state(DAG_ID, run), seconds, airflow.tasks(DAG_ID, run))
    following = trigger(airflow)
    airflow.wait(lambda: ended(following), DAG_ID, following)
    print(following, airflow.state(DAG_ID, following), airflow.tasks(DAG_ID, following))
    return Nights(
        run, airflow.state(DAG_ID, run), following, airflow.state(DAG_ID, following), seconds
    )


@pytest.mark.fault("scheduler killed in mid-query")
def test_the_night_ends_right_or_tells_why(
    site: Site, nights: Nights, record_property: Callable[[str, object], None]
) -> None:
    record_property("seconds", f"{nights.seconds:.1f}")
    with site.store() as store:
        rows = store.repetitions(f"{DAG_ID}/{nights.hit}")
        verdicts = store.verdicts(f"{DAG_ID}/{nights.hit}")
    (row,) = rows
    record_property("outcome", "right" if row.status == "ok" else f"{row.status}: {row.reason}")
    if row.status == "ok":
        assert nights.hit_state == "success"
    else:
        assert nights.hit_state == "failed"
        assert row.reason
    assert [verdict.value for verdict in verdicts if verdict.value == "REGRESSION"] == []


@pytest.mark.fault("the night after, same scheduler", outcome="green")
def test_the_next_night_is_green(nights: Nights) -> None:
    assert nights.next_state == "success"
