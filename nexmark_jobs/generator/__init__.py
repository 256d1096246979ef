"""The Nexmark event generator as Catalyst expressions.

Event ``n`` is a pure function of (seed, configuration, n), so any slice can be generated alone,
on any engine, and gives the same rows. :func:`persons`, :func:`auctions` and :func:`bids` turn a
frame of event numbers (streaming or not) into the events of one kind.
"""

from __future__ import annotations

from nexmark_jobs.generator.auctions import auctions
from nexmark_jobs.generator.bids import bids
from nexmark_jobs.generator.config import GeneratorConfig
from nexmark_jobs.generator.persons import persons
from nexmark_jobs.generator.timeline import SENTINEL_TIME

__all__ = ["SENTINEL_TIME", "GeneratorConfig", "auctions", "bids", "persons"]
