"""q14 calculation: arithmetic, a CASE and a user-defined function.

    SELECT auction, bidder, 0.908 * price AS price,
           CASE WHEN HOUR(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN HOUR(dateTime) <= 6 OR HOUR(dateTime) >= 20 THEN 'nightTime'
                ELSE 'otherTime' END AS bidTimeType,
           dateTime, extra, count_char(extra, 'c') AS c_counts
    FROM bid
    WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000

count_char, a Java UDF in the original, counts the bytes that equal the character's; it returns 0
for NULL. Deviations:
- q14 counts with built-in functions; q14_python_udf with a Python UDF, to show what one costs.
- The filter compares the whole price with the whole bounds that mean the same.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways
from nexmark_jobs.queries.q01_currency_conversion import in_euro

LOWEST_PRICE, HIGHEST_PRICE = 1_101_322, 55_066_079
"""0.908 times these is just above 1 000 000 and just below 50 000 000."""

_CHARACTER = "c"


def builtin(streams: Streams) -> DataFrame:
    """Count characters by what is missing when they are taken out."""
    extra = F.col("extra")
    without = F.replace(extra, F.lit(_CHARACTER), F.lit(""))
    count = F.octet_length(extra) - F.octet_length(without)
    return _calculated(streams, F.coalesce(count.cast("bigint"), F.lit(0).cast("bigint")))


def python_udf(streams: Streams) -> DataFrame:
    """Count characters in Python, row by row: with PyArrow, Spark 4.2 would take another way."""
    return _calculated(streams, F.udf(_counter(), "bigint", useArrow=False)(F.col("extra")))


def _counter() -> Callable[[str | None], int]:
    character = _CHARACTER

    def count_char(text: str | None) -> int:  # nested, so that workers need no package of ours
        return 0 if text is None else text.count(character)

    return count_char


def _calculated(streams: Streams, count: Column) -> DataFrame:
    hour = F.hour("dateTime")
    day, night = hour.between(8, 18), (hour <= 6) | (hour >= 20)
    time_type = F.when(day, "dayTime").when(night, "nightTime").otherwise("otherTime")
    bids = streams.plain_bids.where(F.col("price").between(LOWEST_PRICE, HIGHEST_PRICE))
    price = in_euro(F.col("price")).alias("price")
    others = time_type.alias("bidTimeType"), "dateTime", "extra", count.alias("c_counts")
    return bids.select("auction", "bidder", price, *others)


_COLUMNS = ("auction", "bidder", "price", "bidTimeType", "dateTime", "extra", "c_counts")

QUERY = Query("q14", _COLUMNS, ways(builtin))
PYTHON_UDF_QUERY = Query("q14_python_udf", _COLUMNS, ways(python_udf))
