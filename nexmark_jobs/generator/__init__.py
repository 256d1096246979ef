"""The Nexmark event generator as Catalyst expressions.

Event ``n`` is a pure function of (seed, configuration, n), so any slice can be generated alone,
on any engine, and gives the same rows. :func:`persons`, :func:`auctions` and :func:`bids` turn a
frame of event numbers (streaming or not) into the events of one kind.

Laws, proportions and skews are the same as in nexmark-flink's generator. The differences:

- Draws are hashes of (seed, field, n) instead of one unseeded random sequence per process.
- Base time is fixed, ids begin at 0 + 1000, and bidders are offset once, not twice (issue 30 of
  nexmark/nexmark); options bring back the offset (`bidder_id_offset`) and the start at event 2
  (`first_event_id`, `first_event_number`).
- Texts are slices of texts of 2 kB, made from the seed, instead of letters drawn one by one
  (strings) or slices of 1 MiB (filler); directories of URLs come from a table of 256. Lengths and
  frequencies of characters are the same, but they compress better. The constants are literals of
  the plan, which every micro-batch prints into Spark's UI and event log: hence their size.
- The channel_id of channel-1 is 2147483648; Java's abs of that number leaves it negative.
"""

from nexmark_jobs.generator.auctions import auctions
from nexmark_jobs.generator.bids import bids
from nexmark_jobs.generator.persons import persons
from nexmark_jobs.generator.timeline import SENTINEL_TIME
from nexmark_jobs.generator_config import GeneratorConfig

__all__ = ["EVENTS", "SENTINEL_TIME", "GeneratorConfig", "auctions", "bids", "persons"]

EVENTS = {"person": persons, "auction": auctions, "bid": bids}
"""What makes the events of each kind, in their order within a cycle."""
