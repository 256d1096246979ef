"""Rows in a form that plain Python can compare."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def millis(events: DataFrame) -> DataFrame:
    """The events with their times as milliseconds since 1970."""
    times = {
        name: F.unix_millis(F.col(name)) for name, kind in events.dtypes if kind == "timestamp"
    }
    return events.withColumns(times)
