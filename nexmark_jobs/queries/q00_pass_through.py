"""q0 pass through: what a generated row costs, and nothing else.

    SELECT auction, bidder, price, dateTime, extra
    FROM bid

No deviation.
"""

from pyspark.sql import DataFrame

from nexmark_jobs.queries.formulation import Query, Streams, ways

COLUMNS = ("auction", "bidder", "price", "dateTime", "extra")


def projection(streams: Streams) -> DataFrame:
    """Project the bids."""
    return streams.plain_bids.select(*COLUMNS)


QUERY = Query("q0", COLUMNS, ways(projection))
