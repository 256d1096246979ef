"""q10 log to file system: every bid into a file of its minute.

    INSERT INTO files PARTITIONED BY (dt, hm)
    SELECT auction, bidder, price, dateTime, extra,
           DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS dt, DATE_FORMAT(dateTime, 'HH:mm') AS hm
    FROM bid

The filesystem sink (`sinks.FilesystemSink`) makes the directories dt=../hm=.. and marks each as
committed; to any other sink dt and hm are columns. No deviation.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Query, Streams, ways

COLUMNS = ("auction", "bidder", "price", "dateTime", "extra")


def projection(streams: Streams) -> DataFrame:
    """Project the bids; the watermark is for the sink, which commits partitions by it."""
    day = F.date_format("dateTime", "yyyy-MM-dd").alias("dt")
    minute = F.date_format("dateTime", "HH:mm").alias("hm")
    return streams.bids.select(*COLUMNS, day, minute)


QUERY = Query("q10", (*COLUMNS, "dt", "hm"), ways(projection))
