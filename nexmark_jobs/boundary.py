"""Make events on the boundaries, which random events rarely reach and where wrong queries fail.

A generated price at the end of a window is the highest one once in a million nights, so a query
that counts that end as a part of its window is right on every generated input. The events here are
made by hand, a case for each boundary. Behind them come events on a coarse grid of time, price and
id, where ties and touching bounds are common. Every verification run reads them too.

They are always the same: no seed, no workload. Written to files, for the reference or for other
tools, in the Nexmark format of Kafka topics:

    python nexmark_jobs/boundary.py DIR
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2015, 7, 15)
HOUR = 3600.0
DAY = 24 * HOUR

FIRST_PART_ENDS = 60.0
"""Events that arrive from then on (seconds after START) are in the second part."""

_KINDS = ("person", "auction", "bid")
_URL = "https://www.nexmark.com/abc/def/ghi/item.htm?query=1"


@dataclass(frozen=True)
class Event:
    """An event and its arrival, in seconds after START; events are numbered in that order.

    An event may arrive up to 4 s after a later one: a watermark waits for it that long.
    """

    kind: str
    fields: dict[str, Any] = field(repr=False)
    arrives: float


def lines() -> list[list[str]]:
    """Return the numbered events as lines of JSON in two parts, each of them one micro-batch."""
    first: list[str] = []
    second: list[str] = []
    for number, event in enumerate(events()):
        line: dict[str, Any] = {"n": number, "event_type": _KINDS.index(event.kind)}
        line |= {kind: event.fields if kind == event.kind else None for kind in _KINDS}
        (first if event.arrives < FIRST_PART_ENDS else second).append(json.dumps(line))
    return [first, second]


def events() -> list[Event]:
    """Return all events in the order in which they arrive."""
    cases = (
        _windows,
        _late,
        _sessions,
        _validity,
        _ties,
        _sales,
        _sellers,
        _ranks,
        _hours,
        _identifiers,
        _texts,
        _urls,
        _grid,
    )
    return sorted((event for case in cases for event in case()), key=lambda event: event.arrives)


def write(directory: Path) -> None:
    """Write the events to `directory`, which must be there: a file for each part."""
    for number, part in enumerate(lines()):
        text = "".join(f"{line}\n" for line in part)
        (directory / f"events-{number:05d}.json").write_text(text, encoding="utf-8")


def _person(id: int, at: float, **fields: Any) -> Event:
    values = {
        "id": id,
        "name": f"Name {id}",
        "emailAddress": f"{id}@example.com",
        "creditCard": "0000 1111 2222 3333",
        "city": "Bend",
        "state": "OR",
        "dateTime": _text(at),
        "extra": f"person {id}",
    }
    return _event("person", at, values, **fields)


def _auction(id: int, at: float, expires: float, **fields: Any) -> Event:
    values = {
        "id": id,
        "itemName": f"item {id}",
        "description": f"description {id}",
        "initialBid": 11,
        "reserve": 22,
        "dateTime": _text(at),
        "expires": _text(expires),
        "seller": 1000,
        "category": 10,
        "extra": f"auction {id}",
    }
    return _event("auction", at, values, **fields)


def _bid(auction: int, at: float, price: int = 100, bidder: int = 1001, **fields: Any) -> Event:
    """Return a bid.

    Args:
        auction: The id of the auction.
        at: The time of the bid, in seconds since the first event.
        price: The price, in cents.
        bidder: The id of the bidder.
        fields: Other fields, or arguments of `_event`.
    """
    values = {
        "auction": auction,
        "bidder": bidder,
        "price": price,
        "channel": "Google",
        "url": _URL,
        "dateTime": _text(at),
        "extra": f"bid at {at}",
    }
    return _event("bid", at, values, **fields)


def _event(
    of: str, at: float, values: dict[str, Any], arrives: float | None = None, **fields: Any
) -> Event:
    """Return an event.

    Args:
        of: The kind: person, auction or bid.
        at: Its time, in seconds since the first event.
        values: Its fields.
        arrives: The time at which it arrives, if it is late; None if it arrives at `at`.
        fields: Values that replace those in `values`.
    """
    return Event(of, values | fields, at if arrives is None else arrives)


def _text(seconds: float) -> str:
    moment = START + timedelta(milliseconds=round(seconds * 1000))
    return moment.isoformat(sep=" ", timespec="milliseconds")


def _windows() -> Iterator[Event]:
    """Yield bids and sellers exactly on the bounds of windows, where they decide the result.

    Highest price (q7): of [0, 10) twice, and a higher one at its end; of [10, 20) twice, and again
    at its end and one millisecond after it; of [20, 30) at its first and its last instant.
    Most bids (q5): a pane's first and last instant decide between auctions 900 and 901, and tie.
    Persons (q8): who comes and sells in one window, at its first, its last and just past its last.
    """
    bids = (
        (0, 5_000),
        (9.999, 5_000),
        (10, 6_000),
        (15, 6_000),
        (15, 6_000),
        (20, 6_000),
        (20.001, 6_000),
        (20, 8_000),
        (29.999, 8_000),
        (30, 7_999),
    )
    for auction, (at, price) in enumerate(bids, start=910):
        yield _bid(auction, at, price)
    for bidder, at in enumerate((31.999, 32, 33.999, 34), start=920):
        yield _bid(900, at, bidder=bidder)
        yield _bid(901, at + 0.001, bidder=bidder)
    times = ((0, 9.999), (9.999, 0), (10, 19.999), (9.999, 10), (10, 9.999), (0, 10), (5, 25))
    for id, (came, sold) in enumerate(times, start=930):
        yield _person(id, came, state="WA")
        yield _auction(id, sold, sold + 1, seller=id, category=11)
    yield _auction(940, 9.5, 9.6, seller=930, category=12)  # a second one in the same window
    yield _person(931, 9.999, state="WA")  # comes twice in the same window
    yield _auction(941, 3, 4, seller=929, category=12)  # its seller never comes


def _late() -> Iterator[Event]:
    """Yield events of the second part that come as late as the watermark waits: 4.000 s.

    The windows that end at the watermark's very instant close. Events at that instant belong to the
    next windows.
    """
    yield _bid(950, 64, 20, bidder=951, arrives=59.9)
    yield _person(951, 64, state="WA", arrives=59.9)
    yield _auction(950, 64, 65, seller=951, category=13, arrives=59.9)
    yield _bid(950, 60, 30, bidder=952, arrives=60.0)
    yield _person(952, 60, state="WA", arrives=60.0)
    yield _auction(951, 60, 61, seller=952, category=13, arrives=60.0)
    yield _bid(950, 62, 20, bidder=951, arrives=60.1)


def _sessions() -> Iterator[Event]:
    """Yield bids with pauses of 10.000 s, which end no session, and of 10.001 s, which end one."""
    for at in (20, 30, 40.001, 50):
        yield _bid(960, at, bidder=960)
    yield _bid(960, 60, bidder=960)
    yield _bid(960, 70.001, bidder=960)
    yield _bid(960, 80, bidder=960, arrives=79)
    yield _bid(960, 75, bidder=960, arrives=80)
    for at in (35, 45, 45):
        yield _bid(960, at, bidder=961)


def _validity() -> Iterator[Event]:
    """Yield the highest bid exactly when an auction opens or ends, and higher bids 1 ms outside."""
    outside = ((4.999, 900), (15.001, 901))
    inside = {970: ((5, 300), (10, 200)), 971: ((10, 200), (15, 300)), 972: ()}
    for number, bids in inside.items():
        yield _auction(number, 5, 15, category=20 + number % 10, seller=number)
        for at, price in (*bids, *outside):
            yield _bid(number, at, price)
    yield _auction(973, 7, 7, category=23, seller=973)  # over when it opens
    yield _bid(973, 7, 400)
    yield _bid(973, 7.001, 500)
    yield _bid(974, 1, 700)  # before its auction arrives, and in time
    yield _auction(974, 1, 2, arrives=3, category=24, seller=974)
    yield _auction(975, 8, 18, category=20, seller=975)  # nobody bids on it
    yield _auction(976, 8, 18, category=20, seller=970)
    yield _bid(976, 9, 21)  # below its reserve; with 300 the mean of category 20 is 160.5


def _ties() -> Iterator[Event]:
    """Yield equal prices at different and at equal times; the tenth and the eleventh bid are equal.

    Auction 980: the first to arrive is later; then all equal but the number.
    Auction 981: twelve bids; numbers 10 to 12 have the same price.
    Bidder 985: the last bid by time arrives before an earlier one; then two of the same time.
    """
    yield _auction(980, 5, 30, seller=980, category=25)
    yield _bid(980, 7, 900, bidder=983, arrives=5.9)
    yield _bid(980, 6, 900, bidder=982, extra="first")
    yield _bid(980, 6, 900, bidder=981, extra="second")
    yield _bid(980, 6, 900, bidder=981, extra="third")
    yield _auction(981, 5, 30, seller=980, category=25)
    for place in range(9):
        yield _bid(981, 16 + place / 10, 500 - place, bidder=990 + place)
    for place in range(3):
        yield _bid(981, 17, 400, bidder=992 - place, channel=f"channel-{place}")
    yield _bid(982, 26, 12, bidder=985, arrives=24, url="https://www.nexmark.com/last/by/time/i")
    yield _bid(982, 25, 99, bidder=985, url="https://www.nexmark.com/last/by/number/i")
    yield _bid(983, 25, 99, bidder=985, channel="z", url="https://www.nexmark.com/z/z/z/i")
    yield _bid(983, 25, 12, bidder=985, channel="a", url="https://www.nexmark.com/a/a/a/i")


def _sales() -> Iterator[Event]:
    """Yield thirteen sold auctions of one seller (q6); only the last ten by time count.

    The tenth to the twelfth last, 1202 to 1200, are sold at the same time: only the id orders them.
    The highest id is sold first. Every price that does not count would change the mean.
    """
    not_of_the_last_nine = {1200: 900_000, 1201: 50_000, 1202: 2_000, 1212: 700_000}
    for id in range(1200, 1213):
        sold = {1212: 40.5}.get(id, 41 if id in not_of_the_last_nine else 42 + (id - 1200) / 10)
        price = not_of_the_last_nine.get(id, 1_001)
        yield _auction(id, 40, 50, seller=1200, category=26)
        yield _bid(id, sold, price)
        yield _bid(id, 49, price - 1)  # later and lower: not the price at which it is sold
    yield _bid(1201, 45, 50_000)  # as high and later: sold before
    for id, price in ((1220, 7), (1221, 10)):  # the mean is 8.5
        yield _auction(id, 40, 50, seller=1201, category=26)
        yield _bid(id, 43, price)


def _sellers() -> Iterator[Event]:
    """Yield sellers of every state and category, who come before, after or never; who bid, too."""
    for place, state in enumerate(("OR", "ID", "CA", "WA", "AZ", "or")):
        id = 1300 + place
        yield _person(id, 21, name=f"of {state}", city=f"City {place}", state=state)
        for category in (9, 10, 11):
            number = 1300 + 10 * place + category
            yield _auction(number, 20 + place, 60, seller=id, category=category)
            yield _bid(number, 19, 41, bidder=id)  # before the auction opens
            yield _bid(number, 51, 42, bidder=1305)
    yield _auction(1400, 22, 60, seller=1400)  # its seller comes in the next part
    yield _person(1400, 61, state="CA")
    yield _bid(1400, 62, 43, bidder=1400)
    yield _auction(1401, 22, 60, seller=1401)  # its seller never comes
    yield _bid(1401, 23, 44, bidder=1401)
    yield _person(1402, 24)  # sells nothing
    yield _bid(1400, 25, 45, bidder=1402)
    yield _bid(1400, 25, 45, bidder=1402)  # the same bid once more
    yield _bid(1499, 26, 46, bidder=1400)  # on an auction that never opens


def _ranks() -> Iterator[Event]:
    """Yield prices on the bounds of q14 to q17, and prices that a double cannot hold exactly."""
    prices = (0, 1, 9_999, 10_000, 10_001, 999_999, 1_000_000, 1_000_001)
    for place, price in enumerate((*prices, 1_101_321, 1_101_322, 55_066_079, 55_066_080)):
        yield _bid(1500, 300 + place, price, bidder=1500, channel="ranks")
        yield _bid(1501 + place, 320 + place, price, bidder=1501 + place, channel="ranks")
    for place, price in enumerate((2**31 - 1, 2**31, 2**53 + 1, 10**15 + 1)):
        yield _bid(1520, 340 + place, price, bidder=1520)
    yield _auction(1520, 330, 350, category=27, seller=1520)
    yield _auction(1521, 330, 350, category=28, seller=1521)
    yield _bid(1521, 341, 2**53 + 3)
    yield _bid(1522, 345, 7)  # with the next the mean is 8.5
    yield _bid(1522, 346, 10)


def _hours() -> Iterator[Event]:
    """Yield bids at the first and last instants of minutes, days, and the hours of q14."""
    for hour in (6, 7, 8, 12, 18, 19, 20, 23):
        for at in (hour * HOUR, hour * HOUR + 59.999, (hour + 1) * HOUR - 0.001):
            yield _bid(1600, at, 2_000_000, bidder=1600, channel="hours")
    for at, price in ((DAY, 77), (DAY + 0.001, 78), (DAY + 61, 20_000)):
        yield _bid(1600, at, price, bidder=1600, channel="hours")
        yield _bid(1601, at, price, bidder=1601, channel=f"days {price}")


def _identifiers() -> Iterator[Event]:
    """Yield ids on the bounds of 21 (q15, q16), 123 (q2), 10 000 (q13) and of an int."""
    words = (0, 1, 20, 21, 22, 41, 42, 62, 63, 64, 122, 123, 124, 246, 1230)
    tables = (9_999, 10_000, 10_001, 19_999, 20_000, 29_999, 2**31 - 1, 2**31, 2**40 + 9_999)
    for place, id in enumerate((*words, *tables)):
        yield _bid(id, 400 + place, 5_000 + place, bidder=id, channel="ids")
        yield _bid(id, 430 + place, 50_000 + place, bidder=1001, channel="ids")
        yield _bid(1000, 460 + place, 5_000_000 + place, bidder=id, channel="ids")
    yield _bid(246, 490, 77)
    yield _bid(246, 490, 77)  # the same once more


def _texts() -> Iterator[Event]:
    """Yield texts: empty, with blanks around, quotes, commas, and the letter of q14."""
    texts = ("", " ", " a b ", "c", "C", "cCcç", "ccc", "a,b", 'a "quoted" b', "back\\slash", "é漢")
    for place, text in enumerate(texts):
        yield _bid(1700, 500 + place, 2_000_000, bidder=1700 + place, extra=text)
    yield _person(1700, 500, name="", city="São Paulo", state="CA", extra="")
    yield _auction(1700, 500, 520, itemName="", description=' "x", y ', seller=1700, extra="")


def _urls() -> Iterator[Event]:
    """Yield channels with an id, an empty id or none, and paths with fewer and more parts."""
    channels = (
        ("apple", _URL),
        ("Apple", _URL),
        ("GOOGLE", _URL),
        ("facebook", f"{_URL}&channel_id=7"),
        ("Baidu", _URL),
        ("baidu2", _URL),
        ("", _URL),
        ("channel-1", f"{_URL}&channel_id=-21&x=1"),
        ("channel-1", f"{_URL}&channel_id="),
        ("channel-1", f"{_URL}&channel_id=&channel_id=2"),
        ("channel-1", "channel_id=5&channel_id=6"),
        ("channel-1", f"{_URL}&my_channel_id=6"),
        ("channel-1", f"{_URL}?channel_id=6"),
        ("channel-1", f"{_URL}&channel_id=a/b/c"),
    )
    paths = ("", "/", "//", "/a", "/a/b_", "/a/b/c", "/a//c/d/e")
    without_id = (("channel-2", f"https://www.nexmark.com{path}") for path in paths)
    for place, (channel, url) in enumerate((*channels, *without_id)):
        yield _bid(1800, 540 + place, bidder=1800, channel=channel, url=url)


def _grid() -> Iterator[Event]:
    """Yield a minute of events on whole seconds, with few ids and prices: ties of every kind."""
    draw = _draws()
    for place in range(6):
        yield _person(2000 + place, 100 + 4 * place, state=("OR", "WA")[place % 2])
    for place in range(24):
        opened = 100 + 2 * place
        lifetime = next(draw) % 6 * 2
        fields = {"seller": 2000 + next(draw) % 6, "category": 10 + next(draw) % 2}
        yield _auction(2000 + place, opened, opened + lifetime, **fields)
    for place in range(300):
        at = 100 + place // 5
        auction = 2000 + max(0, (at - 100) // 2 - next(draw) % 4)
        price = (100, 200, 300, 10_000)[next(draw) % 4]
        yield _bid(auction, at, price, bidder=2000 + next(draw) % 6, extra=f"{place}")


def _draws() -> Iterator[int]:
    """Yield the numbers of a linear congruential sequence without its low bits, on every Python."""
    state = 1
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield state >> 40


def main(arguments: list[str]) -> int:
    """Write the events to a new directory; return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("boundary.py: error: give a new directory, e.g. /tmp/boundary", file=sys.stderr)
        return 2
    directory = Path(arguments[0])
    try:
        directory.mkdir()
        write(directory)
    except OSError as error:
        print(f"boundary.py: error: {error}; give a new directory", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
