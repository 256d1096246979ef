"""Make a fingerprint of a streaming query's physical plan, the same for every run."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TREE = re.compile(r"^(?P<tree>[ :|+-]*)(?:\*\(\d+\) )?(?P<operator>\S.*)$")
_TREE_STEP = 3
_EXPRESSION_ID = re.compile(r"#\d+L?")
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
    """The plan at three grades of detail, and two counts of its operators."""

    text: str  # without the parts that differ from run to run (ids, paths)
    skeleton: str  # its operators only, indented, with the keys of the exchanges
    skeleton_hash: str  # 16 hexadecimal digits of the skeleton's SHA-256
    exchanges: int  # number of shuffles
    stateful_operators: int  # number of operators that keep state


def fingerprint(frame: DataFrame) -> Fingerprint:
    """Return the fingerprint of the plan of `frame`, before it is started and without its sink."""
    session = frame.sparkSession
    explained = session._jvm.PythonSQLUtils.explainString(  # type: ignore[union-attr]
        frame._jdf.queryExecution(), "simple"
    )
    return from_text(explained)


def from_text(explained: str) -> Fingerprint:
    """Return the fingerprint of a plan as Spark explains it in mode `simple`."""
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
    """Return the skeleton's line for an operator: its name; for an exchange also its keys."""
    name = _name(operator)
    match = _HASH_PARTITIONING.search(operator) if name == "Exchange" else None
    if match is None:
        return name
    keys = re.sub(r"-T\d+ms", "", _EXPRESSION_ID.sub("", match["keys"]))
    return f"{name} ({keys})"


def _name(operator: str) -> str:
    return re.split(r"[ (\[]", operator, maxsplit=1)[0]
