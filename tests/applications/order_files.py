"""The input of the application `orders.py`: JSON files, one a batch."""

from __future__ import annotations

import json
import os
from pathlib import Path

_FIRST = 1_000_000_000


def write_orders(directory: Path, files: int = 8, rows: int = 500) -> Path:
    """Write files of `rows` orders each, 10 a second; return their directory.

    Spark reads the files in the order of their modification times.
    """
    directory.mkdir(parents=True)
    for number in range(files):
        path = directory / f"{number:03}.json"
        orders = range(number * rows, (number + 1) * rows)
        path.write_text("".join(json.dumps(_order(order)) + "\n" for order in orders))
        os.utime(path, (_FIRST + number, _FIRST + number))
    return directory


def _order(number: int) -> dict[str, object]:
    minute, second = divmod(number // 10, 60)
    at = f"2026-01-01T{minute // 60:02}:{minute % 60:02}:{second:02}.000Z"
    country = "abcdef"[number * 7 % 13 % 6]
    return {"id": number, "country": country, "amount": number * 37 % 100, "at": at}
