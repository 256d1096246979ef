"""Which event a number stands for, when it happens, and what it is: a person, an auction or a bid.

`numbers` is a frame with the bigint column `n`, streaming or not. With `end`, numbers from `end` on
are the sentinels, the end of the input (see `events_of`).
"""

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
    random_string,
    text_constant,
)
from nexmark_jobs.knobs import DISORDER_PRIME, GeneratorConfig

SENTINEL_TIME_MS = 253_370_764_800_000
"""Event time of the sentinels, 9999-01-01T00:00:00Z, in milliseconds."""
SENTINEL_TIME = "9999-01-01 00:00:00"
"""The same as a timestamp literal in UTC."""

FIRST_NAMES = (
    *("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter"),
    "Walter",
)
LAST_NAMES = (
    *("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"),
)
CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond"),
    *("Seattle", "Kent", "Cheyenne"),
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")

_PERSON_SIZE, _AUCTION_SIZE, _BID_SIZE = 8, 8 + 40, 32
"""Bytes of an event besides its texts."""
_CARD_NUMBERS = 10**16
_ITEM_NAME_LENGTH, _DESCRIPTION_LENGTH = 20, 100
_HOST, _PAGE = "https://www.nexmark.com/", "item.htm?query=1"
_SEGMENTS = 256


def offsets_of(kind: str, config: GeneratorConfig) -> tuple[int, int]:
    """The half-open range of offsets within a cycle that a `kind` takes: person, auction or bid."""
    auctions, end = config.person_proportion, config.total_proportion
    bids = auctions + config.auction_proportion
    return {"person": (0, auctions), "auction": (auctions, bids), "bid": (bids, end)}[kind]


def position(number: Column, config: GeneratorConfig, end: int | None) -> Column:
    """Place on the timeline of event `number`: the number itself, permuted within groups if asked.

    Sentinels (numbers from `end`) keep their place, so that they hold every kind.
    """
    plain = number + config.first_event_number if config.first_event_number else number
    size = config.out_of_order_group_size
    if size == 1:
        return plain
    permuted = plain - plain % size + (plain * DISORDER_PRIME) % size
    return permuted if end is None else F.when(number < end, permuted).otherwise(plain)


def time_ms(place: Column, config: GeneratorConfig) -> Column:
    """Event time of a place on the timeline, in ms: whole microseconds first, then whole ms."""
    micros = (place.cast("double") * (1e6 / config.tps)).cast("bigint")
    return div(micros, 1000) + config.base_time_ms


def events_of(kind: str, numbers: DataFrame, config: GeneratorConfig, end: int | None) -> DataFrame:
    """The events of one kind among `numbers` (column `n`), placed on the timeline.

    Columns: n; place (on the timeline); cycle and offset (of the event id); date_time_ms; all
    bigint. With `end`, numbers in [end, end + one cycle) are sentinels, dated
    SENTINEL_TIME, and later ones are dropped.
    """
    first, last = offsets_of(kind, config)
    total = config.total_proportion
    event_id = F.col("place") + config.first_event_id if config.first_event_id else F.col("place")
    placed = numbers.select("n", position(F.col("n"), config, end).alias("place"))
    if end is not None:
        placed = placed.where(F.col("n") < end + total)
    offset = event_id % total
    wanted = offset < last if kind == "person" else offset >= first
    if kind == "auction":
        wanted = wanted & (offset < last)
    time = time_ms(F.col("place"), config)
    if end is not None:
        time = F.when(F.col("n") < end, time).otherwise(F.lit(SENTINEL_TIME_MS))
    cycle = div(event_id, total).alias("cycle")
    placed = placed.where(wanted)
    return placed.select("n", "place", cycle, offset.alias("offset"), time.alias("date_time_ms"))


def _one_of(items: tuple[str, ...], bits32: Column) -> Column:
    return one_of(items, below(bits32, len(items)))


def _credit_card(bits: Column) -> Column:
    """Four groups of four digits."""
    digits = F.shiftrightunsigned(bits, 1) % _CARD_NUMBERS + _CARD_NUMBERS
    text = digits.cast("string")  # the leading 1 keeps the zeros
    return F.concat_ws(" ", *[F.substring(text, start, 4) for start in (2, 6, 10, 14)])


def persons(numbers: DataFrame, config: GeneratorConfig, end: int | None = None) -> DataFrame:
    """The persons among `numbers`.

    Columns: n, id (bigint), name, emailAddress, creditCard, city, state (string), dateTime
    (timestamp), extra (string).
    """
    n, seed = F.col("n"), config.seed
    text = text_constant(seed)
    events = events_of("person", numbers, config, end)
    name_bits = draw(seed, "person.name", n)
    user = random_string(draw(seed, "person.email.user", n), text, 7)
    host = random_string(draw(seed, "person.email.host", n), text, 5)
    email = F.concat(user, F.lit("@"), host, F.lit(".com"))
    first, last = _one_of(FIRST_NAMES, high(name_bits)), _one_of(LAST_NAMES, low(name_bits))
    number = F.col("cycle") * config.person_proportion + F.col("offset") + config.first_person_id
    drawn = events.select(
        *("n", "date_time_ms", number.alias("id")),
        F.concat(first, F.lit(" "), last).alias("name"),
        email.alias("emailAddress"),
        _credit_card(draw(seed, "person.creditCard", n)).alias("creditCard"),
        _one_of(CITIES, high(draw(seed, "person.city", n))).alias("city"),
        _one_of(STATES, high(draw(seed, "person.state", n))).alias("state"),
    )
    texts = ("name", "emailAddress", "creditCard", "city", "state")
    size = sum((F.octet_length(text) for text in texts), F.lit(_PERSON_SIZE))
    time = F.timestamp_millis(F.col("date_time_ms")).alias("dateTime")
    extra = filler(draw(seed, "person.extra", n), seed, size, config.avg_person_byte_size)
    return drawn.select("n", "id", *texts, time, extra.alias("extra"))


def _lifetime_ms(bits: Column, place: Column, config: GeneratorConfig) -> Column:
    """How long an auction runs: uniform on 1..2h ms, where h is the span of `events_in_flight`."""
    horizon = time_ms(place + config.events_in_flight, config) - time_ms(place, config)
    positive = F.shiftrightunsigned(bits, 1)
    return positive % F.greatest(horizon * 2, F.lit(1)) + 1


def auctions(numbers: DataFrame, config: GeneratorConfig, end: int | None = None) -> DataFrame:
    """The auctions among `numbers`.

    Columns: n, id (bigint), itemName, description (string), initialBid, reserve (bigint), dateTime,
    expires (timestamp), seller, category (bigint), extra (string).
    """
    n, seed = F.col("n"), config.seed
    text = text_constant(seed)
    events = events_of("auction", numbers, config, end)
    first_id = config.first_auction_id - config.person_proportion
    description = random_string(draw(seed, "auction.description", n), text, _DESCRIPTION_LENGTH)
    drawn = events.select(
        *("n", "date_time_ms"),
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
    size = F.octet_length("itemName") + F.octet_length("description") + _AUCTION_SIZE
    extra = filler(draw(seed, "auction.extra", n), seed, size, config.avg_auction_byte_size)
    return drawn.select(
        *("n", "id", "itemName", "description", "initialBid"),
        (F.col("initialBid") + price(draw(seed, "auction.reserve", n))).alias("reserve"),
        F.timestamp_millis(F.col("date_time_ms")).alias("dateTime"),
        F.timestamp_millis(F.col("date_time_ms") + F.col("lifetime_ms")).alias("expires"),
        (seller + config.first_person_id).alias("seller"),
        (category + config.first_category_id).alias("category"),
        extra.alias("extra"),
    )


def _random_segment(stream: ConstantStream) -> str:
    length = 3 + stream.below(2)
    symbols = [stream.below(13 * 26) for _ in range(4)]
    return "".join("_" if s < 26 else chr(ord("a") + (s - 26) // 12) for s in symbols[:length])


def segments(seed: int) -> list[str]:
    """The directory names of URLs: 3 or 4 characters, 1/13 of them '_', the rest a..z."""
    stream = ConstantStream(seed, "segments", 5 * _SEGMENTS)
    return [_random_segment(stream) for _ in range(_SEGMENTS)]


def hot_urls(seed: int) -> list[str]:
    """The URL of each hot channel."""
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
    """URL of a channel: a function of (seed, channel)."""
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
    """The bids among `numbers`.

    Columns: n, auction, bidder, price (bigint), channel, url (string), dateTime (timestamp),
    extra (string).
    """
    n, seed = F.col("n"), config.seed
    events = events_of("bid", numbers, config, end)
    drawn_for = ("auction", "bidder", "price", "channel", "extra")
    drawn = events.select(
        *("n", "date_time_ms"),
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
        filler(F.col("extra_bits"), seed, _BID_SIZE, config.avg_bid_byte_size).alias("extra"),
    )


EVENTS = {"person": persons, "auction": auctions, "bid": bids}
"""What makes the events of each kind, in their order within a cycle."""
