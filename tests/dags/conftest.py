"""A private Airflow for the DAG tests: its own home, database and configuration directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

_HOME = Path(tempfile.mkdtemp(prefix="nexmark-airflow-"))
_ROOT = Path(__file__).parents[2]

# Before Airflow is imported anywhere in this process: it reads them once.
os.environ.update(
    {
        "AIRFLOW_HOME": str(_HOME),
        "AIRFLOW__CORE__DAGS_FOLDER": str(_ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(_ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }
)


@pytest.fixture(scope="session")
def bag() -> DagBag:
    """The DAGs of the package."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(str(_ROOT / "dags"))


def pytest_unconfigure() -> None:
    shutil.rmtree(_HOME, ignore_errors=True)
