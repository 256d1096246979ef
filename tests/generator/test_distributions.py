"""A million events have the published proportions, skews, laws and sizes.

The figures come from nexmark-flink's generator. Measured figures (the hottest auction, say) have a
comment beside their tolerance. With a fixed seed the tests are deterministic; tolerances are three
to five standard errors of the law itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

EVENTS = range(1_000_000)
TPS = 1000


def share(condition: Column) -> Column:
    return F.avg(condition.cast("double"))


def one_row(frame: DataFrame, **aggregates: Column) -> Row:
    row = frame.agg(*[column.alias(name) for name, column in aggregates.items()]).first()
    assert row is not None
    return row


@pytest.fixture(scope="module", autouse=True)
def views(spark: SparkSession, generate: Any) -> Iterator[None]:
    kinds = ("person", "auction", "bid")
    for kind in kinds:
        generate(kind, EVENTS, tps=TPS).createOrReplaceTempView(kind)
    yield
    for kind in kinds:
        spark.catalog.dropTempView(kind)


@pytest.fixture(scope="module")
def bids(spark: SparkSession, views: None) -> Row:
    hot_channel = ~F.col("channel").startswith("channel-")
    # Auctions and persons count from 1000; auction i is event i / 3 * 50 + 1 + i % 3.
    auction, bidder = F.col("auction") - 1000, F.col("bidder") - 1000
    cycle = F.floor(F.col("n") / 50)
    newest = cycle * 3 + 2
    auction_event = F.floor(auction / 3) * 50 + 1 + auction % 3
    return one_row(
        spark.table("bid"),
        bids=F.count("*"),
        hot_auction=share(auction % 100 == 0),
        auctions_in_flight=share(auction.between(newest - 199, newest + 10) & (auction >= 0)),
        too_old=share((auction < newest - 100) & (auction % 100 != 0)),
        ahead=share(F.col("n") < auction_event),
        hot_bidder=share(bidder % 100 == 1),
        active=share(bidder.between(cycle - 999, cycle + 10) | (bidder % 100 == 1)),
        low=share(F.col("price") < 10_000),
        high=share(F.col("price") >= 1_000_000),
        log_mean=F.avg(F.log10(F.col("price") / 100) / 6),
        log_variance=F.var_pop(F.log10(F.col("price") / 100) / 6),
        cheapest=F.min("price"),
        dearest=F.max("price"),
        q14=share(F.col("price").between(1_101_322, 55_066_079)),
        q2=share(F.col("auction") % 123 == 0),
        hot_channel=share(hot_channel),
        google=share(F.col("channel") == "Google"),
        apple=share(F.col("channel") == "Apple"),
        hot_ids=share(hot_channel & F.col("url").contains("channel_id")),
        extra_mean=F.avg(F.length("extra")),
        extra_least=F.min(F.length("extra")),
        extra_most=F.max(F.length("extra")),
        letters_c=F.sum(F.length("extra") - F.length(F.translate("extra", "c", ""))),
        letters_a=F.sum(F.length("extra") - F.length(F.translate("extra", "a", ""))),
        letters=F.sum(F.length("extra")),
        capitals=F.sum(F.length(F.regexp_replace("extra", "[^H-`]", ""))),
        other_letters=share(F.col("extra").rlike("[^H-z]")),
        first_time=F.min("dateTime"),
        last_time=F.max("dateTime"),
    )


def test_proportions_are_exact(spark: SparkSession, bids: Row) -> None:
    counts = [spark.table(kind).count() for kind in ("person", "auction")]
    assert [*counts, bids.bids] == [20_000, 60_000, 920_000]


def test_event_times_span_events_over_tps(bids: Row) -> None:
    assert bids.first_time == 1_436_918_400_000 + 4
    assert bids.last_time == 1_436_918_400_000 + 999_999


def test_half_of_the_bids_go_to_the_hot_auction(spark: SparkSession, bids: Row) -> None:
    # The hot one draws 1/2, and 1 in 100 of the other half falls on a hot auction too.
    assert bids.hot_auction == pytest.approx(0.505, abs=0.002)
    hottest = spark.table("bid").groupBy("auction").count().agg(F.max("count")).first()
    assert hottest is not None
    assert hottest[0] == pytest.approx(844, rel=0.1)


def test_bids_name_auctions_in_flight_or_of_their_lead(bids: Row) -> None:
    assert bids.auctions_in_flight == 1
    assert bids.too_old == 0
    # Half of the bids are cold, and 10 in 111 of their choices do not exist yet.
    assert bids.ahead == pytest.approx(0.045, abs=0.001)


def test_three_quarters_of_the_bids_come_from_the_hot_bidder(
    spark: SparkSession, bids: Row
) -> None:
    assert bids.hot_bidder == pytest.approx(0.7525, abs=0.002)
    assert bids.active == 1
    busiest = spark.table("bid").groupBy("bidder").count().agg(F.max("count")).first()
    assert busiest is not None
    assert busiest[0] == pytest.approx(3500, rel=0.05)


def test_prices_are_log_uniform(bids: Row) -> None:
    assert bids.low == pytest.approx(1 / 3, abs=0.002)
    assert bids.high == pytest.approx(1 / 3, abs=0.002)
    assert bids.log_mean == pytest.approx(1 / 2, abs=0.0015)
    assert bids.log_variance == pytest.approx(1 / 12, abs=0.0005)
    assert bids.cheapest == 100
    assert 99_000_000 < bids.dearest <= 100_000_000
    assert bids.q14 == pytest.approx(0.283, abs=0.002)


def test_q2_selects_about_one_bid_in_123(bids: Row) -> None:
    # Hot auctions that 123 divides weigh 17 in the mean, with 600 hot ones: hence the tolerance.
    assert bids.q2 == pytest.approx(1 / 123, rel=0.3)


def test_half_of_the_bids_come_over_four_hot_channels(spark: SparkSession, bids: Row) -> None:
    assert bids.hot_channel == pytest.approx(0.5, abs=0.002)
    assert bids.google == pytest.approx(0.125, abs=0.0015)
    assert bids.apple == pytest.approx(0.125, abs=0.0015)
    assert bids.hot_ids == 0


def test_channels_have_one_url_each_and_most_a_channel_id(spark: SparkSession) -> None:
    shape = r"^https://www\.nexmark\.com/([a-z_]{3,4}/){3}item\.htm\?query=1(&channel_id=\d+)?$"
    channels = spark.table("bid").select("channel", "url").distinct()
    names = F.col("url").substr(25, 14)
    directories = F.concat(*[F.split("url", "/")[i] for i in (3, 4, 5)])
    row = one_row(
        channels,
        channels=F.count_distinct("channel"),
        pairs=F.count("*"),
        shaped=share(F.col("url").rlike(shape)),
        with_id=share(F.col("url").contains("channel_id")),
        right_id=share(
            ~F.col("url").contains("channel_id")
            | F.col("url").endswith(F.concat(F.lit("channel_id="), reversed_id()))
        ),
        three=share(F.length(F.split("url", "/")[3]) == 3),
        underscores=F.sum(F.length(directories) - F.length(F.translate(directories, "_", ""))),
        characters=F.sum(F.length(directories)),
        urls=F.count_distinct(names),
    )
    assert row.channels == row.pairs == 10_004
    assert row.shaped == row.right_id == 1
    assert row.with_id == pytest.approx(0.9 * 10_000 / 10_004, abs=0.01)
    # Directories are drawn from a table of 256: three standard errors of that.
    assert row.three == pytest.approx(1 / 2, abs=0.1)
    assert row.underscores / row.characters == pytest.approx(1 / 13, abs=0.027)
    assert row.urls > 9900


def reversed_id() -> Column:
    """The channel_id of a channel, by way of text."""
    number = F.split("channel", "-")[1].cast("bigint")
    reverse = F.conv(F.reverse(F.lpad(F.bin(number), 32, "0")), 2, 10).cast("bigint")
    return F.when(reverse > 2**31, F.lit(2**32) - reverse).otherwise(reverse).cast("string")


def test_extra_fills_a_bid_to_100_bytes_give_or_take(bids: Row) -> None:
    assert (bids.extra_least, bids.extra_most) == (54, 81)
    assert bids.extra_mean == pytest.approx(67.5, abs=0.03)


def test_filler_runs_from_capital_h_to_z(bids: Row) -> None:
    assert bids.other_letters == 0
    assert bids.letters_c / bids.letters == pytest.approx(1 / 52, rel=0.02)
    assert bids.letters_a / bids.letters == pytest.approx(1 / 26, rel=0.02)
    assert bids.capitals / bids.letters == pytest.approx(25 / 52, rel=0.02)


def test_auctions(spark: SparkSession) -> None:
    life = F.col("expires") - F.col("dateTime")
    size = 8 + F.length("itemName") + F.length("description") + 40 + F.length("extra")
    row = one_row(
        spark.table("auction"),
        ids=F.count_distinct("id"),
        first=F.min("id"),
        last=F.max("id"),
        life_mean=F.avg(life),
        life_least=F.min(life),
        life_most=F.max(life),
        hot_seller=share(F.col("seller") % 100 == 0),
        category=share(F.col("category") == 10),
        category_least=F.min("category"),
        category_most=F.max("category"),
        raised=F.min(F.col("reserve") - F.col("initialBid")),
        cheap=share(F.col("initialBid") < 10_000),
        independent=F.corr(F.log("initialBid"), F.log(F.col("reserve") - F.col("initialBid"))),
        item_most=F.max(F.length("itemName")),
        item_mean=F.avg(F.length("itemName")),
        description_most=F.max(F.length("description")),
        description_mean=F.avg(F.length("description")),
        untrimmed=share(F.col("itemName").rlike("^ | $") | F.col("description").rlike("^ | $")),
        strange=share(F.concat("itemName", "description").rlike("[^a-z ]")),
        size=F.avg(size),
        extra_ratio=F.max(F.length("extra") / (500 - size + F.length("extra"))),
    )
    assert (row.ids, row.first, row.last) == (60_000, 1000, 60_999)
    # An auction runs 1 ms to twice the time in which 1666 events happen, uniformly.
    assert (row.life_least, row.life_most) == (1, 3332)
    assert row.life_mean == pytest.approx(1666.5, abs=15)
    assert row.hot_seller == pytest.approx(0.7525, abs=0.007)
    assert row.category == pytest.approx(0.2, abs=0.006)
    assert (row.category_least, row.category_most) == (10, 14)
    assert row.raised >= 100
    assert row.cheap == pytest.approx(1 / 3, abs=0.008)
    assert abs(row.independent) < 0.015
    # Lengths are uniform on 3..19 and 3..99; trimming takes 1/6 off in the mean.
    assert row.item_most == 19
    assert row.item_mean == pytest.approx(11 - 1 / 6, abs=0.1)
    assert row.description_most == 99
    assert row.description_mean == pytest.approx(51 - 1 / 6, abs=0.5)
    assert row.untrimmed == row.strange == 0
    assert row.size == pytest.approx(500, abs=2)
    assert row.extra_ratio <= 1.2


def test_persons(spark: SparkSession) -> None:
    texts = ("name", "emailAddress", "creditCard", "city", "state")
    size = sum((F.length(text) for text in texts), F.lit(8)) + F.length("extra")
    email = F.col("emailAddress").rlike(r"^[a-z ]{0,6}@[a-z ]{0,4}\.com$")
    untrimmed = F.col("emailAddress").rlike(r"^ | @|@ | \.com$")
    row = one_row(
        spark.table("person"),
        ids=F.count_distinct("id"),
        first=F.min("id"),
        last=F.max("id"),
        names=F.count_distinct("name"),
        cities=F.count_distinct("city"),
        states=F.count_distinct("state"),
        pairs=F.count_distinct("city", "state"),
        local=share(F.col("state").isin("OR", "ID", "CA")),
        emails=share(email & ~untrimmed),
        cards=share(F.col("creditCard").rlike(r"^\d{4}( \d{4}){3}$")),
        different_cards=F.count_distinct("creditCard"),
        size=F.avg(size),
    )
    assert (row.ids, row.first, row.last) == (20_000, 1000, 20_999)
    assert (row.names, row.cities, row.states, row.pairs) == (99, 10, 6, 60)
    assert row.local == pytest.approx(0.5, abs=0.012)
    assert row.emails == row.cards == 1
    assert row.different_cards == 20_000
    assert row.size == pytest.approx(200, abs=1)


def test_hot_sellers_are_never_hot_bidders(spark: SparkSession) -> None:
    def busy(kind: str, column: str, least: int) -> set[int]:
        counts = spark.table(kind).groupBy(F.col(column).alias("who")).count()
        return {row.who for row in counts.where(F.col("count") > least).collect()}

    sellers, bidders = busy("auction", "seller", 150), busy("bid", "bidder", 2000)
    assert len(sellers) == len(bidders) == 200
    assert sellers.isdisjoint(bidders)


def test_q3_finds_about_a_tenth_of_the_auctions(spark: SparkSession) -> None:
    sellers = spark.table("person").where("state IN ('OR', 'ID', 'CA')").select("id")
    wanted = spark.table("auction").where("category = 10")
    found = wanted.join(sellers, wanted.seller == sellers.id).count()
    # 200 hot sellers with three quarters of the auctions share a state each: hence the tolerance.
    assert found / 60_000 == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("size", [9, 1000])
def test_disorder_only_swaps_places_within_groups(generate: Any, size: int) -> None:
    columns = ("n", "id", "dateTime")
    ordered = generate("auction", range(20_000), tps=TPS).select(*columns).collect()
    mixed = generate("auction", range(20_000), tps=TPS, out_of_order_group_size=size)
    rows = mixed.select(*columns).orderBy("n").collect()
    whole_groups = 1000 + (20_000 // size * size // 50) * 3  # ids below lie in a whole group
    events = [{(row.id, row.dateTime) for row in part} for part in (ordered, rows)]
    assert {e for e in events[0] if e[0] < whole_groups} == {
        e for e in events[1] if e[0] < whole_groups
    }
    newest, lateness = 0, 0
    for row in rows:
        newest = max(newest, row.dateTime)
        lateness = max(lateness, newest - row.dateTime)
    assert 0 < lateness < size
