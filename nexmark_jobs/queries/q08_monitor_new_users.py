"""q8 monitor new users: persons who opened an auction in the ten seconds in which they came.

    SELECT P.id, P.name, P.window_start
    FROM (
        SELECT id, name, window_start, window_end
        FROM TUMBLE(person, dateTime, size 10 seconds)
        GROUP BY id, name, window_start, window_end
    ) P
    JOIN (
        SELECT seller, window_start, window_end
        FROM TUMBLE(auction, dateTime, size 10 seconds)
        GROUP BY seller, window_start, window_end
    ) A
    ON P.id = A.seller AND P.window_start = A.window_start AND P.window_end = A.window_end

Deviations:
- `union` gathers names and sales of persons and sellers per id and window in one aggregation;
  `join` is the text's own way.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Formulation, Query, Streams

SIZE = "10 seconds"


def union(streams: Streams) -> DataFrame:
    """Aggregate the union of persons and sellers."""
    both = streams.persons.select(
        "id", "dateTime", "name", F.lit(False).alias("sells")
    ).unionByName(
        streams.auctions.select(
            F.col("seller").alias("id"),
            "dateTime",
            F.lit(None).cast("string").alias("name"),
            F.lit(True).alias("sells"),
        )
    )
    users = both.groupBy(F.window("dateTime", SIZE), "id").agg(
        F.collect_set("name").alias("names"), F.bool_or("sells").alias("sells")
    )
    return users.where("sells").select(
        "id", F.explode("names").alias("name"), F.col("window.start").alias("window_start")
    )


def join(streams: Streams) -> DataFrame:
    """Join the distinct persons with the distinct sellers of each window."""
    persons = streams.persons.groupBy(F.window("dateTime", SIZE), "id", "name").agg(
        F.count(F.lit(1)).alias("times")
    )
    sellers = streams.auctions.groupBy(F.window("dateTime", SIZE).alias("of"), "seller").agg(
        F.count(F.lit(1)).alias("auctions")
    )
    joined = persons.join(
        sellers, (F.col("id") == F.col("seller")) & (F.col("window") == F.col("of"))
    )
    return joined.select("id", "name", F.col("window.start").alias("window_start"))


QUERY = Query(
    "q8",
    ("id", "name", "window_start"),
    (Formulation("union", union), Formulation("join", join)),
    needs_end_of_input=True,
)
