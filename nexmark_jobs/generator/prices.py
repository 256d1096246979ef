"""The law of prices."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_LN_MILLION = 13.815510557964274  # 6 ln 10


def price(bits: Column) -> Column:
    """A price in cents, log-uniform on 100..100 000 000: round(100 * 10^(6u)) with u in [0, 1).

    u is made of the upper 53 bits. 10^(6u) is taken as exp(u * 6 ln 10), which Spark computes by
    StrictMath.exp: the same on every machine, and cheaper than pow.
    """
    uniform = F.shiftrightunsigned(bits, 11).cast("double")
    return (F.exp(uniform * (_LN_MILLION / 2**53)) * 100.0 + 0.5).cast("bigint")
