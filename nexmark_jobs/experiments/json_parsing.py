"""Read bids from JSON in each way that Spark offers, and from a typed format.

json_all_fields: SELECT auction, bidder, price, channel, url, dateTime, extra FROM bid
json_two_fields: SELECT auction, price FROM bid

The formulation `from_json` reads lines of text and parses them by the function `from_json`, as a
query over a message queue does; `columns` leaves the format to the source of the files.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.ending import UsageError
from nexmark_jobs.queries.formulation import Formulation, Query, Streams
from nexmark_jobs.sources.event_files import Files, events_of_kind

BID = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
TWO = ("auction", "price")


@dataclass(frozen=True)
class _Columns:
    """Some columns of the bids."""

    names: tuple[str, ...]

    def columns(self, streams: Streams) -> DataFrame:
        """Read by the source of the files' own format."""
        return streams.plain_bids.select(*self.names)

    def from_json(self, streams: Streams) -> DataFrame:
        """Read lines of text, parse each by `from_json`."""
        files = streams.source
        if not isinstance(files, Files) or files.recording.is_parquet:
            raise UsageError("--formulation: from_json reads JSON; give --source files:DIR of JSON")
        event = F.from_json("value", str(files.schema))
        events = files.lines().select(event.alias("event")).select("event.*")
        bids = events_of_kind(events, "bid", numbered=files.recording.numbered)
        return bids.select(*self.names)


ALL_FIELDS = Query(
    "json_all_fields",
    BID,
    (
        Formulation("columns", _Columns(BID).columns),
        Formulation("from_json", _Columns(BID).from_json),
    ),
)

TWO_FIELDS = Query(
    "json_two_fields",
    TWO,
    (
        Formulation("columns", _Columns(TWO).columns),
        Formulation("from_json", _Columns(TWO).from_json),
    ),
)
