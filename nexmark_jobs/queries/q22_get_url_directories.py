"""q22 get URL directories: the first three directories of every bid's URL.

    SELECT auction, bidder, price, channel,
           SPLIT_INDEX(url, '/', 3) AS dir1,
           SPLIT_INDEX(url, '/', 4) AS dir2,
           SPLIT_INDEX(url, '/', 5) AS dir3
    FROM bid

Deviations:
- A part that is not there is '' (as split_part has it) instead of NULL; every Nexmark URL has them.
- The URL is split once into an array: three calls of split_part cost twice as much.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

_BID = ("auction", "bidder", "price", "channel")


def split(streams: Streams) -> DataFrame:
    """Split the URL once, take parts 3 to 5 (from 0)."""
    parts = F.split("url", "/").alias("parts")
    bids = streams.plain_bids.select(*_BID, *streams.carried, parts)
    directories = (
        F.coalesce(F.get("parts", F.lit(place)), F.lit("")).alias(f"dir{place - 2}")
        for place in (3, 4, 5)
    )
    return bids.select(*_BID, *directories, *streams.carried)


QUERY = Query("q22", (*_BID, "dir1", "dir2", "dir3"), ways(split))
