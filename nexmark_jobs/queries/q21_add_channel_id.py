r"""q21 add channel id: a number for the channel of every bid, by name or from its URL.

    SELECT auction, bidder, price, channel,
           CASE WHEN lower(channel) = 'apple' THEN '0'
                WHEN lower(channel) = 'google' THEN '1'
                WHEN lower(channel) = 'facebook' THEN '2'
                WHEN lower(channel) = 'baidu' THEN '3'
                ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
           END AS channel_id
    FROM bid
    WHERE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) IS NOT NULL
          OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')

Deviations:
- Where nothing matches, Flink's REGEXP_EXTRACT is NULL and Spark's is '': here '' counts as NULL.
- The id is put into an array and exploded, which drops the rows where it is NULL. A filter on it
  would be pushed below the projection and find every id twice.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

CHANNEL_IDS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
_BID = ("auction", "bidder", "price", "channel")
_ID_IN_URL = "(&|^)channel_id=([^&]*)"


def regexp(streams: Streams) -> DataFrame:
    """Take the hot channels' ids from a table, extract the others' by a regular expression."""
    lower = F.lower("channel")
    channel_id = F.nullif(F.regexp_extract("url", _ID_IN_URL, 2), F.lit(""))
    for name, known in CHANNEL_IDS.items():
        channel_id = F.when(lower == name, F.lit(known)).otherwise(channel_id)
    known_id = F.explode(F.array_compact(F.array(channel_id))).alias("channel_id")
    return streams.plain_bids.select(*_BID, known_id, *streams.carried)


QUERY = Query("q21", (*_BID, "channel_id"), ways(regexp))
