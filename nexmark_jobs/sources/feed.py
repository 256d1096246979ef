"""How far a query has come with its input, judged by the progress of its batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from nexmark_jobs import progress as reported
from nexmark_jobs.errors import JobError
from nexmark_jobs.sources.datagen import Datagen

_FAR_FUTURE = "9998"
"""Watermarks from this year on are the doing of a sentinel."""


class Feed(Protocol):
    """Tells data from the end of input, and when there is no more of either."""

    @property
    def events(self) -> int:
        """Number of events in the input, without sentinels."""

    @property
    def data_batches(self) -> int:
        """Number of batches with events; later ones are of the end of the input."""

    @property
    def last_batch(self) -> int | None:
        """Number of the last batch, where that is known beforehand."""

    def take(self, progress: Mapping[str, Any]) -> int:
        """Number of events in the batch just finished; 0 from the end of the input on."""

    def finished(self, progress: Mapping[str, Any]) -> bool:
        """Whether the batch just finished was the last one."""


def has_closed_all(progress: Mapping[str, Any]) -> bool:
    """Whether the batch ran with a watermark beyond every event, so that all windows closed."""
    watermark = reported.watermark(progress)
    return watermark is not None and watermark >= _FAR_FUTURE


class DatagenFeed:
    """The batches of generated events."""

    def __init__(self, source: Datagen) -> None:
        """Follow a query that reads `source`."""
        self._source = source

    @property
    def events(self) -> int:
        """Number of events in the input, without sentinels."""
        return self._source.events

    @property
    def data_batches(self) -> int:
        """Number of batches with events; later ones are of the end of the input."""
        return -(-self._source.events // self._source.rows_per_batch)

    @property
    def last_batch(self) -> int:
        """Number of the last batch: the one after the sentinels', or the last one with events."""
        return self._source.batches() - (0 if self._source.end_of_input else 1)

    def take(self, progress: Mapping[str, Any]) -> int:
        """Number of events in the batch just finished; 0 from the end of the input on."""
        return self._source.events_in(progress["batchId"])

    def finished(self, progress: Mapping[str, Any]) -> bool:
        """Whether the batch just finished was the last one.

        Raises:
            JobError: It was, but the sentinels have not closed the windows.
        """
        last = int(progress["batchId"]) >= self.last_batch
        if last and self._source.end_of_input and not has_closed_all(progress):
            raise JobError("the sentinels did not move the watermark; windows are still open")
        return last
