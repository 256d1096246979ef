"""Of Airflow and its providers we use what is public: a name with an underscore may go any day."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_OWN = re.compile(r"\bself\.(_[a-z]\w*)|\bdef (_[a-z]\w*)")
_IMPORTS = re.compile(r"(?m)^\s*(from|import) airflow\b")
#: Python has made these names different for each class; Airflow sets one when it serializes a DAG.
_MANGLED = re.compile(r"__|_abc_|_[A-Z]\w*__")
_BY_NAME = ("getattr", "setattr", "hasattr", "delattr")


def test_nothing_private_of_airflow_is_used() -> None:
    found = [problem for path in _files() for problem in _problems(path.read_text(), path.name)]
    assert found == []
    assert ROOT / "plugins" / "nexmark" / "dag" / "submit_operator.py" in _files()


def test_no_class_of_ours_redefines_what_is_private_to_its_base() -> None:
    """A provider's attribute is reached through `self`, too."""
    clashes = {
        f"{mine.__module__}.{mine.__name__}": sorted(_private_names(mine) & _private_names(*bases))
        for mine in _classes()
        if (bases := [base for base in mine.__mro__ if base.__module__.startswith("airflow.")])
    }
    assert {name: names for name, names in clashes.items() if names} == {}
    assert "nexmark.dag.submit_operator.NexmarkSubmitOperator" in clashes
    assert "nexmark.dag.submit_operator.WatchedSubmitHook" in clashes


@pytest.mark.parametrize(
    "line",
    [
        "hook._process_spark_submit_log = read",
        "super()._get_hook()",
        "code = self.hook._submit_sp.returncode",
        "setattr(hook, '_conn_id', 'x')",
        "from airflow.sdk._shared import x",
        "from airflow.providers.apache.spark.hooks.spark_submit import _mask",
    ],
)
def test_the_search_finds_it(line: str) -> None:
    assert _problems(line, "x.py")


def _files() -> list[Path]:
    paths = [path for folder in ("plugins", "dags") for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in paths if _IMPORTS.search(_text(path)))


def _text(path: Path) -> str:
    return re.sub(r"(?m)^\s*#.*$", "", path.read_text(encoding="utf-8"))


def _problems(text: str, name: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if any(_is_private(word) for word in _outside_names(node)):
            yield f"{name}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"


def _outside_names(node: ast.AST) -> list[str]:
    """The names by which a node reaches into something that is not this object itself."""
    if isinstance(node, ast.Attribute):
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        return [] if own else [node.attr]
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("airflow"):
        return [*str(node.module).split("."), *(each.name for each in node.names)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _BY_NAME:
        return [str(x.value) for x in node.args if isinstance(x, ast.Constant)]
    return []


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _classes() -> Iterator[type]:
    """Our classes that have one of Airflow's as a base."""
    for path in _files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        theirs = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("airflow")
            for name in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and theirs & {ast.unparse(x) for x in node.bases}:
                inside = path.relative_to(ROOT).with_suffix("").parts[1:]
                yield getattr(importlib.import_module(".".join(inside)), node.name)


def _private_names(*classes: type) -> set[str]:
    """What is private to classes: their methods and the attributes that they set."""
    found = {name for each in classes for name in vars(each) if _is_private(name)}
    for each in classes:
        found |= {a or b for a, b in _OWN.findall(inspect.getsource(each))}
    return {name for name in found if not _MANGLED.match(name)}
