"""The bounds of the event generator. Standard library only: `include/conf` is checked with them."""

from __future__ import annotations

from collections.abc import Collection

DISORDER_PRIME = 953
"""Event i of an out-of-order group takes place i * 953 modulo the group's size."""

OWN_ARGUMENTS = ("seed", "tps")
"""Knobs with an argument, and in a workload a key, of their own."""

MAX_EVENTS = 2**53
"""An event number becomes a double on its way to a time; beyond this two numbers are the same."""

BASE_TIME_MS = 1_436_918_400_000
"""2015-07-15T00:00:00Z, the event time of event 0 unless a knob says otherwise."""

LATEST_MS = 64_060_588_800_000
"""4000-01-01T00:00:00Z; the sentinels lie in 9999."""

_MAX_TIME_MS = 4_102_444_800_000  # 2100-01-01T00:00:00Z
_MAX_INT = 2**31 - 1
_ANY = (1, _MAX_INT)

BOUNDS: dict[str, tuple[int, int]] = {
    "seed": (-(2**63), 2**63 - 1),
    "tps": (1, 10**9),
    "base_time_ms": (0, _MAX_TIME_MS),
    "person_proportion": (1, 1000),
    "auction_proportion": (1, 1000),
    "bid_proportion": (1, 1000),
    "first_event_number": (0, MAX_EVENTS),
    "first_event_id": (0, 2**53),
    "first_person_id": (0, 2**53),
    "first_auction_id": (0, 2**53),
    "first_category_id": (0, 2**53),
    "num_categories": _ANY,
    "bidder_id_offset": (0, 2**53),
    "person_id_lead": (0, 10**6),
    "auction_id_lead": (0, 10**6),
    "num_active_people": (1, 10**6),
    "num_in_flight_auctions": (1, 10**6),
    "hot_auction_ratio": _ANY,
    "hot_bidders_ratio": _ANY,
    "hot_sellers_ratio": _ANY,
    "hot_channels_ratio": _ANY,
    "hot_auction_block": _ANY,
    "hot_bidder_block": _ANY,
    "hot_seller_block": _ANY,
    "num_channels": (1, 10**9),
    "avg_person_byte_size": (0, 65_536),
    "avg_auction_byte_size": (0, 65_536),
    "avg_bid_byte_size": (0, 65_536),
    "out_of_order_group_size": _ANY,
}
"""Lowest and highest value of every knob of `generator.config.GeneratorConfig`."""


class KnobError(ValueError):
    """A value that the generator cannot work with.

    Attributes:
        name: the knob.
        problem: what is wrong with its value.
    """

    def __init__(self, name: str, problem: str) -> None:
        """Say what is wrong with the value of the knob `name`."""
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


def knobs() -> Collection[str]:
    """Return the knobs without an argument of their own, sorted."""
    return sorted(BOUNDS.keys() - set(OWN_ARGUMENTS))


def check_knob(name: str, value: object) -> None:
    """Raise KnobError for a value that is no integer or that the knob cannot have."""
    low, high = BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise KnobError(name, f"{value!r} is not an integer")
    if not low <= value <= high:
        raise KnobError(name, f"{value} is not within {low}..{high}")
    if name == "out_of_order_group_size" and value % DISORDER_PRIME == 0:
        problem = f"{value} is a multiple of {DISORDER_PRIME}, by which events are permuted"
        raise KnobError(name, problem)


def check_span(events: int, tps: int, base_time_ms: int, first_event_number: int) -> None:
    """Raise KnobError for more events than have numbers, or than fit before the year 4000."""
    last = first_event_number + events
    if last > MAX_EVENTS:
        raise KnobError(
            "events",
            f"{events} events are more than the generator can number, "
            f"{MAX_EVENTS - first_event_number}; lower the events",
        )
    if base_time_ms + last * 1000 // tps > LATEST_MS:
        raise KnobError(
            "events",
            f"{events} events at tps {tps} reach beyond the year 4000; "
            "lower the events or raise the tps",
        )
