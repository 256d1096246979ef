"""One small change of the package's source at a time: what a person gets wrong, or what rots.

mutmut says what to change a node into. Its own runner is not used: it leaves constants of modules,
properties and decorated functions as they are, which are half of the gate's settings.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

#: Calls whose arguments are types or names: without one they fail at once, or mean the same.
PLAIN_CALLS = frozenset({"isinstance", "len", "cast", "NewType", "TypeVar"})

#: zip(strict=True) only stops a mistake of ours: without it nothing changes while there is none.
GUARD = "strict"

Operators = Iterable[tuple[Any, Callable[[Any], Iterable[cst.CSTNode]]]]
"""A kind of node, and what it may be instead."""


@dataclass(frozen=True)
class Change:
    """One changed place in the file `path`.

    `function` is the function or method that holds it, "" outside of all; `swapped` says whether
    the code of that function can be exchanged while it runs (else the file is imported again).
    `was` and `now` are the lines that differ; `after` is the whole source.
    """

    path: str
    function: str
    swapped: bool
    line: int
    was: str
    now: str
    after: str
    key: str

    @property
    def name(self) -> tuple[str, str, str]:
        """What ``left.yaml`` calls it by."""
        return self.path, self.was, self.now


def _dropped(node: cst.Call) -> Iterator[cst.Call]:
    """A call without one of its arguments (mutmut gives None for it, too: hardly ever subtle)."""
    for changed in mutators.operator_arg_removal(node):
        if len(changed.args) < len(node.args) and _guarded(changed) == _guarded(node):
            args = changed.args
            last = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            yield changed.with_changes(args=[*args[:-1], last])


def _guarded(node: cst.Call) -> bool:
    return any(arg.keyword is not None and arg.keyword.value == GUARD for arg in node.args)


def _other_string(node: cst.BaseString) -> Iterator[cst.BaseString]:
    """Another word. What has a space in it is a message for a person: its text may change."""
    if isinstance(node, cst.SimpleString) and " " not in node.value:
        yield from list(mutators.operator_string(node))[:1]


def _swapped_branches(test: cst.BaseExpression) -> Iterator[cst.CSTNode]:
    """What is done where it should not be. A single comparison with == or `in` is turned anyhow."""
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        kinds = cst.Equal | cst.NotEqual | cst.Is | cst.IsNot | cst.In | cst.NotIn
        if isinstance(test.comparisons[0].operator, kinds):
            return
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return
    grouped = test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield cst.UnaryOperation(cst.Not(), grouped)


OPERATORS: Operators = (
    (cst.BaseNumber, mutators.operator_number),
    (cst.BaseString, _other_string),
    (cst.Name, mutators.operator_name),
    (cst.AugAssign, mutators.operator_augmented_assignment),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.Call, _dropped),
    (cst.Call, mutators.operator_symmetric_string_methods_swap),
    (cst.Call, mutators.operator_unsymmetrical_string_methods_swap),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.Match, mutators.operator_match),
    (cst.IfExp, mutators.operator_if_exp),
)


class _Visitor(cst.CSTVisitor):
    """Collects (range of the node, its new text, function, swapped)."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self.module = module
        self.found: list[tuple[Any, str, str, bool]] = []
        self._classes: list[str] = []
        self._function = ""
        self._swapped = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef):
            self._visit_function(node)
            return False
        if isinstance(node, cst.ClassDef):
            self._classes.append(node.name.value)
            node.body.visit(self)
            self._classes.pop()
            return False
        if _left_out(node):
            return False
        self._change(node, OPERATORS)
        if isinstance(node, cst.If | cst.While | cst.CompIf):
            self._change(node.test, ((cst.CSTNode, _swapped_branches),))
        return True

    def _visit_function(self, node: cst.FunctionDef) -> None:
        outer = self._function, self._swapped
        self._function = self._function or ".".join([*self._classes, node.name.value])
        node.params.visit(self)
        self._swapped = True
        node.body.visit(self)
        self._function, self._swapped = outer

    def _change(self, node: cst.CSTNode, operators: Operators) -> None:
        where = self.get_metadata(PositionProvider, node, None)
        for kind, operator in operators if where is not None else ():
            if isinstance(node, kind):
                for changed in operator(node):
                    text = self.module.code_for_node(changed)
                    self.found.append((where, text, self._function, self._swapped))


def _left_out(node: cst.CSTNode) -> bool:
    """Whether the node is no behaviour: an import, a type, a decorator, a docstring, `__all__`."""
    if isinstance(node, cst.Import | cst.ImportFrom | cst.Annotation | cst.Decorator):
        return True
    if isinstance(node, cst.Expr):
        return isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)
    if isinstance(node, cst.If):
        return isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING"
    if isinstance(node, cst.Assign):
        target = node.targets[0].target
        return isinstance(target, cst.Name) and target.value == "__all__"
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Name) and node.func.value in PLAIN_CALLS
    if isinstance(node, cst.Arg) and node.keyword is not None:
        return node.keyword.value == GUARD
    return False


def changes(path: str, source: str) -> list[Change]:
    """Every change of the file, each once, in the order of its lines."""
    wrapper = MetadataWrapper(cst.parse_module(source))
    visitor = _Visitor(wrapper.module)
    wrapper.visit(visitor)
    lines = source.splitlines(keepends=True)
    seen = {source}
    functions = function_hashes(source)
    result = []
    count: dict[str, int] = {}
    for where, text, function, swapped in sorted(
        visitor.found, key=lambda x: (x[0].start.line, x[0].start.column)
    ):
        after = _spliced(lines, where, text)
        if after in seen or not _is_python(after):
            continue
        seen.add(after)
        was, now = _difference(source, after)
        of = functions.get(function, "") if swapped else ""
        name = "\0".join([path, function, of, was, now])
        count[name] = count.get(name, 0) + 1
        key = hashlib.sha256(f"{name}\0{count[name]}".encode()).hexdigest()[:16]
        result.append(Change(path, function, swapped, where.start.line, was, now, after, key))
    return result


def _is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _spliced(lines: list[str], where: Any, text: str) -> str:
    start, end = where.start, where.end
    before = "".join(lines[: start.line - 1]) + lines[start.line - 1][: start.column]
    return before + text + lines[end.line - 1][end.column :] + "".join(lines[end.line :])


def _difference(source: str, after: str) -> tuple[str, str]:
    """The lines that differ, before and after, without indentation."""
    old, new = source.splitlines(), after.splitlines()
    start = next(i for i, (a, b) in enumerate(zip_longest(old, new)) if a != b)
    same = 0
    while same < min(len(old), len(new)) - start and old[-1 - same] == new[-1 - same]:
        same += 1
    return _joined(old[start : len(old) - same]), _joined(new[start : len(new) - same])


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


def function_ranges(source: str) -> dict[str, tuple[int, int]]:
    """The outermost functions and the methods of a file: (first, last) line of what they do."""
    found: dict[str, tuple[int, int]] = {}

    def visit(body: list[ast.stmt], outer: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{outer}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                found[f"{outer}{node.name}"] = node.body[0].lineno, node.end_lineno or 0

    visit(ast.parse(source).body, "")
    return found


def function_hashes(source: str) -> dict[str, str]:
    """A hash of the text of each function."""
    lines = source.splitlines()
    return {
        name: hashlib.sha256("\n".join(lines[first - 1 : last]).encode()).hexdigest()[:16]
        for name, (first, last) in function_ranges(source).items()
    }


def read_changes(path: Path, name: str) -> list[Change]:
    """The changes of a file, called by its `name`."""
    return changes(name, path.read_text(encoding="utf-8"))
