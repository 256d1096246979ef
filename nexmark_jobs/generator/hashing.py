"""Draws: counter-based hashes of (seed, field, number), and integer arithmetic on them."""

from __future__ import annotations

import hashlib

from pyspark.sql import Column
from pyspark.sql import functions as F

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
