"""q11 user sessions: how many bids a bidder made without a pause of more than ten seconds.

    SELECT bidder, COUNT(*) AS bid_count,
           SESSION_START(dateTime, gap 10 seconds) AS starttime,
           SESSION_END(dateTime, gap 10 seconds) AS endtime
    FROM bid
    GROUP BY bidder, SESSION(dateTime, gap 10 seconds)

A pause of exactly ten seconds does not end a session, in Spark as in Flink. No deviation.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

GAP = "10 seconds"


def session_window(streams: Streams) -> DataFrame:
    """Count per bidder and session."""
    in_session = streams.bids.groupBy("bidder", F.session_window("dateTime", GAP))
    sessions = in_session.agg(F.count(F.lit(1)).alias("bid_count"))
    start, end = F.col("session_window.start"), F.col("session_window.end")
    bounds = start.alias("starttime"), end.alias("endtime")
    return sessions.select("bidder", "bid_count", *bounds)


QUERY = Query(
    "q11",
    ("bidder", "bid_count", "starttime", "endtime"),
    ways(session_window),
    needs_end_of_input=True,
)
