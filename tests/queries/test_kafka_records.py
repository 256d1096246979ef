"""Which records of a topic are events, and what is said of the others; without a broker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs.errors import JobError, LateRowsError
from nexmark_jobs.sources.event_files import Sentinels, is_event
from nexmark_jobs.sources.kafka import Kafka, KafkaFeed, in_place, is_wanted, parsed, problems
from nexmark_jobs.sources.kafka_topic import Topic
from nexmark_jobs.sources.recorded_events import FIELDS, KINDS

VALUES: dict[str, Any] = {"bigint": 7, "string": "text", "timestamp": "2015-07-15 00:00:00.123"}
GONE = object()


def event(kind: str = "bid", n: Any = 3, event_type: Any = None, **changes: Any) -> str:
    """An event as JSON; a member that is changed to GONE is left out."""
    fields = {field: VALUES[type_] for field, type_ in FIELDS[kind].items()} | changes
    entity = {field: value for field, value in fields.items() if value is not GONE}
    place = KINDS.index(kind) if event_type is None else event_type
    members = {"n": n, "event_type": place, **dict.fromkeys(KINDS), kind: entity}
    return json.dumps({name: value for name, value in members.items() if value is not GONE})


def without(kind: str, value: Any) -> str:
    members = json.loads(event(kind)) | {kind: value}
    return json.dumps({name: each for name, each in members.items() if each is not GONE})


BAD: list[tuple[str | None, str]] = [
    (None, "without a value"),
    ("", "empty"),
    (" \t", "empty"),
    ("text", "not a JSON object"),
    ('{"n":1', "not a JSON object"),
    ("null", "not a JSON object"),
    ("5", "not a JSON object"),
    ("[]", "not a JSON object"),
    (f"[{event()}]", "not a JSON object"),
    (f"[{event()},{event()}]", "not a JSON object"),
    ("{}", "without an event_type of 0, 1 or 2"),
    (event(event_type=GONE), "without an event_type of 0, 1 or 2"),
    (event(event_type=3), "without an event_type of 0, 1 or 2"),
    (event(event_type=-1), "without an event_type of 0, 1 or 2"),
    (event(event_type="2"), "without an event_type of 0, 1 or 2"),
    (event(event_type=2.5), "without an event_type of 0, 1 or 2"),
    *((without(kind, value), f"without '{kind}'") for kind in KINDS for value in (None, GONE)),
    (without("bid", 5), "without a right bid.auction"),
    (event("bid", event_type=1), "without 'auction'"),
    (event(price="7"), "without a right bid.price"),
    (event(price=7.5), "without a right bid.price"),
    (event(price=2**63), "without a right bid.price"),
    (event(price=True), "without a right bid.price"),
    (event(dateTime="yesterday"), "without a right bid.dateTime"),
    (event(dateTime=1436918400000), "without a right bid.dateTime"),
    (event(dateTime="2015-02-30 00:00:00"), "without a right bid.dateTime"),
    *(
        (event(kind, **{field: value}), f"without a right {kind}.{field}")
        for kind in KINDS
        for field in FIELDS[kind]
        for value in (None, GONE)
    ),
]
BAD_NUMBERS = [event(n=GONE), event(n=None), event(n="x")]
GOOD = [
    *map(event, KINDS),
    event(dateTime="2015-07-15T00:00:00"),
    event(dateTime="2015-07-15 00:00:00.123456789"),
    event(extra="", more={"a": [1]}),
    json.dumps(json.loads(event()), indent=1),
]


def records(spark: SparkSession, values: list[str | None]) -> DataFrame:
    """Records of partition 4, their offsets from 0 on."""
    rows = [
        (None if value is None else value.encode(), 4, place) for place, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, "value binary, partition int, offset bigint").coalesce(1)


def found(spark: SparkSession, values: list[str | None], *, numbered: bool) -> list[str | None]:
    rows = problems(records(spark, values), numbered=numbered).orderBy("offset").collect()
    return [row["problem"] for row in rows]


@pytest.mark.spark
def test_what_is_wrong_is_said_and_what_is_not_is_an_event(spark: SparkSession) -> None:
    values = [value for value, _ in BAD] + BAD_NUMBERS + GOOD
    said = [said for _, said in BAD] + ["without a number n"] * 3 + [None] * len(GOOD)
    assert found(spark, values, numbered=True) == said
    assert found(spark, [*BAD_NUMBERS], numbered=False) == [None] * 3
    numbered = is_event() & F.col("n").isNotNull()
    rows = parsed(records(spark, values)).orderBy("offset").select(numbered).collect()
    assert [row[0] for row in rows] == [problem is None for problem in said]


@pytest.mark.spark
def test_a_stream_passes_over_none_of_them(spark: SparkSession) -> None:
    """Not even where the query's own condition, tested first, would drop it."""
    condition = is_wanted("bid", numbered=True)
    one_of_each = {said: value for value, said in BAD if "person" not in said}
    for value in [*list(one_of_each.values())[:8], BAD_NUMBERS[0]]:
        frame = parsed(records(spark, [value])).where(condition)
        with pytest.raises(PySparkException, match="nexmark: no event at 4:0"):
            frame.select("bid.auction", "n").where("auction % 7 = 0 and n = 3").collect()
    assert parsed(records(spark, [*GOOD])).where(condition).count() == len(GOOD) - 2


LAYOUTS: dict[str, tuple[list[list[int]], int]] = {
    "n mod P": ([[0, 2, 4], [1, 3, 5]], 0),
    "n + 1 mod P": ([[1, 3, 5], [0, 2, 4]], 0),
    "from 7 on": ([[7, 10], [8, 11], [9]], 0),
    "of unlike lengths": ([[0, 2, 4, 6], [1]], 0),
    "some left out": ([[0, 5, 9], [3, 8, 10]], 0),
    "some lines left out, by number": ([[0, 2, 8, 10, 12], [7]], 0),
    "halves": ([[0, 1, 2], [3, 4, 5]], 4),
    "one of halves": ([[0, 2, 4], [3, 4, 5]], 2),
    "two changed places": ([[0, 4, 2], [1, 3, 5]], 1),
    "between partitions": ([[0, 3, 4], [1, 2, 5]], 1),
    "sent twice": ([[0, 2, 2, 4], [1, 3, 5]], 2),
    "backwards": ([[4, 2, 0], [5, 3, 1]], 4),
}


@pytest.mark.spark
def test_events_in_another_layout_are_found_by_their_numbers(spark: SparkSession) -> None:
    """Also in a topic whose first offset is not 0; a topic that lacks events may be read."""
    begin = 5
    for layout, (partitions, wrong) in LAYOUTS.items():
        values = ", ".join(
            f"({n}L, {partition}, {begin + place}L)"
            for partition, numbers in enumerate(partitions)
            for place, n in enumerate(numbers)
        )
        rows = spark.sql(f"SELECT * FROM VALUES {values} AS t(n, partition, offset)")
        begins = (begin,) * len(partitions)
        topic = Topic("t", "id", begins, tuple(begin + len(each) for each in partitions))
        placed = in_place(topic, [numbers[0] for numbers in partitions])
        unknown = in_place(topic, [None, "x", 2**63][: len(partitions)])
        found = rows.select(placed.alias("placed"), unknown.alias("unknown")).collect()
        assert [row["placed"] for row in found].count(False) == wrong, layout
        assert all(row["unknown"] for row in found), layout


@pytest.mark.spark
def test_a_stream_fails_on_an_event_that_is_not_in_its_place(spark: SparkSession) -> None:
    rows = records(spark, [event(n=n) for n in (9, 10, 11, 11, 13)])
    placed = in_place(Topic("t", "id", (0,), (5,)), [9])
    one = rows.withColumn("partition", F.lit(0))
    said = problems(one, numbered=True, placed=placed).orderBy("offset")
    wrong = "not in its place"
    assert [row["problem"] for row in said.collect()] == [None, None, None, wrong, None]
    stream = parsed(one).where(is_wanted("bid", numbered=True, placed=placed))
    with pytest.raises(PySparkException, match="nexmark: no event at 0:3"):
        stream.select("bid.auction").collect()


class NoBrokers:
    """Brokers whose topic stays as it was."""

    def topic(self, name: str) -> Topic:
        return TOPIC


TOPIC = Topic("t", "id", begins=(0, 5), ends=(10, 15))


def feed() -> KafkaFeed:
    return KafkaFeed(Kafka(None, NoBrokers(), TOPIC, 4, (0, 1), Sentinels(None)))  # type: ignore[arg-type]


def progress(
    batch: int, records: int, *scans: tuple[Any, Any], latest: Any = (10, 15), late: int = 0
) -> Any:
    def offsets(of: Any) -> Any:
        return of and {"t": {str(partition): at for partition, at in enumerate(of)}}

    sources = [
        {
            "description": "KafkaV2[Subscribe[t]]",
            "startOffset": offsets(start),
            "endOffset": offsets(end),
            "latestOffset": offsets(latest),
        }
        for start, end in scans
    ]
    sources.append({"description": "FileStreamSource[file:/s]", "endOffset": {"logOffset": 0}})
    return {
        "batchId": batch,
        "sources": sources,
        "stateOperators": [{"operatorName": "dedupe"}, {"numRowsDroppedByWatermark": late}],
        "observedMetrics": {"nexmark_output": {"rows": 9}, "nexmark_scan_0": {"records": records}},
    }


def test_the_data_end_where_every_scan_is_at_the_end() -> None:
    follow = feed()
    assert follow.events == 20
    first = progress(0, 24, (None, (6, 11)), (None, (6, 11)))
    assert follow.take(first) == 12
    assert not follow.finished(first)
    last = progress(1, 16, ((6, 11), (10, 15)), ((6, 11), (10, 15)))
    assert follow.take(last) == 8
    assert follow.data_batches == 2
    assert follow.finished(last)


def test_what_a_topic_grows_by_is_not_counted() -> None:
    follow = feed()
    grown = {"latest": (90, 15)}
    assert follow.take(progress(0, 37, (None, (13, 10)), (None, (13, 11)), **grown)) == 15
    last = progress(1, 31, ((13, 10), (25, 15)), ((13, 11), (23, 15)), **grown)
    assert follow.take(last) == 5
    assert follow.finished(last)


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (progress(0, 11, (None, (6, 11))), "kafka:t: batch 0 has 12 offsets but 11 records: some"),
        (
            progress(0, 25, (None, (6, 11)), (None, (6, 12))),
            "kafka:t: batch 0 ends at (6, 11) in one scan and at (6, 12) in another; run again",
        ),
        (progress(0, 9, (None, (1, 6, 7))), "kafka:t: it had 2 partitions and now has 3"),
    ],
)
def test_a_batch_that_is_not_whole(batch: Any, said: str) -> None:
    with pytest.raises(JobError) as error:
        feed().take(batch)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("latest", "said"),
    [
        ((99, 15), "kafka:t grew while it was read; run again when it is filled"),
        (
            (10, 15),
            "kafka:t: event n has to be in partition n mod 2, in the order of the numbers; "
            "topics that `nexmark kafka fill` has made are so",
        ),
    ],
)
def test_rows_behind_the_watermark_are_refused_with_their_cause(latest: Any, said: str) -> None:
    follow = feed()
    late = progress(0, 12, (None, (6, 11)), latest=latest, late=2)
    follow.take(late)
    with pytest.raises(LateRowsError) as error:
        follow.check_in_time(late)
    dropped = "2 rows came behind the watermark and were dropped, so that the result is wrong"
    assert str(error.value) == f"batch 0: {dropped}: {said}"
