"""A paced night is planned with slots enough and judged by latency; what cannot be is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nexmark.acceptance.accepted_baselines import with_baselines
from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.model import P50, P99, Arm
from nexmark.night.kinds import kind_of, paced
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.store import ValidationRecord, open_store
from tests.unit.store.store_builder import measurement, repetition
from tests.unit.store.store_builder import night as record_night


def planned(engine: str = "spark-4.3.0", workload: str = "latency", **params: Any) -> Night:
    return make_night(load(), engine, "dag", "run", {"workload": workload, **params})


def test_it_is_judged_by_latency_and_has_slots_for_all_partitions() -> None:
    night = planned()
    assert (night.mode, night.gate.metric) == ("paired", "latency_ms_p50")
    assert night.cluster.executor_cores == 4
    assert planned(workload="smoke").cluster.executor_cores == 2
    assert planned(workload="smoke").gate.metric == "cpu_s_per_mevent"
    assert paced.problems_of(night) == []
    assert paced.problems_of(planned(workload="realtime")) == []


def test_by_bounds_is_refused() -> None:
    with pytest.raises(NexmarkError, match="latency is of kind paced, which is judged by pairs; "):
        planned(mode="bounds")


def test_queries_that_cannot_be_measured_are_named() -> None:
    (said,) = paced.problems_of(planned(queries="q0,q5"))
    assert said.startswith("queries: the latency of q5 cannot be measured; take q0, q1, q2, ")


def test_real_time_mode_is_refused_where_spark_has_it_not() -> None:
    said = paced.problems_of(planned("spark-4.2.1", "realtime"))
    assert said == [
        "workload realtime: q17 cannot run in Real-Time Mode on Spark 4.2.1: it keeps state, which "
        "needs Spark 4.3; leave it out of queries"
    ]
    assert len(paced.problems_of(planned("spark-3.5.9", "realtime"))) == 2


def test_too_few_slots_on_hosts_are_refused() -> None:
    night = planned()
    few = night.model_copy(update={"cluster": load().clusters["local"]})
    (said,) = paced.problems_of(few)
    assert said.startswith("slots: workload latency needs 3 at once")


def test_the_slowed_arm_has_later_rows_if_their_usual_latency_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/results.db"
    monkeypatch.setenv("NEXMARK_DB", database)
    against = {"q0": planned().candidate, "q17": planned().candidate}
    unknown = with_baselines(planned().model_copy(update={"against": against}))
    assert (list(unknown.self_test), unknown.slowed_confs) == ([Arm.CONTROL], {})
    with open_store(database) as store:
        done = record_night(workload="latency", cluster="workstation", queries=["q0", "q17"])
        store.record_night(done)
        for query in done.queries:
            figures = measurement(figures={P50: 300.0, P99: 500.0})
            store.record_repetition(repetition(done.run, query, measurement=figures))
            store.record_validation(ValidationRecord(done.run, query, True, [], 9, {"rows": 5}))
        store.accept(done.run, "ada", "right")
    night = with_baselines(planned())
    assert sorted(night.self_test) == [Arm.CONTROL, Arm.SLOWED]
    assert night.slowed_confs == {"spark.nexmark.batch_every": "320 milliseconds"}
    assert kind_of(night.workload).slowed_size(night, "q0").events == night.workload.events
