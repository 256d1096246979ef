"""The rooms import in one direction: no circle of modules or rooms, no arrow back up."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from nexmark.config.paths import repository

#: Rooms that nothing of the library may import: they are what a person or Airflow starts.
TOP = frozenset({"cli", "dag", "bench", "testbed"})


def modules() -> dict[str, Path]:
    """Every module of the package, the jobs, the benchmarks and the test cluster by its name."""
    root, found = repository(), {}
    for base in (root / "plugins" / "nexmark", *(root / x for x in ("nexmark_jobs", "bench"))):
        for path in base.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            parts = parts[1:] if parts[0] == "plugins" else parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules among `known` that a file imports when it runs, also inside its functions."""
    tree = ast.parse(path.read_text())
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
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module


def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: {*imported(path, known)} - {name} for name, path in known.items()}


def room(module: str) -> str:
    first, _, rest = module.partition(".")
    return (rest.partition(".")[0] or first) if first == "nexmark" else first


def circle(edges: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]]
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert len(graph()) > 200
    assert circle(graph()) == []


def test_no_room_imports_itself_by_way_of_others() -> None:
    rooms: dict[str, set[str]] = {}
    for module, others in graph().items():
        rooms.setdefault(room(module), set()).update({room(each) for each in others})
    for name, others in rooms.items():
        others.discard(name)
    assert circle(rooms) == []


def test_the_library_imports_nothing_that_a_person_starts() -> None:
    wrong = [
        (module, each)
        for module, others in graph().items()
        for each in others
        if room(each) in TOP and room(module) not in TOP
    ]
    assert wrong == []


def test_the_jobs_import_nothing_of_ours() -> None:
    jobs = {name: others for name, others in graph().items() if room(name) == "nexmark_jobs"}
    assert {room(each) for others in jobs.values() for each in others} == {"nexmark_jobs"}
