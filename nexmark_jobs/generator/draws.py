"""Draw random values: hashes of (seed, field, number), and what is made of them.

These are prices, the persons and auctions that an event may refer to, and texts. Texts are slices
of constant texts that are derived from the seed. A slice of a binary constant costs the same
wherever it starts; a slice of a string does not. The constants have every character in exact
proportion, in random order.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from nexmark_jobs.generator_config import GeneratorConfig

_MASK32 = 0xFFFF_FFFF
_Item = TypeVar("_Item", str, int)


def field_key(seed: int, field: str) -> int:
    """Return the signed 64-bit key of a field: SHA-256("nexmark/<seed>/<field>"), first 8 bytes."""
    digest = hashlib.sha256(f"nexmark/{seed}/{field}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def draw(seed: int, field: str, number: Column) -> Column:
    """Return 64 random bits (a bigint): xxHash64 (seed 42) of the number xor the field's key."""
    return F.xxhash64(number.bitwiseXOR(F.lit(field_key(seed, field)).cast("bigint")))


def high(bits: Column) -> Column:
    """Return the upper 32 bits as a number in [0, 2^32)."""
    return F.shiftrightunsigned(bits, 32)


def low(bits: Column) -> Column:
    """Return the lower 32 bits as a number in [0, 2^32)."""
    return bits.bitwiseAND(F.lit(_MASK32))


def below(bits32: Column, bound: Column | int) -> Column:
    """Return a number in [0, bound), bound below 2^31, from 32 random bits: bits * bound / 2^32."""
    return F.shiftright(bits32 * bound, 32)


def div(dividend: Column, divisor: Column | int) -> Column:
    """Divide bigints; the quotient is rounded towards zero."""
    return F.call_function("div", dividend, F.lit(divisor))


_LN_MILLION = 13.815510557964274  # 6 ln 10


def price(bits: Column) -> Column:
    """Return a price in cents, log-uniform on 100..100 000 000.

    The price is round(100 * 10^(6u)), with u in [0, 1) from the upper 53 bits. 10^(6u) is taken as
    exp(u * 6 ln 10), which Spark computes by StrictMath.exp: the same on every machine, and
    cheaper than pow.
    """
    uniform = F.shiftrightunsigned(bits, 11).cast("double")
    return (F.exp(uniform * (_LN_MILLION / 2**53)) * 100.0 + 0.5).cast("bigint")


def newest(cycle: Column, proportion: int) -> Column:
    """Return the newest person or auction, counted from 0, before a later kind in `cycle`."""
    return cycle * proportion + (proportion - 1)


def hot_or_active_person(
    bits: Column, newest: Column, ratio: int, hot: Column, config: GeneratorConfig
) -> Column:
    """Return the person `hot` with probability 1 - 1/ratio, else an active or a coming person.

    Args:
        bits: 64 random bits.
        newest: the newest person.
        ratio: r, where 1 - 1/r of the draws are `hot`.
        hot: the hot person.
        config: how many persons are active, and how far ahead of the newest one a draw may be.
    """
    people = newest + 1
    active = F.least(people, F.lit(config.num_active_people))
    any_person = people - active + below(low(bits), active + config.person_id_lead)
    return F.when(below(high(bits), ratio) > 0, hot).otherwise(any_person)


def hot_or_in_flight_auction(bits: Column, newest: Column, config: GeneratorConfig) -> Column:
    """Return the hot auction with probability 1 - 1/ratio, else one in flight or a coming one."""
    block = config.hot_auction_block
    oldest = F.greatest(newest - config.num_in_flight_auctions, F.lit(0))
    any_auction = oldest + below(low(bits), newest - oldest + (1 + config.auction_id_lead))
    hot = div(newest, block) * block
    return F.when(below(high(bits), config.hot_auction_ratio) > 0, hot).otherwise(any_auction)


MIN_STRING_LENGTH = 3

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TEXT_COPIES = 6  # of each of 13 * 26 symbols: 26 times a blank, 12 times each letter
_FILLER_COPIES = 7  # of 26 blocks of each sign
_FILLER_BLOCK = 6  # characters taken from one integer by the reference, hence of one sign
FILLER_SIZE = 2 * len(_LETTERS) * _FILLER_BLOCK * _FILLER_COPIES


class ConstantStream:
    """Random integers for constants: SHAKE-256 of "nexmark/<seed>/<name>" in big-endian words."""

    def __init__(self, seed: int, name: str, words: int) -> None:
        """Make `words` words of 32 bits ready."""
        key = f"nexmark/{seed}/{name}".encode()
        digest = hashlib.shake_256(key).digest(4 * words)
        self._words = (int.from_bytes(digest[i : i + 4], "big") for i in range(0, 4 * words, 4))

    def below(self, bound: int) -> int:
        """Return the next integer in [0, bound)."""
        return (next(self._words) * bound) >> 32

    def shuffle(self, items: list[_Item]) -> list[_Item]:
        """Return a copy in random order (Fisher-Yates from the end)."""
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items


def text_constant(seed: int) -> str:
    """Return 13 * 26 * `_TEXT_COPIES` characters: 1/13 blanks, the rest a..z in equal numbers."""
    symbols = list(" " * len(_LETTERS) + _LETTERS * 12) * _TEXT_COPIES
    return "".join(ConstantStream(seed, "text ", len(symbols)).shuffle(symbols))


def filler_constant(seed: int) -> str:
    """Return FILLER_SIZE characters from 'H' to 'z', in blocks of six.

    The characters of a block are all 'a' + d or all 'a' - d, with d in 0..25.
    """
    half = FILLER_SIZE // 2
    stream = ConstantStream(seed, "filler", 2 * FILLER_SIZE)
    digits = list(range(26)) * (half // 26)
    source = {sign: iter(stream.shuffle(digits)) for sign in (1, -1)}
    signs = stream.shuffle([1, -1] * (half // _FILLER_BLOCK))
    signs_of_all = (sign for sign in signs for _ in range(_FILLER_BLOCK))
    return "".join(chr(ord("a") + sign * next(source[sign])) for sign in signs_of_all)


def _slice(constant: str, start: Column, length: Column, longest: int) -> Column:
    """Return a slice of the endless repetition of a text.

    Args:
        constant: the text.
        start: where the slice begins, less than the length of the text.
        length: length of the slice.
        longest: the greatest value of `length`.
    """
    repeated = constant * (1 + -(-longest // len(constant)))
    ring = F.lit(repeated[: len(constant) + longest]).cast("binary")
    return ring.substr((start + 1).cast("int"), length.cast("int")).cast("string")


def random_string(bits: Column, constant: str, max_length: int) -> Column:
    """Return a string as nexmark-flink does: a length in [3, max_length) of `constant`, trimmed.

    The upper 32 bits draw the length, the lower the start.
    """
    span = max_length - MIN_STRING_LENGTH
    length = below(high(bits), span) + MIN_STRING_LENGTH
    return F.trim(_slice(constant, below(low(bits), len(constant)), length, max_length))


def filler(bits: Column, seed: int, current_size: Column | int, target_size: int) -> Column:
    """Return a text that fills an event up to about `target_size` bytes.

    Args:
        bits: 64 random bits.
        seed: the seed of the generator.
        current_size: bytes of the event's other fields.
        target_size: bytes of the event; the text is up to 20 % shorter or longer than what is left.
    """
    constant = filler_constant(seed)
    rest = F.greatest(F.lit(target_size) - current_size, F.lit(0)).cast("bigint")
    delta = (rest.cast("double") * 0.2 + 0.5).cast("bigint")
    length = rest - delta + below(high(bits), delta * 2)
    longest = target_size + target_size // 5 + 1
    return _slice(constant, below(low(bits), len(constant)), length, longest)


def one_of(items: Sequence[str], index: Column) -> Column:
    """Return the item at `index` (counted from 0) of items without commas.

    Written as a split text, because a plan with one literal is quicker to optimize, in every
    micro-batch, than one with a literal per item. By `get`, because the result of `[]` cannot be
    null from Spark 4.0 on: 3.5 refuses a checkpoint of 4.0 with it (StateSchemaNotCompatible).
    """
    return F.get(F.split(F.lit(",".join(items)), ","), index.cast("int"))
