"""One name, one thing: a class can be found, and searched for, by its name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

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
