"""What every room may import, and that there is no circle: `ROOMS` is the table of CONTRIBUTING."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from nexmark.config.paths import repository


@dataclass(frozen=True)
class Room:
    """What a room may import: `rooms`, and `packages` that are not the standard library's."""

    rooms: str = ""
    packages: str = ""


ALL = "all rooms"
#: Every room but the jobs may import these.
COMMON = frozenset({"errors", "model"})
ROOMS = {
    "dags": Room("config dag", "airflow"),
    "nexmark_plugin": Room("web", "airflow"),
    "model": Room(),
    "errors": Room(),
    "interrupts": Room(),
    "people": Room(),
    "home": Room("config nexmark_jobs"),
    "secrets": Room("config home nexmark_jobs"),
    "reason": Room("nexmark_jobs secrets"),
    "terminal": Room("home interrupts secrets"),
    "reaper": Room("cluster config nexmark_jobs"),
    "airflow_site": Room("cluster config home interrupts nexmark_jobs reaper store terminal"),
    "cli": Room(ALL, "rich typer"),
    "config": Room("nexmark_jobs", "croniter pydantic yaml"),
    "engines": Room("config home interrupts nexmark_jobs", "pydantic"),
    "commits": Room("config"),
    "kafka": Room("config engines nexmark_jobs", "confluent_kafka cryptography"),
    "cluster": Room("config engines kafka nexmark_jobs terminal", "airflow paramiko"),
    "night": Room(
        "cluster config engines expectations flames home inputs kafka latency measure nexmark_jobs"
        " reason recovery secrets terminal verdict",
        "pydantic",
    ),
    "sampling": Room("cluster measure nexmark_jobs night"),
    "recording": Room("config flames measure night sampling store verdict", "pydantic"),
    "acceptance": Room("config engines night store verdict"),
    "judging": Room("acceptance evidence night store verdict"),
    "dag": Room(
        "cluster config nexmark_jobs night reason recording sampling secrets tasks", "airflow"
    ),
    "tasks": Room(
        "acceptance cluster compatibility config engines evidence experiments home judging night"
        " people reaper recording report retention rollout sampling secrets store terminal",
        "airflow",
    ),
    "inputs": Room("config expectations nexmark_jobs", "duckdb"),
    "expectations": Room("config nexmark_jobs", "duckdb great_expectations jinja2 sqlalchemy"),
    "measure": Room("nexmark_jobs", "pydantic zstandard"),
    "attribution": Room("measure secrets verdict", "numpy"),
    "compatibility": Room(
        "config engines expectations home inputs interrupts measure nexmark_jobs night reason"
        " recovery secrets terminal"
    ),
    "experiments": Room(
        "attribution config engines evidence expectations home interrupts measure nexmark_jobs"
        " recovery report store verdict"
    ),
    "jobs": Room("config engines expectations experiments home inputs secrets"),
    "bisect": Room(
        "commits config engines interrupts nexmark_jobs night reaper secrets store terminal verdict"
    ),
    "rollout": Room("config engines evidence home night report terminal", "pydantic"),
    "retention": Room("cluster config engines evidence nexmark_jobs night store terminal", "rich"),
    "recovery": Room("config engines expectations home kafka nexmark_jobs", "duckdb scipy"),
    "latency": Room("engines kafka", "confluent_kafka hdrh"),
    "labs": Room("compatibility engines interrupts kafka nexmark_jobs recovery terminal", "scipy"),
    "flames": Room("cluster config engines home measure nexmark_jobs", "pydantic"),
    "verdict": Room("config", "numpy scipy"),
    "store": Room(
        "attribution config home measure secrets verdict", "alembic psycopg pyarrow sqlalchemy"
    ),
    "evidence": Room(
        "attribution commits config expectations flames measure nexmark_jobs night secrets store"
        " verdict",
        "hdrh pydantic",
    ),
    "report": Room(
        "attribution config evidence home secrets store verdict", "jinja2 markupsafe vl_convert"
    ),
    "web": Room(
        "config evidence flames nexmark_jobs night report secrets store",
        "airflow fastapi itsdangerous markupsafe sqlalchemy starlette",
    ),
    "example": Room("acceptance config evidence home measure night report store verdict", "numpy"),
    "static_site": Room("config evidence flames home night report store web"),
    "nexmark_jobs": Room("", "py4j pyspark"),
    "bench": Room(ALL, "fastapi numpy playwright pydantic pyspark uvicorn yaml"),
    "testbed": Room("cluster config engines kafka nexmark_jobs"),
}

#: Rooms that neither read nor write anything outside their process, with the files that may.
WITHOUT_IO: dict[str, frozenset[str]] = {
    "attribution": frozenset(),
    "verdict": frozenset({"nexmark.verdict.__main__"}),  # the command, which reads nights
    # Logs are larger than the memory, so their format includes how their files are read.
    "measure": frozenset(
        {"nexmark.measure.event_log", "nexmark.measure.host_samples"}
        | {"nexmark.measure.log_follower"}
    ),
}
_IO_MODULES = frozenset(
    {"http", "io", "os", "requests", "shutil", "socket", "sqlite3", "subprocess", "tempfile"}
)
_IO_CALLS = frozenset(
    {"exists", "glob", "iterdir", "mkdir", "open", "print", "read_bytes", "read_text", "rename"}
    | {"stat", "unlink", "write_bytes", "write_text"}
)


def modules() -> dict[str, Path]:
    """Every module of the package, the jobs, the DAGs, the benchmarks and the test cluster."""
    root, found = repository(), {"nexmark_plugin": repository() / "plugins" / "nexmark_plugin.py"}
    others = ("nexmark_jobs", "dags", "bench", "testbed")
    for base in (root / "plugins" / "nexmark", *(root / x for x in others)):
        for path in base.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            parts = parts[1:] if parts[0] == "plugins" else parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(source: str, known: Mapping[str, Path]) -> Iterator[str]:
    """The names that a source imports when it runs, also in its functions.

    A module of ours has its whole name, any other only the name of its package.
    """
    tree = ast.parse(source)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            for name in node.names:
                yield name.name if name.name in known else name.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                package = node.module.partition(".")[0]
                yield next((x for x in (inner, node.module) if x in known), package)


@cache
def graph() -> dict[str, set[str]]:
    """The imports of each module among the modules of ours."""
    known = modules()
    return {
        name: ({*imported(path.read_text(), known)} & known.keys()) - {name}
        for name, path in known.items()
    }


def room(module: str) -> str:
    first, _, rest = module.partition(".")
    return (rest.partition(".")[0] or first) if first == "nexmark" else first


def forbidden(module: str, source: str, known: Mapping[str, Path]) -> list[str]:
    """Return what a module imports that its room must not."""
    here = room(module)
    allowed = ROOMS.get(here, Room())
    common = () if here == "nexmark_jobs" else COMMON
    rooms = {here, *common, *allowed.rooms.split()}
    wrong = []
    for name in imported(source, known):
        other = room(name)
        if name in known:
            is_right = allowed.rooms == ALL or other in rooms
        else:
            is_right = name in sys.stdlib_module_names or name in allowed.packages.split()
        if not is_right:
            wrong.append(f"{module} must not import {name}: see ROOMS in {__name__}")
    return wrong


def outside(source: str) -> Iterator[str]:
    """The imports and calls of a source by which it would read or write outside its process."""
    yield from (name for name in imported(source, {}) if name in _IO_MODULES)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in _IO_CALLS:
                yield f"{name}() in line {node.lineno}"


def circle(edges: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def test_every_room_imports_only_what_the_table_lets_it() -> None:
    known = modules()
    assert len(known) > 200
    wrong = [
        line
        for module, path in known.items()
        if module != "nexmark"
        for line in forbidden(module, path.read_text(), known)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("nexmark.verdict.noise", "from nexmark.store import Store"),
        ("nexmark.verdict.noise", "def f():\n    import nexmark.store.reading"),
        ("nexmark.night.night_plan", "from airflow.sdk import Context"),
        ("nexmark.night.night_plan", "import airflow"),
        ("nexmark_jobs.sinks", "from nexmark.model import Arm"),
        ("nexmark_jobs.sinks", "import numpy"),
        ("nexmark.evidence.rows", "import sqlalchemy"),
        ("nexmark_plugin", "from nexmark.store import Store"),
        ("nexmark.store.store", "from nexmark.cli.app import app"),
        ("nexmark.a_new_room", "from nexmark.config import load"),
    ],
)
def test_an_import_that_is_not_in_the_table_is_found(module: str, source: str) -> None:
    assert len(forbidden(module, source, modules())) == 1


def test_an_import_for_types_only_is_none() -> None:
    source = "if TYPE_CHECKING:\n    from airflow.sdk import Context"
    assert forbidden("nexmark.night.night_plan", source, modules()) == []


@pytest.mark.parametrize("name", WITHOUT_IO)
def test_a_room_without_io_neither_reads_nor_writes(name: str) -> None:
    here = {each: path for each, path in modules().items() if room(each) == name}
    assert here.keys() >= WITHOUT_IO[name], "an exception for a file that is not there any more"
    wrong = [
        f"{module}: {what}"
        for module, path in here.items()
        if module not in WITHOUT_IO[name]
        for what in outside(path.read_text())
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "source",
    ["import os", "from subprocess import run", "open('x')", "path.read_text()", "print(1)"],
)
def test_what_reads_or_writes_is_found(source: str) -> None:
    assert [*outside(source)]


def test_the_table_of_contributing_is_this_one() -> None:
    """Each room has its line there, with the rooms and packages that it may import."""
    told = {}
    for line in (repository() / "CONTRIBUTING.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 4:
            for place in cells[0].split(", "):
                name = place.strip("`/").removesuffix(".py").rpartition("/")[2]
                told[name] = (cells[2].replace(",", ""), cells[3].replace(",", ""))
    expected = {name: (each.rooms, each.packages) for name, each in ROOMS.items()}
    assert {name: told.get(name) for name in expected} == expected
    assert told.keys() == expected.keys()


def test_the_table_has_every_room() -> None:
    assert ROOMS.keys() == {room(module) for module in modules() if module != "nexmark"}


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circle(graph()) == []


def test_no_room_imports_itself_by_way_of_others() -> None:
    rooms: dict[str, set[str]] = {}
    for module, others in graph().items():
        rooms.setdefault(room(module), set()).update({room(each) for each in others})
    for name, others in rooms.items():
        others.discard(name)
    assert circle(rooms) == []
