"""A param that a DAG has not is refused: Airflow keeps it, and says nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from nexmark.config import load
from nexmark.dag.dag_params import nightly_params
from nexmark.tasks import given_params


def context(**conf: object) -> Any:
    """The context of a night that was given these params."""
    config = load()
    params = nightly_params(config.newest, config)
    run = SimpleNamespace(dag_id="nexmark_spark_4_3_0", conf=conf)
    return {"dag": SimpleNamespace(params=params), "dag_run": run, "params": {"queries": "q5"}}


def test_a_param_that_is_misspelt_is_refused_with_the_nearest_name() -> None:
    """Else the night would run all queries in place of the one that a person asked for."""
    said = r"param 'querries': nexmark_spark_4_3_0 has none of that name; did you mean 'queries'\?"
    with pytest.raises(AirflowFailException, match=said):
        given_params(context(querries="busy_auctions"))
    assert given_params(context(queries="q5")) == {"queries": "q5"}
