"""What happens next hangs on the type of an error, never on its words: those are for people."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from nexmark.config.paths import repository

ROOMS = ("plugins", "nexmark_jobs", "dags")
_TEXT_METHODS = frozenset(
    ["startswith", "endswith", "partition", "rpartition", "find", "index", "count"]
)
_PATTERNS = frozenset({"match", "search", "fullmatch", "findall", "sub"})


def is_text_of(node: ast.AST, names: set[str]) -> bool:
    """Whether `node` is the text of a caught error: str(error), error.args, f"{error}"."""
    match node:
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
            return name in names
        case ast.Attribute(value=ast.Name(id=name), attr="args" | "message"):
            return name in names
        case ast.FormattedValue(value=ast.Name(id=name)):
            return name in names
    return any(is_text_of(child, names) for child in ast.iter_child_nodes(node))


def decisions(tree: ast.AST) -> Iterator[int]:
    """The lines at which the text of a caught error is compared, searched or taken apart."""
    for handler in ast.walk(tree):
        if not (isinstance(handler, ast.ExceptHandler) and handler.name):
            continue
        names = {handler.name}
        for node in ast.walk(handler):
            match node:
                case ast.Compare() if is_text_of(node, names):
                    yield node.lineno
                case ast.Call(func=ast.Attribute(attr=method, value=receiver)) if (
                    method in _TEXT_METHODS and is_text_of(receiver, names)
                ) or (method in _PATTERNS and any(is_text_of(each, names) for each in node.args)):
                    yield node.lineno


def python_files() -> list[str]:
    root = repository()
    return [str(f.relative_to(root)) for room in ROOMS for f in sorted((root / room).rglob("*.py"))]


def test_no_control_flow_by_the_text_of_a_message() -> None:
    found = [
        f"{file}:{line}"
        for file in python_files()
        for line in decisions(ast.parse((repository() / file).read_text()))
    ]
    assert not found, "raise and catch an error of a type of its own instead"


@pytest.mark.parametrize(
    "decision",
    [
        '"is not recorded" not in str(error)',
        'str(error).startswith("results database")',
        'str(error).partition(": ")',
        'str(error) == "x"',
        'error.args[0] == "x"',
        're.search("x", str(error))',
        '"x" in f"{error}"',
    ],
)
def test_such_control_flow_is_found(decision: str) -> None:
    code = f"try:\n    f()\nexcept ValueError as error:\n    if {decision}:\n        raise\n"
    assert list(decisions(ast.parse(code))) == [4]


def test_the_words_themselves_may_be_shown() -> None:
    code = 'try:\n    f()\nexcept ValueError as error:\n    raise Bad(f"x: {error}") from None\n'
    assert not list(decisions(ast.parse(code)))
