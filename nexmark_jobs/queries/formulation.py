"""A query: the shape of its result and the ways to compute it."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from nexmark_jobs.errors import UsageError
from nexmark_jobs.feature_release import feature_release

WATERMARK_DELAY = "4 seconds"
"""How far event time may run ahead of an event still to come, as in nexmark-flink's DDL."""

ALL_TIME = "1000000 days"
"""A window that holds every event from 1970 to the year 4707, and that a sentinel closes."""

AUCTION = (
    "itemName",
    "description",
    "initialBid",
    "reserve",
    "auction_dateTime",
    "expires",
    "seller",
    "category",
    "auction_extra",
)
"""An auction's columns beside a bid's, as q20 and q23 name them."""
RENAMED = {"dateTime": "auction_dateTime", "extra": "auction_extra"}


class Source(Protocol):
    """A source of the three event streams, without watermarks.

    Each stream has the columns of the Nexmark schema in its order. A source that knows the event
    number puts it before them as `n` (bigint).
    """

    def of_kind(self, kind: str) -> DataFrame:
        """Return the stream of the events of a kind: person, auction or bid."""


@dataclass(frozen=True)
class Streams:
    """The event streams of one query, with the watermark of nexmark-flink on `dateTime` or without.

    Every access is a scan of its own, which reads only the columns used. `carried` are columns of
    the bids that q2, q21 and q22 put out beside their own: the time, where latency is measured.
    """

    spark: SparkSession
    source: Source
    carried: tuple[str, ...] = ()

    @property
    def persons(self) -> DataFrame:
        """Return persons: id, name, emailAddress, creditCard, city, state, dateTime, extra."""
        return self.plain_persons.withWatermark("dateTime", WATERMARK_DELAY)

    @property
    def auctions(self) -> DataFrame:
        """Return auctions: id, itemName, description, initialBid, reserve, dateTime, ..."""
        return self.plain_auctions.withWatermark("dateTime", WATERMARK_DELAY)

    @property
    def bids(self) -> DataFrame:
        """Return bids: auction, bidder, price, channel, url, dateTime, extra."""
        return self.plain_bids.withWatermark("dateTime", WATERMARK_DELAY)

    @property
    def plain_persons(self) -> DataFrame:
        """Return persons without a watermark, for queries that never remove state or have none."""
        return self.source.of_kind("person")

    @property
    def plain_auctions(self) -> DataFrame:
        """Return auctions without a watermark."""
        return self.source.of_kind("auction")

    @property
    def plain_bids(self) -> DataFrame:
        """Return bids without a watermark."""
        return self.source.of_kind("bid")


PerBatch: TypeAlias = Callable[[DataFrame, int], Sequence[DataFrame]]


@dataclass(frozen=True)
class Formulation:
    """One way to compute a query: `build` makes a streaming frame with exactly its columns.

    `min_spark` is the oldest Spark version (major, minor) that can run it. With `per_batch` the
    frame is only a part of the result: each micro-batch of it is kept, and `per_batch` makes frames
    of it and of its number which together are the query's rows of the batch. Each is written by
    itself.
    """

    name: str
    build: Callable[[Streams], DataFrame]
    min_spark: tuple[int, int] = (3, 5)
    per_batch: PerBatch | None = None


def ways(*builds: Callable[[Streams], DataFrame]) -> tuple[Formulation, ...]:
    """Return a formulation for each function, with the name of the function."""
    return tuple(Formulation(build.__name__, build) for build in builds)


@dataclass(frozen=True)
class Query:
    """A Nexmark query: the columns of its result in order, ways to compute it, the preferred first.

    Where it has a `key`, later rows replace earlier ones of the same key, by which they are folded
    into the final table. `needs_end_of_input`: rows come out only when a window closes, so
    that the last ones need sentinel events behind the input. `deterministic`: the same input gives
    the same rows. A job of a person's own has its `mode`, and no columns until Spark has found
    them.
    """

    name: str
    columns: tuple[str, ...]
    formulations: tuple[Formulation, ...]
    key: tuple[str, ...] = ()
    needs_end_of_input: bool = False
    deterministic: bool = True
    mode: str = ""

    @property
    def output_mode(self) -> str:
        """Return Spark's output mode of the query."""
        return self.mode or ("update" if self.key else "append")

    def formulation(self, spark_version: str, wanted: str | None = None) -> Formulation:
        """Return the formulation called `wanted`, or the first one that this Spark can run.

        Raises UsageError if there is none, or if it needs a newer Spark.
        """
        version = feature_release(spark_version)
        able = [each for each in self.formulations if each.min_spark <= version]
        names = [each.name for each in able]
        if wanted is not None and wanted not in names:
            problem = f"--formulation: {self.name} has no '{wanted}' on Spark {spark_version}"
            raise UsageError(f"{problem}; use one of {', '.join(names)}")
        return able[names.index(wanted) if wanted else 0]


def queries_of(package: str, path: Iterable[str]) -> dict[str, Query]:
    """Return every query of the modules of a package, by its name, in the order of the modules."""
    names = sorted(module.name for module in pkgutil.iter_modules(path))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    members = (member for module in modules for member in vars(module).values())
    return {member.name: member for member in members if isinstance(member, Query)}
