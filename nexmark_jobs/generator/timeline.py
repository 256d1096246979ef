"""Place event numbers on the timeline: kind, time, and the sentinels that end the input."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.generator.draws import div
from nexmark_jobs.generator_config import DISORDER_PRIME, GeneratorConfig

SENTINEL_TIME_MS = 253_370_764_800_000
"""Event time of the sentinels, 9999-01-01T00:00:00Z, in milliseconds."""
SENTINEL_TIME = "9999-01-01 00:00:00"
"""The same as a timestamp literal in UTC."""


def offsets_of(kind: str, config: GeneratorConfig) -> tuple[int, int]:
    """Return the half-open range of the offsets of a kind (person, auction, bid) within a cycle."""
    auctions, end = config.person_proportion, config.total_proportion
    bids = auctions + config.auction_proportion
    return {"person": (0, auctions), "auction": (auctions, bids), "bid": (bids, end)}[kind]


def position(number: Column, config: GeneratorConfig, end: int | None) -> Column:
    """Return the place of an event on the timeline: its number, permuted within groups if asked.

    Sentinels (numbers from `end`) keep their place, so that they hold every kind.
    """
    plain = number + config.first_event_number if config.first_event_number else number
    size = config.out_of_order_group_size
    if size == 1:
        return plain
    permuted = plain - plain % size + (plain * DISORDER_PRIME) % size
    return permuted if end is None else F.when(number < end, permuted).otherwise(plain)


def time_ms(place: Column, config: GeneratorConfig) -> Column:
    """Return the event time of a place in ms since 1970: cut to microseconds first, then to ms."""
    micros = (place.cast("double") * (1e6 / config.tps)).cast("bigint")
    return div(micros, 1000) + config.base_time_ms


def events_of(kind: str, numbers: DataFrame, config: GeneratorConfig, end: int | None) -> DataFrame:
    """Return the events of one kind among `numbers`, placed on the timeline.

    Args:
        kind: person, auction or bid.
        numbers: a frame with the bigint column `n`.
        config: the configuration of the generator.
        end: the number of events, if sentinels follow: numbers in [end, end + one cycle) are then
            sentinels, dated SENTINEL_TIME, and later ones are dropped.

    Returns:
        The bigint columns n, place (on the timeline), cycle and offset (of the event id) and
        date_time_ms.
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
