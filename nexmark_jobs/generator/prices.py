"""The law of prices."""

from __future__ import annotations

import math

from pyspark.sql import Column
from pyspark.sql import functions as F

_EXPONENT = 6 * math.log(10) / 2**53


def price(bits: Column) -> Column:
    """A price in cents, log-uniform on 100..100 000 000: round(100 * 10^(6u)) with u in [0, 1).

    u is the upper 53 bits. 10^(6u) is taken as exp(u * 6 ln 10), which Spark computes with
    StrictMath.exp: the same on every machine, and cheaper than pow.
    """
    uniform = F.shiftrightunsigned(bits, 11).cast("double")
    return (F.exp(uniform * _EXPONENT) * 100.0 + 0.5).cast("bigint")
