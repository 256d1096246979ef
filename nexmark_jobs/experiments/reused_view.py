"""reused_view: two consumers of one view, which aggregates windows.

CREATE VIEW totals AS
SELECT auction, window_start, COUNT(*) AS bids, SUM(price) AS value
FROM TUMBLE(bid, dateTime, 10 seconds) GROUP BY auction, window_start, window_end;

SELECT auction, window_start, 'bids' AS kind, bids AS amount FROM totals
UNION ALL
SELECT auction, window_start, 'value', value FROM totals
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Formulation, Query, Streams, ways

SIZE = "10 seconds"
KINDS = ("bids", "value")


def union(streams: Streams) -> DataFrame:
    """Write the view into the query twice: Spark reads, parses and aggregates for each consumer."""
    first, second = (view(streams).select(*_columns(kind)) for kind in KINDS)
    return first.unionAll(second)


def explode(streams: Streams) -> DataFrame:
    """Read the view once, and make a row for each consumer."""
    rows = F.array(*(F.struct(*_columns(kind)) for kind in KINDS))
    return view(streams).select(F.inline(rows))


def each(rows: DataFrame, _: int) -> list[DataFrame]:
    """Return the rows of both consumers of a micro-batch of the view, which is persisted.

    They are written one by one: in a union of both, Spark 4.3 finds the kept rows for one side
    only, and computes the other again.
    """
    return [rows.select(*_columns(kind)) for kind in KINDS]


def view(streams: Streams) -> DataFrame:
    """Return the view: the bids and their value per auction and window."""
    per_window = streams.bids.groupBy(F.window("dateTime", SIZE), "auction")
    return per_window.agg(F.count(F.lit(1)).alias("bids"), F.sum("price").alias("value"))


def _columns(kind: str) -> list[Column]:
    start = F.col("window.start").alias("window_start")
    return [F.col("auction"), start, F.lit(kind).alias("kind"), F.col(kind).alias("amount")]


QUERY = Query(
    "reused_view",
    ("auction", "window_start", "kind", "amount"),
    (*ways(union, explode), Formulation("kept_batch", view, per_batch=each)),
    needs_end_of_input=True,
)
