"""Tells the time of a host: {} -> {wall: seconds since the epoch}."""

from __future__ import annotations

import time
from typing import Any


def main(request: dict[str, Any]) -> dict[str, Any]:
    """The wall clock now."""
    return {"wall": time.time()}
