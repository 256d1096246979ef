"""A paced night is planned with slots enough and judged by latency; what cannot be is refused."""

from __future__ import annotations

from typing import Any

import pytest

from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.model import Arm
from nexmark.night import paced_night
from nexmark.night.accepted import _self_test
from nexmark.night.plan import Night
from nexmark.night.planning import make_night


def planned(engine: str = "spark-4.3.0", workload: str = "latency", **params: Any) -> Night:
    return make_night(load(), engine, "dag", "run", {"workload": workload, **params})


def test_it_is_judged_by_latency_and_has_slots_for_all_partitions() -> None:
    night = planned()
    assert (night.mode, night.gate.metric) == ("paired", "latency_ms_p50")
    assert night.cluster.executor_cores == 4
    assert planned(workload="smoke").cluster.executor_cores == 2
    assert planned(workload="smoke").gate.metric == "cpu_s_per_mevent"
    assert paced_night.problems(night) == []
    assert paced_night.problems(planned(workload="realtime")) == []


def test_by_bounds_is_refused() -> None:
    with pytest.raises(NexmarkError, match="latency is of kind paced, which is judged by pairs; "):
        planned(mode="bounds")


def test_queries_that_cannot_be_measured_are_named() -> None:
    (said,) = paced_night.problems(planned(queries="q0,q5"))
    assert said.startswith("queries: the latency of q5 cannot be measured; take q0, q1, q2, ")


def test_real_time_mode_is_refused_where_spark_has_it_not() -> None:
    said = paced_night.problems(planned("spark-4.2.1", "realtime"))
    assert said == [
        "workload realtime: q17 cannot run in Real-Time Mode on Spark 4.2.1: it keeps state, which "
        "needs Spark 4.3; leave it out of queries"
    ]
    assert len(paced_night.problems(planned("spark-3.5.9", "realtime"))) == 2


def test_too_few_slots_on_hosts_are_refused() -> None:
    night = planned()
    few = night.model_copy(update={"cluster": load().clusters["local"]})
    (said,) = paced_night.problems(few)
    assert said.startswith("slots: workload latency needs 3 at once")


def test_only_the_half_of_the_self_test_that_means_something() -> None:
    assert list(_self_test(planned(), ["q0", "q17"], 0)) == [Arm.CONTROL]
    assert list(_self_test(planned(workload="smoke"), ["q0", "q17"], 0)) == [
        Arm.CONTROL,
        Arm.SLOWED,
    ]
