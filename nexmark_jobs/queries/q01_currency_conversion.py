"""q1 currency conversion: what arithmetic on decimals costs.

    SELECT auction, bidder, 0.908 * price AS price, dateTime, extra
    FROM bid

Deviations:
- Flink's product of DECIMAL(3,3) and a BIGINT is a DECIMAL(23,3); Spark takes a BIGINT for 20
  digits and arrives at (24,3), so the price is cast to its 19 digits first.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways
from nexmark_jobs.queries.q00_pass_through import COLUMNS


def in_euro(price: Column) -> Column:
    """Return the price (bigint) in the other currency, decimal(23,3), exactly."""
    return price.cast("decimal(19,0)") * F.expr("0.908BD")


def projection(streams: Streams) -> DataFrame:
    """Project the bids."""
    price = in_euro(F.col("price")).alias("price")
    return streams.plain_bids.select("auction", "bidder", price, "dateTime", "extra")


QUERY = Query("q1", COLUMNS, ways(projection))
