"""The options of the event generator with their bounds, which are checked in one place.

This module imports the standard library only: Airflow's side checks `include/conf` with it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, get_type_hints

DISORDER_PRIME = 953
"""Event i of an out-of-order group takes place i * 953 modulo the group's size."""
OPTIONS_WITH_ARGUMENT = ("seed", "tps")
"""Options that have an argument of their own, and in a workload a key of their own."""
MAX_EVENTS = 2**53
"""An event number becomes a double on its way to a time; beyond this two numbers are the same."""
BASE_TIME_MS = 1_436_918_400_000
"""2015-07-15T00:00:00Z, the event time of event 0 unless `base_time_ms` says otherwise."""
LATEST_MS = 64_060_588_800_000
"""4000-01-01T00:00:00Z; the sentinels lie in 9999."""

_Moment = Annotated[int, 0, 4_102_444_800_000]  # until 2100-01-01T00:00:00Z
_Positive = Annotated[int, 1, 2**31 - 1]
_Share = Annotated[int, 1, 1000]
_Number = Annotated[int, 0, 2**53]
_Lead = Annotated[int, 0, 10**6]
_Newest = Annotated[int, 1, 10**6]
_Bytes = Annotated[int, 0, 65_536]


class GeneratorOptionError(ValueError):
    """A value that the generator cannot work with: the option's `name`, and the `problem`."""

    def __init__(self, name: str, problem: str) -> None:
        """Make the error from the name of the option and the problem of its value."""
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


@dataclass(frozen=True)
class GeneratorConfig:
    """All that an event depends on besides its number; the defaults match nexmark-flink.

    Raises GeneratorOptionError for a value out of range.
    """

    seed: Annotated[int, -(2**63), 2**63 - 1] = 1  # key of every draw
    tps: Annotated[int, 1, 10**9] = 10_000  # events per second of event time: spaces events only
    base_time_ms: _Moment = BASE_TIME_MS  # event time of event 0, ms since 1970 (UTC)
    person_proportion: _Share = 1  # persons among `total_proportion` consecutive events
    auction_proportion: _Share = 3
    bid_proportion: _Share = 46
    first_event_number: _Number = 0  # place of event 0 on the timeline (nexmark-flink has 1)
    # Added to the place on the timeline to give the event id, which fixes kind and entity ids
    # (nexmark-flink has 1, so that its first event has id 2).
    first_event_id: _Number = 0
    first_person_id: _Number = 1000
    first_auction_id: _Number = 1000
    first_category_id: _Number = 10
    num_categories: _Positive = 5
    # Added to the drawn person to give the bidder. Equal to first_person_id unless the doubled
    # offset of nexmark-flink (2000) is wanted.
    bidder_id_offset: _Number = 1000
    person_id_lead: _Lead = 10  # how far ahead of the newest person a reference may point
    auction_id_lead: _Lead = 10
    num_active_people: _Newest = 1000  # how many of the newest persons sell and bid
    num_in_flight_auctions: _Newest = 100  # how many of the newest auctions receive bids
    hot_auction_ratio: _Positive = 2  # r, where 1 - 1/r of the bids go to the hot auction
    hot_bidders_ratio: _Positive = 4  # the same of the bids, which come from the hot bidder
    hot_sellers_ratio: _Positive = 4  # the same of the auctions, which come from the hot seller
    hot_channels_ratio: _Positive = 2  # the same of the bids, which come over four hot channels
    hot_auction_block: _Positive = 100  # size of a block of auctions; one of each block is hot
    hot_bidder_block: _Positive = 100  # the same of persons, of whom one is a hot bidder
    hot_seller_block: _Positive = 100  # the same of persons, of whom one is a hot seller
    num_channels: Annotated[int, 1, 10**9] = 10_000  # besides the hot ones
    avg_person_byte_size: _Bytes = 200  # size to which a person's `extra` fills it
    avg_auction_byte_size: _Bytes = 500
    avg_bid_byte_size: _Bytes = 100
    # Events are permuted within groups of this size. 1 keeps their order. Not a multiple of 953.
    out_of_order_group_size: _Positive = 1

    def __post_init__(self) -> None:
        """Check types and ranges."""
        for name in BOUNDS:
            check_option(name, getattr(self, name))

    @property
    def total_proportion(self) -> int:
        """Return the length of the cycle of kinds: persons, then auctions, then bids."""
        return self.person_proportion + self.auction_proportion + self.bid_proportion

    @property
    def events_in_flight(self) -> int:
        """Return the number of events it takes to start `num_in_flight_auctions` auctions."""
        return self.num_in_flight_auctions * self.total_proportion // self.auction_proportion

    def check_span(self, events: int) -> None:
        """Check `events` with `check_span`."""
        check_span(events, self.tps, self.base_time_ms, self.first_event_number)


_HINTS = get_type_hints(GeneratorConfig, include_extras=True)
BOUNDS: dict[str, tuple[int, int]] = {name: hint.__metadata__ for name, hint in _HINTS.items()}
"""The lowest and the highest value of every option."""


def option_names() -> Collection[str]:
    """Return the options without an argument of their own, sorted."""
    return sorted(BOUNDS.keys() - set(OPTIONS_WITH_ARGUMENT))


def check_option(name: str, value: object) -> None:
    """Raise GeneratorOptionError for a value that is no integer or that the option cannot have."""
    low, high = BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise GeneratorOptionError(name, f"{value!r} is not an integer")
    if not low <= value <= high:
        raise GeneratorOptionError(name, f"{value} is not within {low}..{high}")
    if name == "out_of_order_group_size" and value % DISORDER_PRIME == 0:
        problem = f"{value} is a multiple of {DISORDER_PRIME}, by which events are permuted"
        raise GeneratorOptionError(name, problem)


def check_span(events: int, tps: int, base_time_ms: int, first_event_number: int) -> None:
    """Raise GeneratorOptionError for more events than have numbers or fit before the year 4000.

    Args:
        events: number of events.
        tps: events per second of event time.
        base_time_ms: event time of event 0, in milliseconds since 1970 (UTC).
        first_event_number: number of event 0 on the timeline.
    """
    last = first_event_number + events
    if last > MAX_EVENTS:
        problem = f"{events} events are more than the generator can number, "
        raise GeneratorOptionError(
            "events", f"{problem}{MAX_EVENTS - first_event_number}; lower the events"
        )
    if base_time_ms + last * 1000 // tps > LATEST_MS:
        problem = f"{events} events at tps {tps} reach beyond the year 4000; "
        raise GeneratorOptionError("events", f"{problem}lower the events or raise the tps")
