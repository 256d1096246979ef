"""Count distinct bidders and auctions exactly by rank of price, for q15 and q16.

Spark refuses COUNT(DISTINCT ..) on a stream. De-duplication keeps a state row per distinct value,
and its measured speed is a fraction of the speed of this method: ids (not negative) are taken in
blocks of 21, and a 64-bit word per block has three bits per id, one for each rank of price it was
seen at. A first aggregation ORs bits into words; a second one, per group, counts them. Both run in
append mode, so a day's rows come out when the watermark passes its end.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from nexmark_jobs.queries.formulation import Streams

RANK1_BELOW, RANK2_BELOW = 10_000, 1_000_000
STATISTICS = tuple(
    f"{rank}_{kind}"
    for kind in ("bids", "bidders", "auctions")
    for rank in ("total", "rank1", "rank2", "rank3")
)

_RANKS = range(3)
_IDS_PER_WORD = 21
_RANK1_BITS = sum(1 << (3 * place) for place in range(_IDS_PER_WORD))


def daily_statistics(streams: Streams, *group: str) -> DataFrame:
    """Count per day and `group` (columns of a bid).

    Returns day (yyyy-MM-dd), `group`, last (time of the last bid) and STATISTICS (bigint).
    """
    price = F.col("price")
    rank = F.when(price < RANK1_BELOW, 0).when(price < RANK2_BELOW, 1).otherwise(2)
    # One row per bid and kind of id. The sign tells the kinds apart: an auction's id x is -1 - x.
    day, id = F.window("dateTime", "1 day"), F.explode(F.array("bidder", -1 - F.col("auction")))
    ids = streams.bids.select(day, *group, "dateTime", rank.alias("rank"), id.alias("id"))
    is_bidder = F.col("id") >= 0
    plain_id = F.when(is_bidder, F.col("id")).otherwise(-1 - F.col("id"))
    bit = (plain_id % _IDS_PER_WORD * 3 + F.col("rank")).cast("int")
    words = ids.select(
        "window",
        *group,
        "dateTime",
        "rank",
        is_bidder.alias("is_bidder"),
        F.call_function("div", plain_id, F.lit(_IDS_PER_WORD)).alias("block"),
        F.call_function("shiftleft", F.lit(1).cast("bigint"), bit).alias("bit"),
    )
    blocks = words.groupBy("window", *group, "is_bidder", "block").agg(
        F.bit_or("bit").alias("word"),
        F.max("dateTime").alias("last"),
        *(F.count_if(F.col("is_bidder") & (F.col("rank") == r)).alias(f"bids{r}") for r in _RANKS),
    )
    groups = blocks.groupBy("window", *group).agg(F.max("last").alias("last"), *_statistics())
    date = F.date_format("window.start", "yyyy-MM-dd").alias("day")
    return groups.select(date, *group, "last", *STATISTICS)


def _statistics() -> list[Column]:
    """Return the columns of STATISTICS over all blocks of a group, in order."""
    word = F.col("word")
    # The bits of each rank, shifted to the positions of the first rank's bits.
    by_rank = [F.shiftrightunsigned(word, r).bitwiseAND(F.lit(_RANK1_BITS)) for r in _RANKS]
    any_rank = by_rank[0].bitwiseOR(by_rank[1]).bitwiseOR(by_rank[2])
    bids = [F.col(f"bids{r}") for r in _RANKS]
    columns = [bids[0] + bids[1] + bids[2], *bids]
    for wanted in (F.col("is_bidder"), ~F.col("is_bidder")):
        columns += [F.when(wanted, F.bit_count(bits)).otherwise(0) for bits in (any_rank, *by_rank)]
    return [F.sum(c).alias(name) for c, name in zip(columns, STATISTICS, strict=True)]
