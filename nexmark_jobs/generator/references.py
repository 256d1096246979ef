"""Which persons and auctions an event may refer to."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from nexmark_jobs.generator.config import GeneratorConfig
from nexmark_jobs.generator.hashing import below, div, high, low


def last_person(cycle: Column, config: GeneratorConfig) -> Column:
    """Newest person (counted from 0) as an auction or bid of `cycle` sees it."""
    return cycle * config.person_proportion + (config.person_proportion - 1)


def last_auction(cycle: Column, config: GeneratorConfig) -> Column:
    """Newest auction (counted from 0) as a bid of `cycle` sees it."""
    return cycle * config.auction_proportion + (config.auction_proportion - 1)


def hot_or_active_person(
    bits: Column, newest: Column, ratio: int, hot: Column, config: GeneratorConfig
) -> Column:
    """The person `hot` with probability 1 - 1/ratio, else an active one or one of their lead."""
    people = newest + 1
    active = F.least(people, F.lit(config.num_active_people))
    any_person = people - active + below(low(bits), active + config.person_id_lead)
    return F.when(below(high(bits), ratio) > 0, hot).otherwise(any_person)


def hot_or_in_flight_auction(bits: Column, newest: Column, config: GeneratorConfig) -> Column:
    """The hot auction with probability 1 - 1/ratio, else one in flight or of their lead."""
    block = config.hot_auction_block
    oldest = F.greatest(newest - config.num_in_flight_auctions, F.lit(0))
    any_auction = oldest + below(low(bits), newest - oldest + (1 + config.auction_id_lead))
    hot = div(newest, block) * block
    return F.when(below(high(bits), config.hot_auction_ratio) > 0, hot).otherwise(any_auction)
