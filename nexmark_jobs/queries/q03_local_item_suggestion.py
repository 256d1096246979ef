"""q3 local item suggestion: who sells in category 10 in three states.

    SELECT P.name, P.city, P.state, A.id
    FROM auction A
    JOIN person P ON A.seller = P.id
    WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')

Neither side has a time bound: both are kept for ever, as in Flink. No deviation.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

CATEGORY = 10
STATES = ("OR", "ID", "CA")


def join(streams: Streams) -> DataFrame:
    """Join the two filtered streams."""
    auctions = streams.plain_auctions.where(F.col("category") == CATEGORY).select("id", "seller")
    persons = streams.plain_persons.where(F.col("state").isin(*STATES))
    persons = persons.select(F.col("id").alias("person"), "name", "city", "state")
    joined = auctions.join(persons, F.col("seller") == F.col("person"))
    return joined.select("name", "city", "state", "id")


QUERY = Query("q3", ("name", "city", "state", "id"), ways(join))
