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

from nexmark_jobs.queries.formulation import Query, Streams, ways

SIZE = "10 seconds"


def union(streams: Streams) -> DataFrame:
    """Aggregate the union of persons and sellers."""
    persons = streams.persons.select("id", "dateTime", "name", F.lit(False).alias("sells"))
    seller, no_name = F.col("seller").alias("id"), F.lit(None).cast("string").alias("name")
    sellers = streams.auctions.select(seller, "dateTime", no_name, F.lit(True).alias("sells"))
    both = persons.unionByName(sellers)
    users = both.groupBy(F.window("dateTime", SIZE), "id").agg(
        F.collect_set("name").alias("names"), F.bool_or("sells").alias("sells")
    )
    return users.where("sells").select(
        "id", F.explode("names").alias("name"), F.col("window.start").alias("window_start")
    )


def join(streams: Streams) -> DataFrame:
    """Join the distinct persons with the distinct sellers of each window."""
    came = streams.persons.groupBy(F.window("dateTime", SIZE), "id", "name")
    persons = came.agg(F.count(F.lit(1)).alias("times"))
    sold = streams.auctions.groupBy(F.window("dateTime", SIZE).alias("of"), "seller")
    sellers = sold.agg(F.count(F.lit(1)).alias("auctions"))
    same = (F.col("id") == F.col("seller")) & (F.col("window") == F.col("of"))
    joined = persons.join(sellers, same)
    return joined.select("id", "name", F.col("window.start").alias("window_start"))


QUERY = Query("q8", ("id", "name", "window_start"), ways(union, join), needs_end_of_input=True)
