"""List real causes of a slower query; only the candidate has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nexmark.errors import NexmarkError, suggest

_STATE = "spark.sql.streaming.stateStore"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: A directory with a `sitecustomize` that the candidate's Python workers import when they start.
_SLEEPING = Path(__file__).with_name("sleeping_udf")


@dataclass(frozen=True)
class Cause:
    """A cause of a slower query.

    Attributes:
        name: Its name on the command line.
        what: What the candidate does, in words.
        query: The query that shows it.
        conf: The Spark confs that only the candidate has.
        build: The candidate's build, if that is the cause; "" for the usual build.
    """

    name: str
    what: str
    query: str
    conf: Mapping[str, str] = field(default_factory=dict)
    build: str = ""

    @property
    def options(self) -> list[str]:
        """Return the options of `nexmark build` that give the candidate the confs of the cause."""
        confs = (f"{name}={value}" for name, value in self.conf.items())
        return [word for conf in confs for word in ("--candidate-conf", conf)]


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
    """Return the causes with these names and these queries; NexmarkError if there is none.

    Without names (or queries), the causes with any name (or query) are returned.
    """
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
