"""long_window: bids and their value per slot of auctions, in windows of 1 h that slide by 1 minute.

SELECT auction % 100 AS slot, window_start, window_end, COUNT(*) AS bids, SUM(price) AS total
FROM HOP(bid, dateTime, slide 1 minute, size 1 hour)
GROUP BY auction % 100, window_start, window_end
"""

from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Formulation, Query, Streams, ways

SIZE, SLIDE = "1 hour", "1 minute"
SLOTS = 100


def windows(streams: Streams) -> DataFrame:
    """Aggregate by Spark's windows: each bid becomes sixty rows, one per window."""
    per_window = _slots(streams).groupBy(F.window("dateTime", SIZE, SLIDE), "slot")
    return _named(_sums(per_window))


def panes(streams: Streams) -> DataFrame:
    """Aggregate panes of a minute first; each pane, not each bid, becomes sixty rows."""
    window = F.window(F.window_time("window"), SIZE, SLIDE)
    per_window = _panes(streams).groupBy(window, "slot")
    return _named(per_window.agg(F.sum("bids").alias("bids"), F.sum("total").alias("total")))


def retraction(streams: Streams) -> DataFrame:
    """Keep the sums of the hour: add each pane once, take it away once when it is an hour old.

    The sums are state of our own, in Python, which needs pandas, PyArrow and RocksDB.
    """
    ended, at = F.unix_millis("window.end").alias("ended"), F.window_time("window").alias("at")
    given = _panes(streams).select("slot", ended, "bids", "total", at)
    slid = given.groupBy("slot").transformWithState(
        _retraction(),
        outputStructType="slot bigint, ended bigint, bids bigint, total bigint",
        outputMode="Append",
        timeMode="EventTime",
    )
    end = F.timestamp_millis("ended")
    window = F.struct((end - F.expr(f"INTERVAL {SIZE}")).alias("start"), end.alias("end"))
    return _named(slid.withColumn("window", window))


def _retraction() -> Any:
    """Return the class that keeps the sums of a slot: nested, so workers need no file of ours."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    hour, minute = 3_600_000, 60_000
    kept = "ended bigint, bids bigint, total bigint, panes array<array<bigint>>"

    class Retraction(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._handle, self._sums = handle, handle.getValueState("sums", kept)

        def close(self) -> None:
            pass

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            """Keep the panes until the watermark is beyond them."""
            ended, bids, total, panes = self._read()
            panes |= {row.ended: (row.bids, row.total) for row in rows}
            self._keep(ended, bids, total, panes)
            return iter(())

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Any:
            """Put out the windows that the watermark has closed."""
            from pyspark.sql import Row

            until = timerValues.getCurrentWatermarkInMs()
            ended, bids, total, panes = self._read()
            while panes and (end := ended + minute if bids else min(panes)) <= until:
                ended, more = end, panes.get(end, (0, 0))
                bids, total = bids + more[0], total + more[1]
                yield Row(slot=key[0], ended=ended, bids=bids, total=total)
                gone = panes.pop(ended - hour + minute, (0, 0))
                bids, total = bids - gone[0], total - gone[1]
            self._keep(ended, bids, total, panes)

        def _read(self) -> Any:
            if not self._sums.exists():
                return 0, 0, 0, {}
            ended, bids, total, panes = self._sums.get()
            return ended, bids, total, {end: (count, price) for end, count, price in panes}

        def _keep(self, ended: int, bids: int, total: int, panes: Any) -> None:
            """Keep the sums of a slot until the next call; remove them if no pane is left.

            Args:
                ended: the end of the newest window that was put out.
                bids: the number of bids in its hour.
                total: the sum of their prices.
                panes: by the end of each pane, its number of bids and the sum of their prices.
            """
            if not panes:
                self._sums.clear()
                return
            self._handle.registerTimer(ended + minute if bids else min(panes))
            self._sums.update((ended, bids, total, [[end, *pane] for end, pane in panes.items()]))

    return Retraction()


def _panes(streams: Streams) -> DataFrame:
    """Count the bids of each minute."""
    return _sums(_slots(streams).groupBy(F.window("dateTime", SLIDE), "slot"))


def _sums(bids: GroupedData) -> DataFrame:
    return bids.agg(F.count(F.lit(1)).alias("bids"), F.sum("price").alias("total"))


def _slots(streams: Streams) -> DataFrame:
    slot: Column = F.col("auction") % SLOTS
    return streams.bids.select(slot.alias("slot"), "price", "dateTime")


def _named(counted: DataFrame) -> DataFrame:
    start, end = F.col("window.start"), F.col("window.end")
    bounds = start.alias("window_start"), end.alias("window_end")
    return counted.select("slot", *bounds, "bids", "total")


QUERY = Query(
    "long_window",
    ("slot", "window_start", "window_end", "bids", "total"),
    (*ways(windows, panes), Formulation("retraction", retraction, min_spark=(4, 1))),
    needs_end_of_input=True,
)
