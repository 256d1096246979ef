"""Names: a class can be searched for by its name, a variable says what it holds."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from nexmark.config import paths

ROOMS = ("plugins", "nexmark_jobs")


def _modules() -> Iterator[Path]:
    for room in ROOMS:
        yield from sorted((paths.repository() / room).rglob("*.py"))


def _twice(places: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def _name(path: Path) -> str:
    return str(path.relative_to(paths.repository()))


def test_no_two_public_classes_have_one_name() -> None:
    found = defaultdict(list)
    for path in _modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(_name(path))
    assert _twice(found) == {}


#: Names that say nothing of what a variable holds.
VAGUE = frozenset({"found", "told", "own", "x"})
#: The rooms in which no variable has such a name.
CLEAR = (
    *("dags", "nexmark_jobs", "testbed"),
    *("acceptance", "airflow_site", "attribution", "bisect", "cli", "cluster", "compatibility"),
    *("commits", "config", "dag", "engines", "evidence", "example", "expectations"),
    *("experiments", "flames"),
    *("kafka", "labs", "latency", "measure", "night", "recording", "recovery", "report"),
    *("retention", "rollout", "sampling", "static_site", "store", "tasks", "verdict", "web"),
    *("errors.py", "home.py", "interrupts.py", "judging.py", "model.py", "people.py", "reaper.py"),
    *("reason.py", "secrets.py", "terminal.py"),
)


def _vague(source: str) -> list[str]:
    """Return the vague names of variables and parameters in a source, each with its line."""
    names = (
        (node.lineno, node.id if isinstance(node, ast.Name) else node.arg)
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        or isinstance(node, ast.arg)
    )
    return [f"{name} in line {line}" for line, name in names if name in VAGUE]


def _room(name: str) -> Iterator[Path]:
    root = paths.repository()
    path = root / name if (root / name).exists() else root / "plugins" / "nexmark" / name
    assert path.exists(), name
    yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


@pytest.mark.parametrize("room", CLEAR)
def test_a_variable_is_named_by_what_it_holds(room: str) -> None:
    vague = {_name(path): names for path in _room(room) if (names := _vague(path.read_text()))}
    assert vague == {}


@pytest.mark.parametrize(
    "source",
    ["found = 1", "def say(told): pass", "for own in (): pass", "[x for x in ()]", "lambda x: 1"],
)
def test_a_vague_name_is_found(source: str) -> None:
    assert len(_vague(f"{source}\n")) == 1
