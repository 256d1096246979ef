"""Both implementations yield the same rows, bit for bit, and any slice can be generated alone."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nexmark.engines import Build
from nexmark_jobs.generator.draws import draw, field_key
from tests.conftest import ENGINES, engine_environment, engines
from tests.generator.plain_generator import PlainGenerator, fdlibm_exp, key, xxhash64_of_long

KINDS = ("person", "auction", "bid")

FLINK_COMPATIBLE = {"first_event_id": 1, "first_event_number": 1, "bidder_id_offset": 2000}
EVERY_OPTION = {
    "seed": -(2**63),
    "tps": 123_457,
    "base_time_ms": 1_700_000_000_123,
    "person_proportion": 2,
    "auction_proportion": 5,
    "bid_proportion": 13,
    "first_event_number": 17,
    "first_event_id": 31,
    "first_person_id": 7,
    "first_auction_id": 5_000_000,
    "first_category_id": 100,
    "num_categories": 3,
    "bidder_id_offset": 9,
    "person_id_lead": 0,
    "auction_id_lead": 3,
    "num_active_people": 50,
    "num_in_flight_auctions": 7,
    "hot_auction_ratio": 3,
    "hot_bidders_ratio": 1,
    "hot_sellers_ratio": 7,
    "hot_channels_ratio": 5,
    "hot_auction_block": 13,
    "hot_bidder_block": 11,
    "hot_seller_block": 17,
    "num_channels": 3_000_000,
    "avg_person_byte_size": 90,
    "avg_auction_byte_size": 4000,
    "avg_bid_byte_size": 300,
    "out_of_order_group_size": 7,
}
CASES: dict[str, tuple[range, dict[str, int], int | None]] = {
    "defaults": (range(2500), {}, None),
    "awkward spacing": (range(1000), {"tps": 7, "seed": 2}, None),
    "fast": (range(1000), {"tps": 10_000_000}, None),
    "slow": (range(500), {"tps": 1}, None),
    "big numbers": (range(10**9, 10**9 + 1000), {"tps": 7, "seed": -3}, None),
    "huge numbers": (range(10**13, 10**13 + 300), {"seed": 2**63 - 1}, None),
    "disorder": (range(4900, 6000), {"out_of_order_group_size": 1000, "tps": 1000}, None),
    "flink compatible": (range(1000), FLINK_COMPATIBLE, None),
    "every option": (range(3000), EVERY_OPTION, None),
    "every option, later": (range(10**7, 10**7 + 1000), EVERY_OPTION, None),
    "sentinels": (range(900, 1200), {"out_of_order_group_size": 64}, 1001),
    "sentinels, every option": (range(900, 1100), EVERY_OPTION, 1000),
    "events too big for a filler": (range(500), {"avg_auction_byte_size": 60}, None),
    "no filler": (
        range(500),
        {"avg_person_byte_size": 0, "avg_auction_byte_size": 0, "avg_bid_byte_size": 32},
        None,
    ),
    "one channel": (range(500), {"num_channels": 2, "hot_channels_ratio": 1}, None),
    "many channels": (range(500), {"num_channels": 10**9, "hot_channels_ratio": 1}, None),
}

CASES_OF_ENGINES = ("defaults", "awkward spacing", "every option, later", "sentinels")


def random_options(seed: int) -> dict[str, int]:
    """Some options set at random, the others left alone."""
    source = random.Random(seed)
    choices = {
        "seed": source.getrandbits(62),
        "tps": source.choice([3, 99, 1001, 30_000, 999_983]),
        "person_proportion": source.randint(1, 4),
        "auction_proportion": source.randint(1, 9),
        "bid_proportion": source.randint(1, 60),
        "first_event_id": source.randint(0, 100),
        "first_event_number": source.randint(0, 100),
        "num_active_people": source.randint(1, 3000),
        "num_in_flight_auctions": source.randint(1, 300),
        "hot_auction_ratio": source.randint(1, 10),
        "hot_auction_block": source.randint(1, 200),
        "avg_auction_byte_size": source.randint(0, 1000),
        "out_of_order_group_size": source.randint(1, 950),
    }
    return {name: value for name, value in choices.items() if source.random() < 0.6}


def as_dicts(frame: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in frame.collect()), key=lambda row: row["n"])


@pytest.mark.parametrize("case", CASES)
def test_same_rows_as_the_plain_implementation(generate: Any, case: str) -> None:
    numbers, options, end = CASES[case]
    plain = PlainGenerator(end, **options)
    for kind in KINDS:
        expected = plain.rows(kind, numbers)
        assert expected, "a case without events tests nothing"
        assert as_dicts(generate(kind, numbers, end, **options)) == expected


@pytest.mark.parametrize("seed", range(6))
def test_same_rows_with_random_options(generate: Any, seed: int) -> None:
    options = random_options(seed)
    start = random.Random(-seed).randrange(10**6)
    numbers = range(start, start + 400)
    plain = PlainGenerator(**options)
    for kind in KINDS:
        assert as_dicts(generate(kind, numbers, **options)) == plain.rows(kind, numbers), options


@pytest.mark.parametrize("kind", KINDS)
def test_a_slice_alone_equals_the_slice_of_the_whole(generate: Any, kind: str) -> None:
    whole = as_dicts(generate(kind, range(2000)))
    part = as_dicts(generate(kind, range(777, 1234)))
    assert part == [row for row in whole if 777 <= row["n"] < 1234]
    assert part != []


def test_seeds_give_different_events(generate: Any) -> None:
    one, two = (as_dicts(generate("bid", range(200), seed=seed)) for seed in (1, 2))
    for field in ("auction", "bidder", "price", "channel", "url", "extra"):
        assert [row[field] for row in one] != [row[field] for row in two], field


def test_draws_equal_a_plain_xxhash64(spark: SparkSession) -> None:
    numbers = [0, 1, 49, 50, 2**31, 2**40 + 7, -1]
    frame = spark.createDataFrame([(n,) for n in numbers], "n bigint")
    drawn = [row[0] % 2**64 for row in frame.select(draw(99, "some.field", F.col("n"))).collect()]
    assert drawn == [xxhash64_of_long((n ^ key(99, "some.field")) % 2**64, 42) for n in numbers]
    assert field_key(99, "some.field") % 2**64 == key(99, "some.field")


def test_plain_exp_equals_that_of_spark(spark: SparkSession) -> None:
    source = random.Random(5)
    values = [0.0, 1e-10, 0.3465, 0.3466, 1.0397, 1.0398, 13.815510557964274]
    values += [source.random() * 13.815510557964274 for _ in range(5000)]
    frame = spark.createDataFrame([(x,) for x in values], "x double")
    assert [row[0] for row in frame.select(F.exp("x")).collect()] == [fdlibm_exp(x) for x in values]


@pytest.mark.spark
@engines(ENGINES[0])
def test_every_engine_yields_the_same_rows_and_schema(
    engine_build: Callable[[str], Build], generate: Any, engine: str
) -> None:
    cases = [
        (kind, [numbers.start, numbers.start + 300], options, end)
        for kind in KINDS
        for numbers, options, end in (CASES[case] for case in CASES_OF_ENGINES)
    ]
    done = subprocess.run(
        [sys.executable, Path(__file__).parent / "rows_on_engine.py"],
        input=json.dumps(cases),
        env=engine_environment(engine_build(engine)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for case, line in zip(cases, done.stdout.splitlines(), strict=True):
        kind, bounds, options, end = case
        # Spark 3.5 refuses a checkpoint in which other columns cannot be null.
        schema = generate(kind, range(*bounds), end, **options).schema
        filled = [field.name for field in schema if not field.nullable]
        rows = PlainGenerator(end, **options).rows(kind, range(*bounds))
        assert json.loads(line) == [rows, filled], case
