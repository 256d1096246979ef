"""q16 channel statistics: q15 for every channel, with the minute of its last bid.

    SELECT channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day,
           MAX(DATE_FORMAT(dateTime, 'HH:mm')) AS minute,
           ... the twelve counts of q15
    FROM bid
    GROUP BY channel, DATE_FORMAT(dateTime, 'yyyy-MM-dd')

Deviations:
- Distinct ids are counted by bits (see `distinct_counts`); a day's rows come out when it ends.
- Within one day the last time has the greatest minute: the maximum is taken before formatting.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.distinct_counts import STATISTICS, daily_statistics
from nexmark_jobs.queries.formulation import Query, Streams, ways


def words(streams: Streams) -> DataFrame:
    """Count, per channel, the bits of the words that hold 21 ids each."""
    minute = F.date_format("last", "HH:mm").alias("minute")
    return daily_statistics(streams, "channel").select("channel", "day", minute, *STATISTICS)


QUERY = Query(
    "q16", ("channel", "day", "minute", *STATISTICS), ways(words), needs_end_of_input=True
)
