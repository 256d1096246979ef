"""What the plan of a streaming query tells before it is started.

The fingerprint of the physical plan is the same for every run. The stateful operators decide
whether a checkpoint fits: it does if the operators are the same and the types of keys and values
are equal; Spark checks the types. It does not check the functions, nor the filters before them:
with others it goes on from values that mean something else.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TREE = re.compile(r"^(?P<tree>[ :|+-]*)(?:\*\(\d+\) )?(?P<operator>\S.*)$")
_TREE_STEP = 3
_EXPRESSION_ID = re.compile(r"#\d+L?")
_ID_OR_DELAY = re.compile(r"#\d+L?|-T\d+ms")
_VOLATILE = (
    (re.compile(r"checkpoint = [^,\]]*"), "checkpoint"),
    (re.compile(r"runId = [0-9a-f-]+"), "runId"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "uuid"),
    (re.compile(r",? ?\[plan_id=\d+\]"), ""),
    (re.compile(r"\[id=#?\d+\]"), ""),
    (re.compile(r"file:[^\s,\]]*"), "file"),
    (re.compile(r"_common_expr_\d+"), "_common_expr"),
    (re.compile(r"\blambda (\w+?)_\d+\b"), r"lambda \1"),
    (re.compile(r"\[\d{16},\d{16}\]"), "[window of the current time]"),
    (_EXPRESSION_ID, ""),
)
_HASH_PARTITIONING = re.compile(r"hashpartitioning\((?P<keys>.*), \d+\)")
_STATEFUL = re.compile(
    r"StateStoreSave|SessionWindowStateStoreSave|StreamingSymmetricHashJoin"
    r"|StreamingDeduplicate\w*|StreamingGlobalLimit|\w*TransformWithState\w*"
)


@dataclass(frozen=True)
class Fingerprint:
    """The plan in three grades of coarseness."""

    text: str  # without the parts that differ from run to run (ids, paths)
    skeleton: str  # its operators only, indented, with the keys of the exchanges
    skeleton_hash: str  # 16 hexadecimal digits of the skeleton's SHA-256
    exchanges: int  # number of shuffles
    stateful_operators: int  # number of operators that keep state


def fingerprint(frame: "DataFrame") -> Fingerprint:
    """The fingerprint of the plan of `frame`, before it is started and without its sink."""
    session = frame.sparkSession
    explain = session._jvm.PythonSQLUtils.explainString  # type: ignore[union-attr]
    return from_text(explain(frame._jdf.queryExecution(), "simple"))


def from_text(explained: str) -> Fingerprint:
    """The fingerprint of a plan as Spark explains it in mode `simple`."""
    text, skeleton, names = [], [], []
    for line in explained.splitlines():
        matched = _TREE.match(line)
        if line.startswith("==") or matched is None:
            continue
        depth = len(matched["tree"]) // _TREE_STEP
        operator = matched["operator"]
        names.append(_name(operator))
        skeleton.append("  " * depth + skeleton_line(operator))
        for pattern, replacement in _VOLATILE:
            operator = pattern.sub(replacement, operator)
        text.append("  " * depth + operator.rstrip())
    joined = "\n".join(skeleton)
    return Fingerprint(
        text="\n".join(text),
        skeleton=joined,
        skeleton_hash=hashlib.sha256(joined.encode()).hexdigest()[:16],
        exchanges=names.count("Exchange"),
        stateful_operators=sum(1 for name in names if _STATEFUL.fullmatch(name)),
    )


def skeleton_line(operator: str) -> str:
    """The skeleton's line for an operator: its name; for an exchange also its keys."""
    name = _name(operator)
    found = _HASH_PARTITIONING.search(operator) if name == "Exchange" else None
    if found is None:
        return name
    return f"{name} ({_ID_OR_DELAY.sub('', found['keys'])})"


def _name(operator: str) -> str:
    return re.split(r"[ (\[]", operator, maxsplit=1)[0]


_OFFSETS = re.compile(r", 0, 0(, \w+)?\)$")
"""Of the buffers of collect_list: Spark 4.2 has one more."""
_LENGTH = re.compile(r"\b[1-9]\d{3,}\b|\b\d+ (?:second|minute|hour|day)s?\b")
"""In the expression of a window: microseconds, or an interval."""
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


def stateful_operators(frame: "DataFrame") -> tuple[StateLayout, ...]:
    """The stateful operators of a streaming query, the last one of the flow first."""
    plan = frame._jdf.queryExecution().analyzed()
    return tuple(_operator(node) for node in _nodes(plan) if _is_stateful(node))


def _operator(node: Any) -> StateLayout:
    kind = _kind(node)
    inputs = tuple(_inputs(node))
    if kind == "Aggregate":
        keys = list(_elements(node.groupingExpressions()))
        aggregates = (x for each in _elements(node.aggregateExpressions()) for x in _nodes(each))
        found = {_text(x): x for x in aggregates if _kind(x) == "AggregateExpression"}
        values = tuple(t for function in found.values() for t in _buffer_types(function))
        functions = tuple(_OFFSETS.sub(")", name) for name in found)
        names = tuple(_key(key, node) for key in keys)
        return StateLayout("aggregation", names, tuple(map(_type, keys)), values, functions, inputs)
    if kind == "Join":
        outputs = {"left": node.left().output(), "right": node.right().output()}
        sides = {side: map(_type, _elements(output)) for side, output in outputs.items()}
        condition = node.condition()
        name = f"{node.joinType().sql().lower()} join"
        values = tuple(f"{side} ({', '.join(types)})" for side, types in sides.items())
        functions = (_text(condition.get()),) if condition.isDefined() else ()
        return StateLayout(name, (), (), values, functions, inputs)
    keys = list(_elements(node.keys())) if kind in _DEDUPLICATIONS else []
    return StateLayout(kind, tuple(map(_text, keys)), tuple(map(_type, keys)), (), (), inputs)


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


def _buffer_types(expression: Any) -> list[str]:
    function = expression.aggregateFunction()
    replaceable = {"RuntimeReplaceableAggregate", "RuntimeReplaceable"}
    while any(x.getSimpleName() in replaceable for x in function.getClass().getInterfaces()):
        function = function.replacement()  # e.g. of count_if, which is a count
    return [_type(x) for x in _elements(function.aggBufferAttributes())]


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
    return _ID_OR_DELAY.sub("", str(expression.toString()))
