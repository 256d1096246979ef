"""The event generator again: plain Python, event by event, nothing shared with the first.

Written from the description in the modules' docstrings and from the published facts, as slowly and
plainly as possible. Slow (some thousands of events a second), but what it says is right.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

Row = dict[str, Any]

MASK = 2**64 - 1
SENTINEL_MS = 253_370_764_800_000  # 9999-01-01T00:00:00Z
ALPHABET = "abcdefghijklmnopqrstuvwxyz"
FIRST = "Peter/Paul/Luke/John/Saul/Vicky/Kate/Julie/Sarah/Deiter/Walter"
LAST = "Shultz/Abrams/Spencer/White/Bartels/Walton/Smith/Jones/Noris"
CITY = "Phoenix/Los Angeles/San Francisco/Boise/Portland/Bend/Redmond/Seattle/Kent/Cheyenne"
STATE = "AZ/CA/ID/OR/WA/WY"


@dataclass
class GeneratorOptions:
    """The generator's options and their defaults, as published."""

    seed: int = 1
    tps: int = 10_000
    base_time_ms: int = 1436918400000
    person_proportion: int = 1
    auction_proportion: int = 3
    bid_proportion: int = 46
    first_event_number: int = 0
    first_event_id: int = 0
    first_person_id: int = 1000
    first_auction_id: int = 1000
    first_category_id: int = 10
    num_categories: int = 5
    bidder_id_offset: int = 1000
    person_id_lead: int = 10
    auction_id_lead: int = 10
    num_active_people: int = 1000
    num_in_flight_auctions: int = 100
    hot_auction_ratio: int = 2
    hot_bidders_ratio: int = 4
    hot_sellers_ratio: int = 4
    hot_channels_ratio: int = 2
    hot_auction_block: int = 100
    hot_bidder_block: int = 100
    hot_seller_block: int = 100
    num_channels: int = 10_000
    avg_person_byte_size: int = 200
    avg_auction_byte_size: int = 500
    avg_bid_byte_size: int = 100
    out_of_order_group_size: int = 1


# ---- random numbers -----------------------------------------------------------------------------


def xxhash64_of_long(value: int, seed: int) -> int:
    """XXH64 of the 8 bytes of a little-endian integer."""
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def rotate(x: int, by: int) -> int:
        return ((x << by) | (x >> (64 - by))) & MASK

    acc = (seed + p5 + 8) & MASK
    acc ^= (rotate((value & MASK) * p2 & MASK, 31) * p1) & MASK
    acc = (rotate(acc, 27) * p1 + p4) & MASK
    acc = (acc ^ (acc >> 33)) * p2 & MASK
    acc = (acc ^ (acc >> 29)) * p3 & MASK
    return acc ^ (acc >> 32)


@cache
def key(seed: int, field: str) -> int:
    return int(hashlib.sha256(f"nexmark/{seed}/{field}".encode()).hexdigest()[:16], 16)


def bits(seed: int, field: str, n: int) -> int:
    return xxhash64_of_long(n ^ key(seed, field), 42)


def upper(value: int, bound: int) -> int:
    """In [0, bound), from the upper half of 64 bits."""
    return (value >> 32) * bound >> 32


def lower(value: int, bound: int) -> int:
    """In [0, bound), from the lower half of 64 bits."""
    return (value % 2**32) * bound >> 32


def pick(items: str, value: int) -> str:
    """One of the items, by the upper half of 64 bits."""
    choices = items.split("/")
    return choices[upper(value, len(choices))]


def fdlibm_exp(x: float) -> float:
    """exp of fdlibm 5.3 for 0 <= x < 700, which is what java.lang.StrictMath.exp is."""
    ln2_high, ln2_low = 6.93147180369123816490e-01, 1.90821492927058770002e-10
    p = (
        1.66666666666666019037e-01,
        -2.77777777770155933842e-03,
        6.61375632143793436117e-05,
        -1.65339022054652515390e-06,
        4.13813679705723846039e-08,
    )
    high = low = 0.0
    k = 0
    if x < 2.0**-28:
        return 1.0 + x
    if x > 0.5 * math.log(2):
        k = 1 if x < 1.5 * math.log(2) else int(1.44269504088896338700 * x + 0.5)
        high, low = x - k * ln2_high, k * ln2_low
        x = high - low
    t = x * x
    c = x - t * (p[0] + t * (p[1] + t * (p[2] + t * (p[3] + t * p[4]))))
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    return math.ldexp(1.0 - ((low - (x * c) / (2.0 - c)) - high), k)


def price(value: int) -> int:
    u = (value >> 11) * (13.815510557964274 / 2**53)
    return int(fdlibm_exp(u) * 100.0 + 0.5)


# ---- text ---------------------------------------------------------------------------------------


def words(seed: int, name: str, count: int) -> list[int]:
    raw = hashlib.shake_256(f"nexmark/{seed}/{name}".encode()).digest(4 * count)
    return [int.from_bytes(raw[4 * i : 4 * i + 4], "big") for i in range(count)]


def shuffled(items: list[Any], source: list[int]) -> list[Any]:
    """Fisher-Yates from the last item down, taking its numbers from the front of `source`."""
    result = items[:]
    for last in reversed(range(1, len(result))):
        other = source.pop(0) * (last + 1) >> 32
        result[last], result[other] = result[other], result[last]
    return result


@cache
def text(seed: int, special: str) -> str:
    """2028 characters, every 13th of them special in the mean, all letters equally often."""
    unit = special * 26 + ALPHABET * 12
    return "".join(shuffled(list(unit * 6), words(seed, "text" + special, 2028)))


@cache
def filler_text(seed: int) -> str:
    """2184 characters in blocks of six, above and below 'a' alike."""
    source = words(seed, "filler", 2 * 2184)
    above = shuffled(list(range(26)) * 42, source)
    below = shuffled(list(range(26)) * 42, source)
    result = ""
    for sign in shuffled([1, -1] * 182, source):
        pool = above if sign > 0 else below
        for _ in range(6):
            result += chr(97 + sign * pool.pop(0))
    return result


def cut(ring: str, start: int, length: int) -> str:
    return "".join(ring[(start + i) % len(ring)] for i in range(length))


def random_string(value: int, ring: str, limit: int) -> str:
    return cut(ring, lower(value, len(ring)), 3 + upper(value, limit - 3)).strip(" ")


def filler(value: int, seed: int, size: int, target: int) -> str:
    if size > target:
        return ""
    room = target - size
    slack = math.floor(0.2 * room + 0.5)
    length = room - slack + (upper(value, 2 * slack) if slack else 0)
    ring = filler_text(seed)
    return cut(ring, lower(value, len(ring)), length)


def segment(source: list[int]) -> str:
    """A directory name; takes five numbers whatever its length."""
    length = 3 + (source.pop(0) * 2 >> 32)
    name = ""
    for _ in range(4):
        symbol = source.pop(0) * 338 >> 32
        name += "_" if symbol < 26 else ALPHABET[(symbol - 26) // 12]
    return name[:length]


@cache
def segments(seed: int) -> list[str]:
    source = words(seed, "segments", 5 * 256)
    return [segment(source) for _ in range(256)]


@cache
def hot_channels(seed: int) -> list[tuple[str, str]]:
    source = words(seed, "hot urls", 5 * 12)
    result = []
    for name in ("Google", "Facebook", "Baidu", "Apple"):
        path = "/".join([segment(source), segment(source), segment(source)])
        result.append((name, f"https://www.nexmark.com/{path}/item.htm?query=1"))
    return result


def channel_and_url(number: int, seed: int) -> tuple[str, str]:
    value = bits(seed, "url", number)
    table = segments(seed)
    path = "/".join(table[(value >> shift) % 256] for shift in (32, 42, 52))
    url = f"https://www.nexmark.com/{path}/item.htm?query=1"
    if lower(value, 10) < 9:
        reverse = int(f"{number:032b}"[::-1], 2)
        url += f"&channel_id={reverse if reverse <= 2**31 else 2**32 - reverse}"
    return f"channel-{number}", url


# ---- events -------------------------------------------------------------------------------------


class PlainGenerator:
    """Events by number; `end` is the number of the first sentinel."""

    def __init__(self, end: int | None = None, **options: int) -> None:
        self.options = GeneratorOptions(**options)
        self.end = end
        k = self.options
        self.cycle = k.person_proportion + k.auction_proportion + k.bid_proportion

    def event(self, n: int) -> tuple[str, Row] | None:
        """Kind and fields of event n; None after the last sentinel."""
        k = self.options
        sentinel = self.end is not None and n >= self.end
        if sentinel and n >= self.end + self.cycle:
            return None
        place = n + k.first_event_number
        if not sentinel:
            group = k.out_of_order_group_size
            place = place // group * group + place * 953 % group
        event_id = place + k.first_event_id
        time = SENTINEL_MS if sentinel else self.time(place)
        rest = event_id % self.cycle
        if rest < k.person_proportion:
            return "person", self.person(n, event_id, time)
        if rest < k.person_proportion + k.auction_proportion:
            return "auction", self.auction(n, event_id, place, time)
        return "bid", self.bid(n, event_id, time)

    def rows(self, kind: str, numbers: range) -> list[Row]:
        """The events of one kind among `numbers`."""
        events = (self.event(n) for n in numbers)
        return [event[1] for event in events if event is not None and event[0] == kind]

    def time(self, place: int) -> int:
        micros = int(place * (1e6 / self.options.tps))
        return self.options.base_time_ms + micros // 1000

    def last_person(self, event_id: int) -> int:
        epoch, rest = divmod(event_id, self.cycle)
        share = self.options.person_proportion
        return epoch * share + min(rest, share - 1)

    def last_auction(self, event_id: int) -> int:
        epoch, rest = divmod(event_id, self.cycle)
        persons, share = self.options.person_proportion, self.options.auction_proportion
        if rest < persons:
            return epoch * share - 1
        return epoch * share + min(rest - persons, share - 1)

    def some_person(self, value: int, event_id: int, ratio: int, block: int, plus: int) -> int:
        newest = self.last_person(event_id)
        if upper(value, ratio) > 0:
            return newest // block * block + plus
        people = newest + 1
        active = min(people, self.options.num_active_people)
        return people - active + lower(value, active + self.options.person_id_lead)

    def some_auction(self, value: int, event_id: int) -> int:
        k = self.options
        newest = self.last_auction(event_id)
        if upper(value, k.hot_auction_ratio) > 0:
            return newest // k.hot_auction_block * k.hot_auction_block
        oldest = max(newest - k.num_in_flight_auctions, 0)
        return oldest + lower(value, newest - oldest + 1 + k.auction_id_lead)

    def person(self, n: int, event_id: int, time: int) -> Row:
        k = self.options
        ring = text(k.seed, " ")
        names = bits(k.seed, "person.name", n)
        user = random_string(bits(k.seed, "person.email.user", n), ring, 7)
        host = random_string(bits(k.seed, "person.email.host", n), ring, 5)
        digits = f"{(bits(k.seed, 'person.creditCard', n) >> 1) % 10**16:016d}"
        row = {
            "n": n,
            "id": self.last_person(event_id) + k.first_person_id,
            "name": f"{pick(FIRST, names)} {LAST.split('/')[lower(names, 9)]}",
            "emailAddress": f"{user}@{host}.com",
            "creditCard": " ".join(digits[i : i + 4] for i in range(0, 16, 4)),
            "city": pick(CITY, bits(k.seed, "person.city", n)),
            "state": pick(STATE, bits(k.seed, "person.state", n)),
        }
        size = 8 + sum(len(value) for value in row.values() if isinstance(value, str))
        value = bits(k.seed, "person.extra", n)
        extra = filler(value, k.seed, size, k.avg_person_byte_size)
        return row | {"dateTime": time, "extra": extra}

    def auction(self, n: int, event_id: int, place: int, time: int) -> Row:
        k = self.options
        ring = text(k.seed, " ")
        item = random_string(bits(k.seed, "auction.itemName", n), ring, 20)
        description = random_string(bits(k.seed, "auction.description", n), ring, 100)
        initial = price(bits(k.seed, "auction.initialBid", n))
        horizon = self.time(place + k.num_in_flight_auctions * self.cycle // k.auction_proportion)
        horizon -= self.time(place)
        life = 1 + (bits(k.seed, "auction.expires", n) >> 1) % max(2 * horizon, 1)
        seller_bits = bits(k.seed, "auction.seller", n)
        seller = self.some_person(seller_bits, event_id, k.hot_sellers_ratio, k.hot_seller_block, 0)
        size = 8 + len(item) + len(description) + 40
        value = bits(k.seed, "auction.extra", n)
        return {
            "n": n,
            "id": self.last_auction(event_id) + k.first_auction_id,
            "itemName": item,
            "description": description,
            "initialBid": initial,
            "reserve": initial + price(bits(k.seed, "auction.reserve", n)),
            "dateTime": time,
            "expires": time + life,
            "seller": seller + k.first_person_id,
            "category": k.first_category_id
            + upper(bits(k.seed, "auction.category", n), k.num_categories),
            "extra": filler(value, k.seed, size, k.avg_auction_byte_size),
        }

    def bid(self, n: int, event_id: int, time: int) -> Row:
        k = self.options
        auction = self.some_auction(bits(k.seed, "bid.auction", n), event_id)
        bidder_bits = bits(k.seed, "bid.bidder", n)
        bidder = self.some_person(bidder_bits, event_id, k.hot_bidders_ratio, k.hot_bidder_block, 1)
        value = bits(k.seed, "bid.channel", n)
        if upper(value, k.hot_channels_ratio) > 0:
            channel, url = hot_channels(k.seed)[lower(value, 4)]
        else:
            channel, url = channel_and_url(lower(value, k.num_channels), k.seed)
        return {
            "n": n,
            "auction": auction + k.first_auction_id,
            "bidder": bidder + k.bidder_id_offset,
            "price": price(bits(k.seed, "bid.price", n)),
            "channel": channel,
            "url": url,
            "dateTime": time,
            "extra": filler(bits(k.seed, "bid.extra", n), k.seed, 32, k.avg_bid_byte_size),
        }
