"""q2 selection: a cheap filter that few rows pass.

    SELECT auction, price
    FROM bid
    WHERE MOD(auction, 123) = 0

No deviation.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Formulation, Query, Streams

EVERY = 123


def filtered(streams: Streams) -> DataFrame:
    """Filter the bids."""
    bids = streams.plain_bids.where(F.col("auction") % EVERY == 0)
    return bids.select("auction", "price", *streams.carried)


QUERY = Query("q2", ("auction", "price"), (Formulation("filter", filtered),))
