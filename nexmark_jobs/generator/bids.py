"""Generate bids, and the channels that they come over."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.generator.draws import (
    ConstantStream,
    below,
    div,
    draw,
    filler,
    high,
    hot_or_active_person,
    hot_or_in_flight_auction,
    low,
    newest,
    one_of,
    price,
)
from nexmark_jobs.generator.timeline import events_of
from nexmark_jobs.generator_config import GeneratorConfig

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

_HOST, _PAGE = "https://www.nexmark.com/", "item.htm?query=1"
_SEGMENTS = 256
_FIXED_SIZE = 32


def _random_segment(stream: ConstantStream) -> str:
    length = 3 + stream.below(2)
    symbols = [stream.below(13 * 26) for _ in range(4)]
    return "".join("_" if s < 26 else chr(ord("a") + (s - 26) // 12) for s in symbols[:length])


def segments(seed: int) -> list[str]:
    """Return the directory names of URLs: 3 or 4 characters, 1/13 of them '_', the rest a..z."""
    stream = ConstantStream(seed, "segments", 5 * _SEGMENTS)
    return [_random_segment(stream) for _ in range(_SEGMENTS)]


def hot_urls(seed: int) -> list[str]:
    """Return the URL of each hot channel."""
    stream = ConstantStream(seed, "hot urls", 5 * 3 * len(HOT_CHANNELS))
    paths = ["".join(_random_segment(stream) + "/" for _ in range(3)) for _ in HOT_CHANNELS]
    return [f"{_HOST}{path}{_PAGE}" for path in paths]


def _absolute_reverse32(number: Column, bound: int) -> Column:
    """Reverse the 32 bits of number < bound and return the absolute value as a signed integer.

    For number 1 the result is 2^31; Java's Math.abs leaves it negative.
    """
    reverse = F.lit(0).cast("bigint")
    for position in range(0, (bound - 1).bit_length(), 8):
        byte = F.shiftright(number, position).bitwiseAND(F.lit(0xFF))
        reverse8 = (byte * 0x0202020202).bitwiseAND(F.lit(0x010884422010)) % 1023
        reverse = reverse.bitwiseOR(F.shiftleft(reverse8, 24 - position))
    sign = F.lit(2**31)
    return F.abs(reverse.bitwiseXOR(sign) - sign)


def channel_url(hot: Column, index: Column, bits: Column, config: GeneratorConfig) -> Column:
    """Return the URL of a channel: a function of (seed, channel).

    Args:
        hot: Whether it is one of the hot channels.
        index: The number of the channel.
        bits: Random bits of the channel.
        config: The configuration of the generator.
    """
    table = [f"{segment}/" for segment in segments(config.seed)]
    directories = [
        one_of(table, F.shiftrightunsigned(bits, shift).bitwiseAND(F.lit(_SEGMENTS - 1)))
        for shift in (32, 42, 52)
    ]
    has_id = below(low(bits), 10) < 9
    page = F.when(has_id, F.lit(_PAGE + "&channel_id=")).otherwise(F.lit(_PAGE))
    channel_id = _absolute_reverse32(index, config.num_channels).cast("string")
    channel_id = F.when(has_id, channel_id).otherwise(F.lit(""))
    named = F.concat(F.lit(_HOST), *directories, page, channel_id)
    return F.when(hot, one_of(hot_urls(config.seed), index)).otherwise(named)


def bids(numbers: DataFrame, config: GeneratorConfig, end: int | None = None) -> DataFrame:
    """Return the bids among `numbers` (a frame with the bigint column `n`, streaming or not).

    Columns: n, auction, bidder, price (bigint), channel, url (string), dateTime (timestamp),
    extra (string).
    """
    n, seed = F.col("n"), config.seed
    events = events_of("bid", numbers, config, end)
    drawn_for = ("auction", "bidder", "price", "channel", "extra")
    drawn = events.select(
        "n",
        "date_time_ms",
        newest(F.col("cycle"), config.auction_proportion).alias("newest_auction"),
        newest(F.col("cycle"), config.person_proportion).alias("newest_person"),
        *(draw(seed, f"bid.{name}", n).alias(f"{name}_bits") for name in drawn_for),
    )
    person, bits, ratio = F.col("newest_person"), F.col("bidder_bits"), config.hot_bidders_ratio
    hot_bidder = div(person, config.hot_bidder_block) * config.hot_bidder_block + 1
    bidder = hot_or_active_person(bits, person, ratio, hot_bidder, config)
    auction = hot_or_in_flight_auction(F.col("auction_bits"), F.col("newest_auction"), config)
    bits, hot, index = F.col("channel_bits"), F.col("hot"), F.col("channel_index")
    channels = F.when(hot, F.lit(len(HOT_CHANNELS))).otherwise(config.num_channels)
    with_channel = drawn.withColumn("hot", below(high(bits), config.hot_channels_ratio) > 0)
    with_channel = with_channel.withColumn("channel_index", below(low(bits), channels))
    with_channel = with_channel.withColumn("url_bits", draw(seed, "url", index))
    named = F.concat(F.lit("channel-"), index.cast("string"))
    return with_channel.select(
        "n",
        (auction + config.first_auction_id).alias("auction"),
        (bidder + config.bidder_id_offset).alias("bidder"),
        price(F.col("price_bits")).alias("price"),
        F.when(hot, one_of(HOT_CHANNELS, index)).otherwise(named).alias("channel"),
        channel_url(hot, index, F.col("url_bits"), config).alias("url"),
        F.timestamp_millis(F.col("date_time_ms")).alias("dateTime"),
        filler(F.col("extra_bits"), seed, _FIXED_SIZE, config.avg_bid_byte_size).alias("extra"),
    )
