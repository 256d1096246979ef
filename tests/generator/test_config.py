"""Options out of range are refused by name."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import pytest

from nexmark_jobs.generator import GeneratorConfig
from nexmark_jobs.generator.generator_options import changed_options
from nexmark_jobs.generator_config import BOUNDS, MAX_EVENTS
from tests.generator.plain_generator import GeneratorOptions


def test_defaults_are_the_published_ones() -> None:
    assert asdict(GeneratorConfig()) == asdict(GeneratorOptions())


@pytest.mark.parametrize("name", [field.name for field in fields(GeneratorConfig)])
@pytest.mark.parametrize("value", [2**70, -(2**70), 1.5, "1", True, None])
def test_every_option_is_checked(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        GeneratorConfig(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tps", 0),
        ("person_proportion", 0),
        ("auction_proportion", 0),
        ("bid_proportion", 0),
        ("num_categories", 0),
        ("hot_auction_ratio", 0),
        ("num_active_people", 0),
        ("num_in_flight_auctions", 0),
        ("num_channels", 0),
        ("hot_seller_block", 0),
        ("out_of_order_group_size", 0),
        ("out_of_order_group_size", 1906),
        ("avg_bid_byte_size", -1),
        ("first_event_id", -1),
    ],
)
def test_values_that_make_no_sense_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{name}: {value} "):
        GeneratorConfig(**{name: value})


def test_events_must_end_long_before_the_sentinels() -> None:
    GeneratorConfig(tps=1).check_span(10**9)
    with pytest.raises(ValueError, match=r"^events: .* raise the tps"):
        GeneratorConfig(tps=1).check_span(10**12)


def test_no_two_events_have_the_same_number_on_their_way_to_a_time() -> None:
    """An event number becomes a double (`time_ms`)."""
    fastest = GeneratorConfig(tps=10**9)
    fastest.check_span(MAX_EVENTS)
    assert float(MAX_EVENTS - 1) != float(MAX_EVENTS) == float(MAX_EVENTS + 1)
    with pytest.raises(ValueError, match=r"^events: .* can number, 9007199254740992; lower"):
        fastest.check_span(MAX_EVENTS + 1)
    with pytest.raises(ValueError, match=r"^events: .* can number, 9007199254740987; lower"):
        GeneratorConfig(tps=10**9, first_event_number=5).check_span(MAX_EVENTS)


def test_every_option_has_bounds() -> None:
    assert list(BOUNDS) == [field.name for field in fields(GeneratorConfig)]
    assert all(low < high for low, high in BOUNDS.values())


def test_changed_options_leave_out_defaults_seed_and_tps() -> None:
    config = GeneratorConfig(seed=9, tps=5, num_channels=3, hot_auction_ratio=2)
    assert changed_options(config) == {"num_channels": 3}
