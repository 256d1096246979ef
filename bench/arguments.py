"""Check the arguments of the benchmarks: a wrong one prints one line and ends with exit code 2."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import NoReturn

_SHOWN = 40


class Parser(argparse.ArgumentParser):
    """A parser that prints what is wrong in one line, and ends with exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print `message` and end."""
        self.exit(2, f"{self.prog}: {' '.join(message.split())}; see --help\n")


def given(text: str) -> str:
    """Return the value of an argument that may be left out, but not be empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; give a value, or leave it out for the default")
    if not text.isprintable():
        shown = repr(text[:_SHOWN])
        raise argparse.ArgumentTypeError(f"{shown} has a control character; write one line")
    return text


def whole(low: int, high: int) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number from `low` to `high`."""

    def number(text: str) -> int:
        wanted = f"a whole number from {low} to {high}"
        if not re.fullmatch(r"[+-]?[0-9]{1,30}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text[:_SHOWN]!r} is not {wanted}; correct it")
        return int(text)

    return number


port = whole(1, 65535)
"""The type of an argument that is a TCP port."""
