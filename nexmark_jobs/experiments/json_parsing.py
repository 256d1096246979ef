"""Read bids from JSON in each way that Spark offers, and from a typed format.

json_all_fields: SELECT auction, bidder, price, channel, url, dateTime, extra FROM bid
json_two_fields: SELECT auction, price FROM bid

The formulation `from_json` reads lines of text and parses them by the function `from_json`, as a
query over a message queue does; `columns` leaves the format to the source of the files.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.errors import UsageError
from nexmark_jobs.queries.formulation import Query, Streams, ways
from nexmark_jobs.sources.event_files import Files, events_of_kind


def _query(name: str, *names: str) -> Query:
    def columns(streams: Streams) -> DataFrame:
        return streams.plain_bids.select(*names)

    def from_json(streams: Streams) -> DataFrame:
        files = streams.source
        if not isinstance(files, Files) or not isinstance(files.schema, str):
            raise UsageError("--formulation: from_json reads JSON; give --source files:DIR of JSON")
        event = F.from_json("value", files.schema)
        events = files.lines().select(event.alias("event")).select("event.*")
        bids = events_of_kind(events, "bid", numbered=files.numbered)
        return bids.select(*names)

    return Query(name, names, ways(columns, from_json))


BID = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
ALL_FIELDS = _query("json_all_fields", *BID)
TWO_FIELDS = _query("json_two_fields", "auction", "price")
