"""Random text: slices of constant texts that are derived from the seed.

A slice of a binary constant costs the same wherever it starts, which a slice of a string does not.
The constants hold every character in exact proportion, in random order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from nexmark_jobs.generator.draws import below, high, low

MIN_STRING_LENGTH = 3

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TEXT_COPIES = 6  # of each of 13 * 26 symbols: 26 times the special one, 12 times each letter
_FILLER_COPIES = 7  # of 26 blocks of each sign
_FILLER_BLOCK = 6  # characters taken from one integer by the reference, hence of one sign
TEXT_SIZE = 13 * len(_LETTERS) * _TEXT_COPIES
FILLER_SIZE = 2 * len(_LETTERS) * _FILLER_BLOCK * _FILLER_COPIES


class ConstantStream:
    """Random integers for constants: SHAKE-256 of "nexmark/<seed>/<name>" in big-endian words."""

    def __init__(self, seed: int, name: str, words: int) -> None:
        """Make `words` words of 32 bits ready."""
        key = f"nexmark/{seed}/{name}".encode()
        digest = hashlib.shake_256(key).digest(4 * words)
        self._words = (int.from_bytes(digest[i : i + 4], "big") for i in range(0, 4 * words, 4))

    def below(self, bound: int) -> int:
        """The next integer in [0, bound)."""
        return (next(self._words) * bound) >> 32

    def shuffle(self, items: list[str]) -> list[str]:
        """A copy in random order (Fisher-Yates from the end)."""
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
        return items


def text_constant(seed: int, special: str) -> str:
    """TEXT_SIZE characters: 1/13 `special`, the rest a..z in equal numbers."""
    symbols = list(special * len(_LETTERS) + _LETTERS * 12) * _TEXT_COPIES
    return "".join(ConstantStream(seed, f"text{special}", len(symbols)).shuffle(symbols))


def filler_constant(seed: int) -> str:
    """FILLER_SIZE characters 'H'..'z', in blocks of six all 'a' + d or all 'a' - d, d in 0..25."""
    half = FILLER_SIZE // 2
    stream = ConstantStream(seed, "filler", 2 * FILLER_SIZE)
    digits = [chr(d) for d in range(26)] * (half // 26)
    up, down = stream.shuffle(digits), stream.shuffle(digits)
    signs = stream.shuffle(list("+-") * (half // _FILLER_BLOCK))
    source = {"+": iter(up), "-": iter(down)}
    return "".join(
        chr(ord("a") + (ord(next(source[sign])) if sign == "+" else -ord(next(source[sign]))))
        for sign in signs
        for _ in range(_FILLER_BLOCK)
    )


def _slice(constant: str, start: Column, length: Column, longest: int) -> Column:
    """`length` characters of the endless repetition of `constant` from `start` < its size."""
    repeated = constant * (1 + -(-longest // len(constant)))
    ring = F.lit(repeated[: len(constant) + longest]).cast("binary")
    return ring.substr((start + 1).cast("int"), length.cast("int")).cast("string")


def random_string(bits: Column, constant: str, max_length: int) -> Column:
    """The reference's string: a length in [3, max_length) of `constant`, then trimmed.

    The upper 32 bits draw the length, the lower the start.
    """
    span = max_length - MIN_STRING_LENGTH
    length = below(high(bits), span) + MIN_STRING_LENGTH
    return F.trim(_slice(constant, below(low(bits), len(constant)), length, max_length))


def filler(bits: Column, constant: str, current_size: Column | int, target_size: int) -> Column:
    """Text that fills an event of `current_size` bytes up to `target_size`, give or take 20 %."""
    rest = F.greatest(F.lit(target_size) - current_size, F.lit(0)).cast("bigint")
    delta = (rest.cast("double") * 0.2 + 0.5).cast("bigint")
    length = rest - delta + below(high(bits), delta * 2)
    longest = target_size + target_size // 5 + 1
    return _slice(constant, below(low(bits), len(constant)), length, longest)


def one_of(items: Sequence[str], index: Column) -> Column:
    """The item at `index` (counted from 0) of items without commas.

    Written as a split text, because a plan with one literal is quicker to optimize, in every
    micro-batch, than one with a literal per item.
    """
    return F.split(F.lit(",".join(items)), ",")[index.cast("int")]
