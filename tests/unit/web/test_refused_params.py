"""A param that Airflow refuses: one line of ours, in the form and for clients of the REST API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from airflow.exceptions import ParamValidationError
from airflow.serialization.definitions.param import SerializedParam, SerializedParamsDict
from fastapi import Body, FastAPI, HTTPException
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.testclient import TestClient

from nexmark.config import load
from nexmark.dag.dag_params import on_demand_params
from nexmark.web.refused_params import RefusedParams


def api() -> FastAPI:
    """What Airflow does with the params of a run, by its own classes."""
    params = {
        name: SerializedParam(param.value, param.description, **param.schema)
        for name, param in on_demand_params(load()).items()
    }
    app = FastAPI()

    @app.post("/api/v2/dags/{dag}/dagRuns")
    def trigger(dag: str, body: dict[str, Any] = Body()) -> dict[str, Any]:  # noqa: B008
        try:
            SerializedParamsDict(params).deep_merge(body.get("conf")).validate()
        except (ParamValidationError, ValueError) as error:
            raise HTTPException(400, str(error)) from None
        return {"dag_run_id": "x" * 5000}

    app.add_middleware(GZipMiddleware, minimum_size=100)
    app.add_middleware(RefusedParams)
    return app


def asked(conf: object, dag: str = "nexmark_build") -> tuple[int, Any]:
    answer = TestClient(api()).post(f"/api/v2/dags/{dag}/dagRuns", json={"conf": conf})
    return answer.status_code, answer.json().get("detail")


BUILD = {"build": "pypi:4.3.0"}


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"queries": "q5,q44"}, "queries: unknown query 'q44'; did you mean 'q4'?"),
        ({"queries": ["q5", "q44"]}, "queries: unknown query 'q44'; did you mean 'q4'?"),
        ({"workload": "smok"}, "workload: unknown workload 'smok'; did you mean 'smoke'?"),
        ({"engine": "spark-4.3"}, "engine: unknown engine 'spark-4.3'; did you mean "),
        ({"mode": "pairs"}, "mode: unknown mode 'pairs'; did you mean 'paired'?"),
        ({"pairs": 2}, "pairs: 2: input should be greater than or equal to 3; correct it"),
        ({"repetitions": "5"}, "repetitions: '5': input should be a valid integer; correct it"),
        ({"candidate_conf": {"spark.ui.password": "Xk7"}}, "spark.ui.password is a secret, and "),
        ({"build": ""}, "build: '' should be non-empty; correct it"),
    ],
)
def test_a_wrong_value_is_one_line(conf: dict[str, Any], says: str) -> None:
    status, detail = asked(BUILD | conf)
    assert status == 400
    assert says in detail
    assert [word for word in ("\n", "schema", "On instance", "Xk7") if word in detail] == []


def test_a_param_that_is_not_given_is_named() -> None:
    assert asked({}) == (400, "build: is not given; give it")


@pytest.mark.parametrize("queries", ["Q5", "q0, Q14_python_udf", ["Q5"]])
def test_a_run_goes_through(queries: object) -> None:
    assert asked(BUILD | {"queries": queries}) == (200, None)


def test_the_dags_of_others_are_left_alone() -> None:
    assert "Failed validating" in asked(BUILD | {"workload": "smok"}, dag="etl")[1]


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", json.dumps({"conf": 5}).encode()])
def test_another_refusal_is_left_alone(body: bytes) -> None:
    answer = TestClient(api()).post("/api/v2/dags/nexmark_build/dagRuns", content=body)
    assert answer.status_code in (200, 400, 422, 500)
