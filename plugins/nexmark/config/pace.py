"""The sizes of a workload that follow from what is written.

The warm-up of a paced workload is a batch. In a recovery workload every repetition is compared
with the reference, so the verification has the same events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexmark.errors import KeyedError

_KEYS = ("rate", "seconds", "warm_up", "trigger")
_SIZES = ("events", "tps", "rows_per_batch", "warmup_batches")
_VERIFY = {"events": 20_000, "tps": 1_000, "rows_per_batch": 10_000}


def with_sizes(given: Mapping[str, Any]) -> dict[str, Any]:
    """A workload as it is written, with the sizes that follow from its kind.

    Raises:
        KeyedError: A key is missing, or is of the other kind.
    """
    if given.get("kind") != "paced":
        for key in _KEYS:
            if key in given:
                raise KeyedError((key,), f"{key} belongs to kind: paced; remove it")
        return _of_recovery(given)
    for key in (*_KEYS, "partitions"):
        if key not in given:
            raise KeyedError((key,), f"a paced workload needs {key}; add it")
    for key in _SIZES:
        if key in given:
            raise KeyedError((key,), f"{key} follows from rate, seconds and warm_up; remove it")
    if given.get("source") != "kafka":
        raise KeyedError(("source",), "a paced workload reads Kafka; write source: kafka")
    rate, seconds, warm_up = (given[key] for key in _KEYS[:3])
    if all(isinstance(each, int) and each > 0 for each in (rate, seconds, warm_up)):
        sizes = ((seconds + warm_up) * rate, rate, warm_up * rate, 1)
    else:  # which the fields refuse
        sizes = (2, 1, 1, 1)
    return {"verify": _VERIFY, **given, **dict(zip(_SIZES, sizes, strict=True))}


def _of_recovery(given: Mapping[str, Any]) -> dict[str, Any]:
    if given.get("kind") != "recovery":
        if "recovery" in given:
            raise KeyedError(("recovery",), "recovery belongs to kind: recovery; remove it")
        return dict(given)
    for key in ("verify", "source"):
        if key in given:
            raise KeyedError((key,), f"{key} is given in a recovery workload; remove it")
    size = {key: given[key] for key in _SIZES[:3] if key in given}
    return {"recovery": {}, **given, "verify": size}
