"""The datagen source streams the events of the generator, batch by batch, and ends them."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs.generator import GeneratorConfig
from nexmark_jobs.sources.datagen import Datagen
from tests.generator.plain_generator import SENTINEL_MS, PlainGenerator
from tests.generator.rows import millis

KINDS = ("person", "auction", "bid")
SHIFTED = {"first_event_id": 1, "first_event_number": 1}
ODD_PROPORTIONS = {"person_proportion": 2, "auction_proportion": 1, "bid_proportion": 4}


class Collector:
    """Runs a stream into memory for a number of batches."""

    def __init__(self) -> None:
        self.batches: dict[int, list[dict[str, Any]]] = {}

    def run(self, frame: DataFrame, last_batch: int, mode: str = "append") -> None:
        def keep(rows: DataFrame, batch: int) -> None:
            self.batches[batch] = [row.asDict() for row in rows.collect()]

        query = frame.writeStream.foreachBatch(keep).outputMode(mode).start()
        try:
            deadline = time.monotonic() + 120
            while max(self.batches, default=-1) < last_batch:
                assert query.isActive, query.exception()
                assert time.monotonic() < deadline, "the stream stands still"
                time.sleep(0.05)
        finally:
            query.stop()

    def numbers(self, batch: int) -> list[int]:
        return sorted(row["n"] for row in self.batches[batch])


def stream(source: Datagen, kind: str) -> DataFrame:
    return millis(source.of_kind(kind))


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("rows_per_batch", "options"),
    [
        (500, {}),  # whole cycles: the source counts one kind only
        (500, SHIFTED),
        (70, ODD_PROPORTIONS),
        (333, {}),  # otherwise it counts all events
        (500, {"out_of_order_group_size": 20}),
    ],
)
def test_batches_hold_exactly_their_events(
    spark: SparkSession,
    collector: Collector,
    kind: str,
    rows_per_batch: int,
    options: dict[str, int],
) -> None:
    events = 2 * rows_per_batch + 40
    source = Datagen(spark, GeneratorConfig(**options), events, rows_per_batch)
    collector.run(stream(source, kind), 3)
    plain = PlainGenerator(**options)
    for batch in range(4):
        first = batch * rows_per_batch
        numbers = range(first, min(first + rows_per_batch, events))
        rows = sorted(collector.batches[batch], key=lambda row: row["n"])
        assert rows == plain.rows(kind, numbers)
        assert source.events_in(batch) == len(numbers)
    assert source.batches() == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("events", "options"),
    [(980, {}), (1000, {}), (777, SHIFTED), (777, {"out_of_order_group_size": 20})],
)
def test_sentinels_follow_the_last_event(
    spark: SparkSession, collector: Collector, kind: str, events: int, options: dict[str, int]
) -> None:
    source = Datagen(spark, GeneratorConfig(**options), events, 500, end_of_input=True)
    collector.run(stream(source, kind), source.batches())
    rows = sorted(
        (row for batch in collector.batches.values() for row in batch), key=lambda row: row["n"]
    )
    assert rows == PlainGenerator(events, **options).rows(kind, range(events + 100))
    late = [row["n"] for row in rows if row["dateTime"] == SENTINEL_MS]
    assert late == [row["n"] for row in rows if row["n"] >= events]
    assert late != []
    assert source.events_in(source.batches()) == 0


def test_sentinels_close_every_window(spark: SparkSession, collector: Collector) -> None:
    source = Datagen(spark, GeneratorConfig(tps=100), 2000, 500, end_of_input=True)
    bids = source.of_kind("bid").withWatermark("dateTime", "4 seconds")
    window = F.window("dateTime", "10 seconds", "2 seconds")
    counts = bids.groupBy(window.alias("w")).agg(F.count("*").alias("bids"))
    counts = counts.select(F.unix_millis("w.start").alias("start"), "bids")
    collector.run(counts, source.batches() + 1)
    closed = {row["start"]: row["bids"] for batch in collector.batches.values() for row in batch}
    expected: dict[int, int] = {}
    for bid in PlainGenerator(tps=100).rows("bid", range(2000)):
        last = bid["dateTime"] // 2000 * 2000
        for start in range(last - 8000, last + 1, 2000):
            expected[start] = expected.get(start, 0) + 1
    assert closed == expected
