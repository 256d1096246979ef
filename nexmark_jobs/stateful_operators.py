"""The stateful operators of a query, read from its plan before it is started.

A checkpoint fits a query if the operators are the same and the types of keys and values are equal;
Spark checks the types. It does not check the functions, nor the filters before them: with others it
goes on from values that mean something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

_EXPRESSION_ID = re.compile(r"#\d+L?|-T\d+ms")
_OFFSETS = re.compile(r", 0, 0(, \w+)?\)$")
"""Of the buffers of collect_list: Spark 4.2 has one more."""
_LENGTH = re.compile(r"\b[1-9]\d{3,}\b|\b\d+ (?:second|minute|hour|day)s?\b")
"""In the expression of a window: microseconds, or an interval."""
_WINDOW = "struct<start:timestamp,end:timestamp>"
_DEDUPLICATIONS = ("Deduplicate", "DeduplicateWithinWatermark")
_OTHERS = re.compile(r"\w*(TransformWithState|GroupsWithState|GroupsInPandasWithState)\w*")


@dataclass(frozen=True)
class StateLayout:
    """One operator that keeps state.

    Attributes:
        name: `aggregation`, `inner join`, or the name of Spark's plan node.
        keys: its keys, as written; of a window also its length and its slide.
        key_types: their types.
        value_types: types of the values it keeps; the buffers of an aggregation, the columns of
            both sides of a join.
        functions: what is computed; the aggregate functions, the condition of a join.
        inputs: the filters and watermarks between this operator and those below it.
    """

    name: str
    keys: tuple[str, ...]
    key_types: tuple[str, ...]
    value_types: tuple[str, ...]
    functions: tuple[str, ...]
    inputs: tuple[str, ...]


def stateful_operators(frame: DataFrame) -> tuple[StateLayout, ...]:
    """The stateful operators of a streaming query, the last one of the flow first."""
    plan = frame._jdf.queryExecution().analyzed()
    return tuple(_operator(node) for node in _nodes(plan) if _is_stateful(node))


def _operator(node: Any) -> StateLayout:
    kind = _kind(node)
    inputs = tuple(_inputs(node))
    if kind == "Aggregate":
        keys = list(_elements(node.groupingExpressions()))
        functions = {_text(f): f for f in _functions(node)}
        return StateLayout(
            name="aggregation",
            keys=tuple(_key(key, node) for key in keys),
            key_types=tuple(_type(key) for key in keys),
            value_types=tuple(t for f in functions.values() for t in _buffer_types(f)),
            functions=tuple(_OFFSETS.sub(")", name) for name in functions),
            inputs=inputs,
        )
    if kind == "Join":
        sides = {"left": node.left(), "right": node.right()}
        condition = node.condition()
        return StateLayout(
            name=f"{node.joinType().sql().lower()} join",
            keys=(),
            key_types=(),
            value_types=tuple(f"{name} ({_types(side)})" for name, side in sides.items()),
            functions=(_text(condition.get()),) if condition.isDefined() else (),
            inputs=inputs,
        )
    keys = list(_elements(node.keys())) if kind in _DEDUPLICATIONS else []
    return StateLayout(
        name=kind,
        keys=tuple(_text(key) for key in keys),
        key_types=tuple(_type(key) for key in keys),
        value_types=(),
        functions=(),
        inputs=inputs,
    )


def _is_stateful(node: Any) -> bool:
    kind = _kind(node)
    if kind == "Join":
        return bool(node.left().isStreaming() and node.right().isStreaming())
    known = kind in ("Aggregate", *_DEDUPLICATIONS) or _OTHERS.fullmatch(kind)
    return bool(known and node.isStreaming())


def _inputs(node: Any) -> Iterator[str]:
    """Filters and watermarks below an operator, down to the next ones that keep state."""
    for child in _elements(node.children()):
        if _is_stateful(child):
            continue
        if _kind(child) == "Filter":
            yield f"filter {_text(child.condition())}"
        elif _kind(child) == "EventTimeWatermark":
            yield f"watermark {_text(child.eventTime())} {child.delay().toString()}"
        yield from _inputs(child)


def _key(key: Any, node: Any) -> str:
    """A key as written; a window with its length and its slide."""
    text = _text(key)
    if _type(key) != _WINDOW:
        return text
    lengths = {
        length
        for below in _nodes(node)
        for expression in _elements(below.expressions())
        if _kind(expression) == "Alias" and expression.name() == key.name()
        for length in _LENGTH.findall(_text(expression.child()))
    }
    return f"{text} {sorted(lengths)}"


def _functions(node: Any) -> Iterator[Any]:
    """The aggregate expressions of an aggregation."""
    for expression in _elements(node.aggregateExpressions()):
        yield from (x for x in _nodes(expression) if _kind(x) == "AggregateExpression")


def _buffer_types(expression: Any) -> list[str]:
    function = expression.aggregateFunction()
    while _is_replaceable(function):  # e.g. count_if, which is a count
        function = function.replacement()
    return [_type(x) for x in _elements(function.aggBufferAttributes())]


def _is_replaceable(function: Any) -> bool:
    names = {"RuntimeReplaceableAggregate", "RuntimeReplaceable"}
    return any(
        interface.getSimpleName() in names for interface in function.getClass().getInterfaces()
    )


def _types(node: Any) -> str:
    return ", ".join(_type(column) for column in _elements(node.output()))


def _nodes(tree: Any) -> Iterator[Any]:
    """A node of a plan or of an expression, and all below it."""
    yield tree
    for child in _elements(tree.children()):
        yield from _nodes(child)


def _elements(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(place) for place in range(sequence.size()))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _type(expression: Any) -> str:
    return str(expression.dataType().catalogString())


def _text(expression: Any) -> str:
    return _EXPRESSION_ID.sub("", str(expression.toString()))
