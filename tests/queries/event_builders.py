"""Events for tests: each states only the fields that matter to it, times in seconds after BASE."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

BASE = datetime(2015, 7, 15, tzinfo=UTC)

Event = tuple[str, dict[str, Any]]
"""Kind of entity and its fields; `dateTime` and `expires` are datetimes."""


def at(seconds: float) -> datetime:
    """The moment `seconds` after BASE, to the millisecond."""
    return BASE + timedelta(milliseconds=round(seconds * 1000))


def person(id: int = 1, time: float = 0, **fields: Any) -> Event:
    defaults = {
        "id": id,
        "name": f"person {id}",
        "emailAddress": "a@b.com",
        "creditCard": "1111 2222 3333 4444",
        "city": "Bend",
        "state": "OR",
        "dateTime": at(time),
        "extra": "",
    }
    return "person", defaults | fields


def auction(id: int = 1, time: float = 0, length: float = 10, **fields: Any) -> Event:
    defaults = {
        "id": id,
        "itemName": f"item {id}",
        "description": "",
        "initialBid": 1,
        "reserve": 2,
        "dateTime": at(time),
        "expires": at(time + length),
        "seller": 1,
        "category": 10,
        "extra": "",
    }
    return "auction", defaults | fields


def bid(auction: int = 1, time: float = 0, **fields: Any) -> Event:
    defaults = {
        "auction": auction,
        "bidder": 1,
        "price": 100,
        "channel": "Google",
        "url": "https://www.nexmark.com/abc/def/ghi/item.htm?query=1",
        "dateTime": at(time),
        "extra": "",
    }
    return "bid", defaults | fields
