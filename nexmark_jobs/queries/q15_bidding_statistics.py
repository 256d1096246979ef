"""q15 bidding statistics: per day, how many bids, bidders and auctions at each rank of price.

    SELECT DATE_FORMAT(dateTime, 'yyyy-MM-dd') AS day,
           COUNT(*) AS total_bids,
           COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
           COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
           COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
           COUNT(DISTINCT bidder) AS total_bidders,
           ... the same three filters: rank1_bidders, rank2_bidders, rank3_bidders
           COUNT(DISTINCT auction) AS total_auctions,
           ... and again: rank1_auctions, rank2_auctions, rank3_auctions
    FROM bid
    GROUP BY DATE_FORMAT(dateTime, 'yyyy-MM-dd')

Deviations:
- Distinct ids are counted by bits (see `distinct_counts`); a day's row comes out when it ends.
"""

from pyspark.sql import DataFrame

from nexmark_jobs.queries.distinct_counts import STATISTICS, daily_statistics
from nexmark_jobs.queries.formulation import Query, Streams, ways


def words(streams: Streams) -> DataFrame:
    """Count the bits of the words that hold 21 ids each."""
    return daily_statistics(streams).select("day", *STATISTICS)


QUERY = Query("q15", ("day", *STATISTICS), ways(words), needs_end_of_input=True)
