"""How far a query has come with its input, judged by the progress of its batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from nexmark_jobs import progress as reported
from nexmark_jobs.sources.datagen import Datagen

_FAR_FUTURE = "9998"
"""Watermarks from this year on are the doing of a sentinel."""


class Feed(Protocol):
    """Tells data from the end of input, and when there is no more of either.

    Attributes:
        events: number of events in the input, without sentinels.
    """

    @property
    def events(self) -> int:
        """Number of events in the input, without sentinels."""

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

    def take(self, progress: Mapping[str, Any]) -> int:
        """Number of events in the batch just finished; 0 from the end of the input on."""
        return self._source.events_in(progress["batchId"])

    def finished(self, progress: Mapping[str, Any]) -> bool:
        """Whether the batch just finished was the last one."""
        if self._source.end_of_input:
            return has_closed_all(progress)
        return int(progress["batchId"]) + 1 >= self._source.batches()
