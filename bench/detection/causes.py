"""Real reasons to be slower, each of the candidate alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nexmark.errors import NexmarkError, suggest

_STATE = "spark.sql.streaming.stateStore"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: Python workers of the candidate find its `sitecustomize` before they start.
_SLEEPING = Path(__file__).with_name("sleeping_udf")


@dataclass(frozen=True)
class Cause:
    """A reason to be slower, and the query that shows it.

    Attributes:
        conf: Spark confs that only the candidate has.
        build: the candidate's build, where that is the cause.
    """

    name: str
    what: str
    query: str
    conf: Mapping[str, str] = field(default_factory=dict)
    build: str = ""

    @property
    def options(self) -> list[str]:
        """What makes a night have it, as options of `nexmark build`."""
        return [word for k, v in self.conf.items() for word in ("--candidate-conf", f"{k}={v}")]


CAUSES = (
    Cause("codegen", "no code generation", "q0", {"spark.sql.codegen.wholeStage": "false"}),
    Cause(
        "wide-codegen",
        "no code generation for operators with more than 6 columns",
        "q0",
        {"spark.sql.codegen.maxFields": "6"},
    ),
    Cause(
        "partitions", "12 shuffle partitions, not 2", "q5", {"spark.sql.shuffle.partitions": "12"}
    ),
    Cause(
        "sort",
        "a sort before each aggregation",
        "q5",
        {"spark.sql.execution.useHashAggregateExec": "false"},
    ),
    Cause("state", "RocksDB, not memory, for state", "q5", {f"{_STATE}.providerClass": _ROCKSDB}),
    Cause(
        "sleep",
        "a Python function that sleeps, which takes no CPU time",
        "q14_python_udf",
        {"spark.executorEnv.PYTHONPATH": str(_SLEEPING)},
    ),
    Cause("older", "Spark 4.2.1", "q5", build="pypi:4.2.1"),
)


def choose(names: Sequence[str], queries: Sequence[str]) -> list[Cause]:
    """The causes of these names (of all), of these queries (of all); NexmarkError for no such."""
    known = [cause.name for cause in CAUSES]
    for name in names:
        if name not in known:
            raise NexmarkError(f"cause {name!r} is not known; {suggest(name, known)}")
    shown = list(dict.fromkeys(cause.query for cause in CAUSES))
    for query in queries:
        if query not in shown:
            raise NexmarkError(f"query {query!r} shows none of the causes; {suggest(query, shown)}")
    chosen = [
        cause
        for cause in CAUSES
        if (not names or cause.name in names) and (not queries or cause.query in queries)
    ]
    if not chosen:
        raise NexmarkError(f"no cause is left: {', '.join(queries)} shows none of those named")
    return chosen
