"""Tells the time of a host: {} -> {wall: seconds since the epoch}."""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def main(request: dict[str, Any]) -> dict[str, Any]:
    """The wall clock now."""
    return {"wall": time.time()}


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
