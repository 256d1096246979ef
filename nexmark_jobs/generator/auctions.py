"""Generate auctions."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.generator.draws import (
    below,
    div,
    draw,
    filler,
    high,
    hot_or_active_person,
    newest,
    price,
    random_string,
    text_constant,
)
from nexmark_jobs.generator.timeline import events_of, time_ms
from nexmark_jobs.generator_config import GeneratorConfig

_FIXED_SIZE = 8 + 40
_ITEM_NAME_LENGTH, _DESCRIPTION_LENGTH = 20, 100


def _lifetime_ms(bits: Column, place: Column, config: GeneratorConfig) -> Column:
    """Return the length of an auction, uniform on 1..2h ms: h is the span of `events_in_flight`."""
    horizon = time_ms(place + config.events_in_flight, config) - time_ms(place, config)
    positive = F.shiftrightunsigned(bits, 1)
    return positive % F.greatest(horizon * 2, F.lit(1)) + 1


def auctions(numbers: DataFrame, config: GeneratorConfig, end: int | None = None) -> DataFrame:
    """Return the auctions among `numbers` (a frame with the bigint column `n`, streaming or not).

    Columns: n, id (bigint), itemName, description (string), initialBid, reserve (bigint), dateTime,
    expires (timestamp), seller, category (bigint), extra (string).
    """
    n, seed = F.col("n"), config.seed
    text = text_constant(seed)
    events = events_of("auction", numbers, config, end)
    first_id = config.first_auction_id - config.person_proportion
    description = random_string(draw(seed, "auction.description", n), text, _DESCRIPTION_LENGTH)
    drawn = events.select(
        "n",
        "date_time_ms",
        (F.col("cycle") * config.auction_proportion + F.col("offset") + first_id).alias("id"),
        newest(F.col("cycle"), config.person_proportion).alias("newest_person"),
        _lifetime_ms(draw(seed, "auction.expires", n), F.col("place"), config).alias("lifetime_ms"),
        random_string(draw(seed, "auction.itemName", n), text, _ITEM_NAME_LENGTH).alias("itemName"),
        description.alias("description"),
        price(draw(seed, "auction.initialBid", n)).alias("initialBid"),
        draw(seed, "auction.seller", n).alias("seller_bits"),
    )
    person, bits, ratio = F.col("newest_person"), F.col("seller_bits"), config.hot_sellers_ratio
    hot_seller = div(person, config.hot_seller_block) * config.hot_seller_block
    seller = hot_or_active_person(bits, person, ratio, hot_seller, config)
    category = below(high(draw(seed, "auction.category", n)), config.num_categories)
    size = F.octet_length("itemName") + F.octet_length("description") + _FIXED_SIZE
    extra = filler(draw(seed, "auction.extra", n), seed, size, config.avg_auction_byte_size)
    return drawn.select(
        "n",
        "id",
        "itemName",
        "description",
        "initialBid",
        (F.col("initialBid") + price(draw(seed, "auction.reserve", n))).alias("reserve"),
        F.timestamp_millis(F.col("date_time_ms")).alias("dateTime"),
        F.timestamp_millis(F.col("date_time_ms") + F.col("lifetime_ms")).alias("expires"),
        (seller + config.first_person_id).alias("seller"),
        (category + config.first_category_id).alias("category"),
        extra.alias("extra"),
    )
