"""Do the names of nights tell another order than their file has? It is said, and changes nothing.

A date in a name may be year-month-day, day.month.year or month/day/year, with a time of day behind
it. Names without dates that differ in their numbers only (run-9, run-10) tell an order, too.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import Any

_YEAR, _SHORT = "(?P<year>[0-9]{4})", "(?P<year>[0-9]{2})"
_MONTH, _DAY = "(?P<month>[0-9]{1,2})", "(?P<day>[0-9]{1,2})"
_TIME = "(?:[T _]+(?P<hour>[0-9]{1,2})[:.]?(?P<minute>[0-9]{2})(?:[:.]?(?P<second>[0-9]{2}))?)?"
_ORDERS = (
    f"(?<![0-9]){_YEAR}(?P<by>[-./_]){_MONTH}(?P=by){_DAY}(?![0-9]){_TIME}",
    f"(?<![0-9]){_YEAR}(?P<month>[0-9]{{2}})(?P<day>[0-9]{{2}})(?![0-9]){_TIME}",
    f"(?<![0-9]){_DAY}(?P<by>[-./_]){_MONTH}(?P=by){_YEAR}(?![0-9]){_TIME}",
    f"(?<![0-9]){_MONTH}(?P<by>[-/_]){_DAY}(?P=by){_YEAR}(?![0-9]){_TIME}",
    # A year of two digits could be any number: the date is all of the name.
    f"^{_SHORT}-{_MONTH}-{_DAY}{_TIME}$",
    f"^{_DAY}(?P<by>[-./]){_MONTH}(?P=by){_SHORT}{_TIME}$",
    f"^{_MONTH}(?P<by>[-/]){_DAY}(?P=by){_SHORT}{_TIME}$",
)


def other_order(names: Sequence[str]) -> tuple[str, str] | None:
    """Return two successive names that their dates or numbers put the other way round, if any.

    A date that can be read in two ways (3/4/2026) may be in order in either of them.
    """
    readings: list[Callable[[str], Any]] = [
        partial(_moment, re.compile(order)) for order in _ORDERS
    ]
    dated = [name for name in names if any(read(name) for read in readings)]
    whole = [read for read in readings if all(map(read, dated))]
    if len(dated) > 1 and whole:
        turned = [_turned(dated, read) for read in whole]
        return None if None in turned else turned[0]
    if len({re.sub("[0-9]+", "#", name) for name in names}) == 1:
        return _turned(names, _numbers)
    return None


def _turned(names: Sequence[str], key: Callable[[str], Any]) -> tuple[str, str] | None:
    return next(((one, two) for one, two in pairwise(names) if key(two) < key(one)), None)


def _moment(order: re.Pattern[str], name: str) -> datetime | None:
    """Return the moment in a name, by a date of this order; None without one."""
    if (match := order.search(name)) is None:
        return None
    parts = {part: int(text or 0) for part, text in match.groupdict().items() if part != "by"}
    century = 2000 if parts["year"] < 100 else 0
    try:
        return datetime(**{**parts, "year": century + parts["year"]})  # type: ignore[arg-type]
    except ValueError:
        return None


def _numbers(name: str) -> list[tuple[int, str]]:
    """Return the numbers of a name, as what compares as they do however long they are."""
    digits = (text.lstrip("0") for text in re.findall("[0-9]+", name))
    return [(len(text), text) for text in digits]
