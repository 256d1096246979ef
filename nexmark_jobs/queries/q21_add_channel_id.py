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
- Where nothing matches, Flink's REGEXP_EXTRACT is NULL and Spark's is ''; an id that is there but
  empty is '' in both. Here what stands between the key and the next & is cut out with plain string
  functions, which tell the two apart and cost less.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.base import Formulation, Query, Streams

CHANNEL_IDS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
_KEY = "channel_id="


def substring(streams: Streams) -> DataFrame:
    """Cut the id out of the URL."""
    in_url = (
        F.when(F.col("url").startswith(_KEY), _from(F.lit(len(_KEY) + 1)))
        .when(F.col("url").contains(f"&{_KEY}"), _from(F.instr("url", f"&{_KEY}") + len(_KEY) + 1))
    )  # fmt: skip
    return _with_channel_id(streams, in_url)


def regexp(streams: Streams) -> DataFrame:
    """Extract the id by a regular expression, as the text says."""
    pattern = f"(&|^){_KEY}([^&]*)"
    in_url = F.when(F.col("url").rlike(pattern), F.regexp_extract("url", pattern, 2))
    return _with_channel_id(streams, in_url)


def _from(start: Column) -> Column:
    """What the URL holds from position `start` (1-based) to the next &."""
    return F.substring_index(F.substr(F.col("url"), start), "&", 1)


def _with_channel_id(streams: Streams, in_url: Column) -> DataFrame:
    lower = F.lower("channel")
    by_name = F.when(lower == "apple", CHANNEL_IDS["apple"])
    for name in ("google", "facebook", "baidu"):
        by_name = by_name.when(lower == name, CHANNEL_IDS[name])
    bids = streams.plain_bids.select(
        "auction", "bidder", "price", "channel", by_name.otherwise(in_url).alias("channel_id")
    )
    return bids.where(F.col("channel_id").isNotNull())


QUERY = Query(
    name="q21",
    title="add channel id",
    columns=("auction", "bidder", "price", "channel", "channel_id"),
    formulations=(Formulation("substring", substring), Formulation("regexp", regexp)),
)
