"""Bids."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.generator import channels
from nexmark_jobs.generator.config import GeneratorConfig
from nexmark_jobs.generator.hashing import div, draw
from nexmark_jobs.generator.prices import price
from nexmark_jobs.generator.references import (
    hot_or_active_person,
    hot_or_in_flight_auction,
    last_auction,
    last_person,
)
from nexmark_jobs.generator.strings import filler, filler_constant
from nexmark_jobs.generator.timeline import Kind, events_of

_CURRENT_SIZE = 32


def bids(numbers: DataFrame, config: GeneratorConfig, end: int | None = None) -> DataFrame:
    """The bids among `numbers` (a frame with the bigint column `n`, streaming or not).

    Columns: n, auction, bidder, price (bigint), channel, url (string), dateTime (timestamp),
    extra (string). With `end`, numbers from `end` on are the sentinels (see `timeline`).
    """
    n, seed = F.col("n"), config.seed
    events = events_of(Kind.BID, numbers, config, end)
    drawn = events.select(
        "n",
        "date_time_ms",
        last_auction(F.col("cycle"), config).alias("newest_auction"),
        last_person(F.col("cycle"), config).alias("newest_person"),
        draw(seed, "bid.auction", n).alias("auction_bits"),
        draw(seed, "bid.bidder", n).alias("bidder_bits"),
        draw(seed, "bid.price", n).alias("price_bits"),
        draw(seed, "bid.channel", n).alias("channel_bits"),
        draw(seed, "bid.extra", n).alias("extra_bits"),
    )
    hot_bidder = div(F.col("newest_person"), config.hot_bidder_block) * config.hot_bidder_block + 1
    bidder = hot_or_active_person(
        F.col("bidder_bits"), F.col("newest_person"), config.hot_bidders_ratio, hot_bidder, config
    )
    auction = hot_or_in_flight_auction(F.col("auction_bits"), F.col("newest_auction"), config)
    with_channel = drawn.withColumn("hot", channels.is_hot(F.col("channel_bits"), config))
    with_channel = with_channel.withColumn(
        "channel_index", channels.channel_index(F.col("channel_bits"), F.col("hot"), config)
    )
    with_channel = with_channel.withColumn("url_bits", draw(seed, "url", F.col("channel_index")))
    hot, index = F.col("hot"), F.col("channel_index")
    return with_channel.select(
        "n",
        (auction + config.first_auction_id).alias("auction"),
        (bidder + config.bidder_id_offset).alias("bidder"),
        price(F.col("price_bits")).alias("price"),
        channels.channel_name(hot, index).alias("channel"),
        channels.channel_url(hot, index, F.col("url_bits"), config).alias("url"),
        F.timestamp_millis(F.col("date_time_ms")).alias("dateTime"),
        filler(
            F.col("extra_bits"), filler_constant(seed), _CURRENT_SIZE, config.avg_bid_byte_size
        ).alias("extra"),
    )
