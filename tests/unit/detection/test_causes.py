"""Every cause is one: Spark knows its confs, and its Python workers read functions that sleep."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.detection.causes import CAUSES, choose
from nexmark.cli.shared_options import confs
from nexmark.config import KNOWN_QUERIES
from nexmark.errors import NexmarkError
from nexmark.night.make_night import spark_confs

SLEEPING = next(cause for cause in CAUSES if cause.name == "sleep")

ON_SPARK = """
import json, sys
from pyspark.sql import SparkSession, functions as F

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "OFF").getOrCreate()
known = spark._jsparkSession.sessionState().conf()
defaults = {}
for name in json.loads(sys.argv[1]):
    try:
        defaults[name] = known.getConfString(name)
    except Exception:
        defaults[name] = None

def slow(number):
    import pyspark.worker
    return hasattr(pyspark.worker.read_command, "__wrapped__")

(row,) = spark.range(1).select(F.udf(slow, "boolean", useArrow=False)("id").alias("slow")).collect()
print(json.dumps({"defaults": defaults, "slow": row.slow}))
"""


@pytest.mark.spark
def test_spark_knows_every_conf_and_its_workers_read_functions_that_sleep(tmp_path: Path) -> None:
    """A conf that Spark does not know is no cause, and nothing says so."""
    confs = {
        key: value
        for cause in CAUSES
        for key, value in cause.conf.items()
        if key.startswith("spark.sql.")
    }
    program = tmp_path / "on_spark.py"
    program.write_text(ON_SPARK)
    path = SLEEPING.conf["spark.executorEnv.PYTHONPATH"]
    environment = {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(
        [sys.executable, program, json.dumps(list(confs))],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert None not in found["defaults"].values(), found["defaults"]
    assert all(found["defaults"][key] != value for key, value in confs.items())
    assert found["slow"]


@pytest.fixture(scope="module")
def sleeping() -> ModuleType:
    directory = Path(SLEEPING.conf["spark.executorEnv.PYTHONPATH"])
    spec = importlib.util.spec_from_file_location("not_installed", directory / "sitecustomize.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_function_that_sleeps_says_the_same_and_takes_no_cpu_time(sleeping: ModuleType) -> None:
    read = sleeping.reading(lambda: (str.upper, "string"))
    function, returned = read()
    clock, cpu = time.monotonic(), time.process_time()
    assert {function("a") for _ in range(10 * sleeping.CALLS)} == {"A"}
    assert returned == "string"
    assert time.monotonic() - clock >= 10 * sleeping.SLEEP_S
    assert time.process_time() - cpu < 10 * sleeping.SLEEP_S


@pytest.mark.parametrize("command", [None, ("f", "int"), (str.upper, "a", "b", "c")])
def test_what_is_no_function_stays_as_it_is(sleeping: ModuleType, command: Any) -> None:
    assert sleeping.reading(lambda: command)() == command


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_a_night_can_have_it(cause: Any) -> None:
    assert cause.query in KNOWN_QUERIES
    assert spark_confs(cause.conf) == cause.conf
    assert cause.options[::2] == ["--candidate-conf"] * len(cause.conf)
    assert dict(text.split("=", 1) for text in confs(cause.options[1::2]) or ()) == cause.conf


def test_causes_are_chosen_by_name_and_by_query() -> None:
    assert choose([], []) == list(CAUSES)
    assert [cause.name for cause in choose(["sort", "codegen"], [])] == ["codegen", "sort"]
    assert {cause.query for cause in choose([], ["q5"])} == {"q5"}


@pytest.mark.parametrize(
    ("names", "queries", "said"),
    [
        (["sorts"], [], "cause 'sorts' is not known; did you mean 'sort'?"),
        ([], ["q7"], "query 'q7' shows none of the causes; "),
        (["sort"], ["q0"], "no cause is left: q0 shows none of those named"),
    ],
)
def test_an_unknown_one_is_reported(names: list[str], queries: list[str], said: str) -> None:
    with pytest.raises(NexmarkError) as told:
        choose(names, queries)
    assert str(told.value).startswith(said)
