"""Where `Any` may stand in the rooms of a night and of its results: each place has its reason."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import nexmark

ROOMS = (
    "acceptance",
    "dag",
    "evidence",
    "night",
    "recording",
    "report",
    "sampling",
    "store",
    "tasks",
)
FILES = ("judging.py",)
AIRFLOW = "Airflow's own parameters and operators are untyped there"
SCHEMA = "a JSON schema for a form of Airflow"
SPARK = "Spark's progress"
TREE = "syntax trees of any Python"
PYDANTIC = "the details of an error of pydantic"
COLUMNS = "the columns of a select, whose types SQLAlchemy knows one by one"
JSON = "JSON: configured objects and parts of result files, which are only kept and shown"
#: By file, how many names `Any` it has, and why.
ALLOWED: dict[str, tuple[int, str]] = {
    "dag/dag_params.py": (5, SCHEMA),
    "dag/notifying.py": (1, AIRFLOW),
    "dag/signoff.py": (4, AIRFLOW),
    "dag/submit_operator.py": (6, AIRFLOW),
    "night/kinds/recovery.py": (1, SPARK),
    "night/make_night.py": (1, PYDANTIC),
    "night/params.py": (2, SCHEMA),
    "night/timed_program.py": (1, TREE),
    "report/plain.py": (1, "JSON, whose shape depends on the model that is converted"),
    "report/vega_lite.py": (2, "a specification of Vega-Lite, and the data in it: JSON"),
    "store/build_links.py": (1, COLUMNS),
    "store/query_history.py": (3, COLUMNS),
    "store/table_base.py": (1, JSON),
    "store/verdict_rows.py": (3, COLUMNS),
    "tasks/__init__.py": (1, AIRFLOW),
    "tasks/experiment_steps.py": (1, AIRFLOW),
    "tasks/judging.py": (1, "the summary in the XCom of `report`, for templates of notifiers"),
    "tasks/signoff_steps.py": (5, AIRFLOW),
}


def names(source: str) -> int:
    """How often a source says `Any`, its import apart."""
    return sum(
        isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(ast.parse(source))
    )


def found() -> Counter[str]:
    package = Path(nexmark.__file__).parent
    paths = [package / name for name in FILES]
    paths += [path for room in ROOMS for path in (package / room).rglob("*.py")]
    return Counter({str(x.relative_to(package)): names(x.read_text()) for x in paths})


@pytest.mark.parametrize("source", ["x: Any = 1", "def f(x: dict[str, Any]) -> None: ..."])
def test_an_untyped_place_is_counted(source: str) -> None:
    assert names(source) == 1


def test_no_border_of_a_night_is_untyped_without_a_reason() -> None:
    assert +found() == Counter({name: count for name, (count, _) in ALLOWED.items()})
