"""Know which queries can run in Spark's Real-Time Mode, and what keeps the others from it.

Real-Time Mode takes only some operators, one stateful operator at the most, and update mode. Spark
4.2 takes no state at all. Where a query cannot run, Spark refuses it with the error class given
here (`tests/kafka/test_real_time.py` asks Spark).
"""

from dataclasses import dataclass

from nexmark_jobs.feature_release import feature_release

FIRST = (4, 2)  # the first Spark whose Python knows the trigger
STATELESS = ("q0", "q1", "q2", "q10", "q13", "q14", "q21", "q22")  # from Spark 4.2 on
STATEFUL = ("q7", "q8", "q9", "q12", "q17", "q18", "q19")  # from Spark 4.3 on

EVERY = "spark.nexmark.batch_every"
"""A Spark conf: the interval at which micro-batches begin, e.g. `1 second`."""

_FLUSH = "spark.shuffle.streaming.networkBufferMaxWaitTimeMs"
_FLUSH_MS = 50

_OPERATOR = "STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST"


@dataclass(frozen=True)
class Refusal:
    """Why a query cannot run in Real-Time Mode: Spark's error class, and what it means."""

    error: str
    why: str


_JOIN = Refusal(_OPERATOR, "it joins two streams")
_PYTHON = Refusal(_OPERATOR, "it has a Python UDF")
_STATE = Refusal(_OPERATOR, "it keeps state, which needs Spark 4.3")
_MODE = "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION"
_SESSION = Refusal(_MODE, "session windows have no update mode")
_CHAIN = Refusal("_LEGACY_ERROR_TEMP_3102", "it has several stateful operators in a row")
_OLD = Refusal("", "this Spark has none; it needs Spark 4.2")

NEVER = {
    **dict.fromkeys(("q3", "q20", "q23"), _JOIN),
    **dict.fromkeys(("q4", "q5", "q6", "q15", "q16"), _CHAIN),
    "q11": _SESSION,
    "q14_python_udf": _PYTHON,
}
"""Queries that no version of Spark runs in Real-Time Mode."""


def refusal(query: str, spark_version: str) -> Refusal | None:
    """Return why a query cannot run in Real-Time Mode on a version of Spark; None if it can."""
    version = feature_release(spark_version)
    if version < FIRST:
        return _OLD
    if query in NEVER:
        return NEVER[query]
    if query in STATEFUL and version == FIRST:
        return _CHAIN if query == "q7" else _STATE  # the formulation that older versions have
    return None


def later_confs(query: str, trigger: str, p50: float, part: float) -> dict[str, str]:
    """Return Spark confs that delay the rows of a query; none if no conf does.

    Batches begin one behind the other: a row waits half a batch on average, and then for its own
    batch, so that p50 is one and a half times the length of a batch. If batches begin at a longer
    interval, a row waits half of the interval. In Real-Time Mode a row waits in a buffer of the
    shuffle for half of the time after which the buffer is sent.

    Args:
        query: the name of the query.
        trigger: "micro-batch" or "real-time".
        p50: the median latency without a delay, in ms.
        part: the delay as a part of p50.
    """
    delay = part * p50
    if not delay:
        return {}
    if trigger == "micro-batch":
        return {EVERY: f"{round(p50 / 1.5 + 2 * delay)} milliseconds"}
    return {_FLUSH: str(_FLUSH_MS + round(2 * delay))} if query in STATEFUL else {}
