"""The knobs of the event generator, checked once."""

from __future__ import annotations

from dataclasses import dataclass, fields

from nexmark_jobs.knobs import BASE_TIME_MS, check_knob


@dataclass(frozen=True)
class GeneratorConfig:
    """All that an event depends on besides its number; the defaults match nexmark-flink.

    Raises KnobError for a value out of range.

    Attributes:
        seed: key of every draw, a signed 64-bit integer.
        tps: events per second of event time; sets the spacing of events, never the speed.
        base_time_ms: event time of event 0, milliseconds since 1970-01-01T00:00:00Z
            (default 2015-07-15T00:00:00Z).
        person_proportion: persons among `total_proportion` consecutive events.
        auction_proportion: auctions among them.
        bid_proportion: bids among them.
        first_event_number: place of event 0 on the timeline (nexmark-flink has 1).
        first_event_id: added to the place on the timeline to give the event id, which fixes kind
            and entity ids (nexmark-flink has 1, so that its first event has id 2).
        first_person_id: id of the first person.
        first_auction_id: id of the first auction.
        first_category_id: lowest category.
        num_categories: number of categories.
        bidder_id_offset: added to the drawn person to give the bidder. Equal to first_person_id
            unless the doubled offset of nexmark-flink (2000) is wanted.
        person_id_lead: how far ahead of the newest person a reference may point.
        auction_id_lead: how far ahead of the newest auction a reference may point.
        num_active_people: how many of the newest persons sell and bid.
        num_in_flight_auctions: how many of the newest auctions receive bids.
        hot_auction_ratio: r, where 1 - 1/r of the bids go to the hot auction.
        hot_bidders_ratio: r, where 1 - 1/r of the bids come from the hot bidder.
        hot_sellers_ratio: r, where 1 - 1/r of the auctions come from the hot seller.
        hot_channels_ratio: r, where 1 - 1/r of the bids come over one of the four hot channels.
        hot_auction_block: size of a block of auctions; one auction of each block is hot.
        hot_bidder_block: size of a block of persons; one person of each block is a hot bidder.
        hot_seller_block: size of a block of persons; one person of each block is a hot seller.
        num_channels: number of channels besides the hot ones.
        avg_person_byte_size: size to which a person's `extra` fills it, in bytes.
        avg_auction_byte_size: the same for an auction.
        avg_bid_byte_size: the same for a bid.
        out_of_order_group_size: number of events in a group; events are permuted within their
            group. 1 keeps their order. Not a multiple of 953.
    """

    seed: int = 1
    tps: int = 10_000
    base_time_ms: int = BASE_TIME_MS
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

    def __post_init__(self) -> None:
        """Check types and ranges."""
        for field in fields(self):
            check_knob(field.name, getattr(self, field.name))

    @property
    def total_proportion(self) -> int:
        """Length of the cycle of kinds: persons, then auctions, then bids."""
        return self.person_proportion + self.auction_proportion + self.bid_proportion

    @property
    def events_in_flight(self) -> int:
        """How many events it takes to start `num_in_flight_auctions` auctions."""
        return self.num_in_flight_auctions * self.total_proportion // self.auction_proportion
