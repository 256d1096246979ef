"""Read the stateful operators of a query from its plan, before it is started.

A checkpoint fits a query if the operators are the same and the types of keys and values are equal;
Spark checks the types. It does not check the functions, nor the filters before them: if they
differ, Spark resumes from values that mean something else.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

_EXPRESSION_ID = re.compile(r"#\d+L?|-T\d+ms")
_OFFSETS = re.compile(r", 0, 0(, \w+)?\)$")
"""The offsets of the buffers of collect_list, which has one more since Spark 4.2."""
_LENGTH = re.compile(r"\b[1-9]\d{3,}\b|\b\d+ (?:second|minute|hour|day)s?\b")
"""The length of a window in its expression: microseconds, or an interval."""
_WINDOW = "struct<start:timestamp,end:timestamp>"
_DEDUPLICATIONS = ("Deduplicate", "DeduplicateWithinWatermark")
_OTHERS = re.compile(r"\w*(TransformWithState|GroupsWithState|GroupsInPandasWithState)\w*")


@dataclass(frozen=True)
class StateLayout:
    """One operator that keeps state: `aggregation`, `inner join`, or the name of Spark's node."""

    name: str
    keys: tuple[str, ...]  # as written; of a window also its length and its slide
    key_types: tuple[str, ...]
    value_types: tuple[str, ...]  # buffers of an aggregation, columns of both sides of a join
    functions: tuple[str, ...]  # the aggregate functions, the condition of a join
    inputs: tuple[str, ...]  # filters and watermarks between this operator and those below it


def stateful_operators(frame: DataFrame) -> tuple[StateLayout, ...]:
    """Return the stateful operators of a streaming query, the last one of the flow first."""
    plan = frame._jdf.queryExecution().analyzed()
    return tuple(_operator(node) for node in _nodes(plan) if _is_stateful(node))


def _operator(node: Any) -> StateLayout:
    kind = _kind(node)
    inputs = tuple(_inputs(node))
    if kind == "Aggregate":
        keys = list(_elements(node.groupingExpressions()))
        expressions = (
            expression
            for each in _elements(node.aggregateExpressions())
            for expression in _nodes(each)
        )
        functions = {
            _text(expression): expression
            for expression in expressions
            if _kind(expression) == "AggregateExpression"
        }
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
            value_types=tuple(
                f"{name} ({', '.join(map(_type, _elements(side.output())))})"
                for name, side in sides.items()
            ),
            functions=(_text(condition.get()),) if condition.isDefined() else (),
            inputs=inputs,
        )
    keys = list(_elements(node.keys())) if kind in _DEDUPLICATIONS else []
    return StateLayout(kind, tuple(map(_text, keys)), tuple(map(_type, keys)), (), (), inputs)


def _is_stateful(node: Any) -> bool:
    kind = _kind(node)
    if kind == "Join":
        return bool(node.left().isStreaming() and node.right().isStreaming())
    known = kind in ("Aggregate", *_DEDUPLICATIONS) or _OTHERS.fullmatch(kind)
    return bool(known and node.isStreaming())


def _inputs(node: Any) -> Iterator[str]:
    """Yield filters and watermarks below an operator, down to the next ones that keep state."""
    for child in _elements(node.children()):
        if _is_stateful(child):
            continue
        if _kind(child) == "Filter":
            yield f"filter {_text(child.condition())}"
        elif _kind(child) == "EventTimeWatermark":
            yield f"watermark {_text(child.eventTime())} {child.delay().toString()}"
        yield from _inputs(child)


def _key(key: Any, node: Any) -> str:
    """Return a key as written; a window with its length and its slide."""
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


def _buffer_types(expression: Any) -> list[str]:
    function = expression.aggregateFunction()
    replaceable = {"RuntimeReplaceableAggregate", "RuntimeReplaceable"}
    while any(each.getSimpleName() in replaceable for each in function.getClass().getInterfaces()):
        function = function.replacement()  # e.g. of count_if, which is a count
    return [_type(attribute) for attribute in _elements(function.aggBufferAttributes())]


def _nodes(tree: Any) -> Iterator[Any]:
    """Yield a node of a plan or of an expression, and all below it."""
    yield tree
    for child in _elements(tree.children()):
        yield from _nodes(child)


def _elements(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala sequence."""
    return (sequence.apply(place) for place in range(sequence.size()))


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _type(expression: Any) -> str:
    return str(expression.dataType().catalogString())


def _text(expression: Any) -> str:
    return _EXPRESSION_ID.sub("", str(expression.toString()))
