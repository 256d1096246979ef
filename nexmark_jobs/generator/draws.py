"""Draws of the generator: hashes of (seed, field, number), and what is made of them: prices, and
the persons and auctions that an event may refer to."""

from __future__ import annotations

import hashlib

from pyspark.sql import Column
from pyspark.sql import functions as F

from nexmark_jobs.knobs import GeneratorConfig

_MASK32 = 0xFFFF_FFFF


def field_key(seed: int, field: str) -> int:
    """The signed 64-bit key of a field: SHA-256("nexmark/<seed>/<field>"), first 8 bytes."""
    digest = hashlib.sha256(f"nexmark/{seed}/{field}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def draw(seed: int, field: str, number: Column) -> Column:
    """64 random bits (a bigint): xxHash64 (its seed is 42) of the number xor the field's key."""
    return F.xxhash64(number.bitwiseXOR(F.lit(field_key(seed, field)).cast("bigint")))


def high(bits: Column) -> Column:
    """The upper 32 bits as a number in [0, 2^32)."""
    return F.shiftrightunsigned(bits, 32)


def low(bits: Column) -> Column:
    """The lower 32 bits as a number in [0, 2^32)."""
    return bits.bitwiseAND(F.lit(_MASK32))


def below(bits32: Column, bound: Column | int) -> Column:
    """A number in [0, bound), bound below 2^31, from 32 random bits: bits * bound / 2^32."""
    return F.shiftright(bits32 * bound, 32)


def div(dividend: Column, divisor: Column | int) -> Column:
    """Integer division of bigints, rounded towards zero."""
    return F.call_function("div", dividend, F.lit(divisor))


_LN_MILLION = 13.815510557964274  # 6 ln 10


def price(bits: Column) -> Column:
    """A price in cents, log-uniform on 100..100 000 000: round(100 * 10^(6u)) with u in [0, 1).

    u is made of the upper 53 bits. 10^(6u) is taken as exp(u * 6 ln 10), which Spark computes by
    StrictMath.exp: the same on every machine, and cheaper than pow.
    """
    uniform = F.shiftrightunsigned(bits, 11).cast("double")
    return (F.exp(uniform * (_LN_MILLION / 2**53)) * 100.0 + 0.5).cast("bigint")


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
