"""q22 get URL directories: the first three directories of every bid's URL.

    SELECT auction, bidder, price, channel,
           SPLIT_INDEX(url, '/', 3) AS dir1,
           SPLIT_INDEX(url, '/', 4) AS dir2,
           SPLIT_INDEX(url, '/', 5) AS dir3
    FROM bid

Deviations:
- SPLIT_INDEX counts from 0 and split_part from 1; for a part that is not there the one gives NULL
  and the other '', which no Nexmark URL shows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.base import Formulation, Query, Streams


def split_part(streams: Streams) -> DataFrame:
    """Take parts 4 to 6 of the URL."""
    parts = (
        F.split_part(F.col("url"), F.lit("/"), F.lit(place)).alias(f"dir{place - 3}")
        for place in (4, 5, 6)
    )
    return streams.plain_bids.select("auction", "bidder", "price", "channel", *parts)


QUERY = Query(
    name="q22",
    title="get URL directories",
    columns=("auction", "bidder", "price", "channel", "dir1", "dir2", "dir3"),
    formulations=(Formulation("split_part", split_part),),
)
