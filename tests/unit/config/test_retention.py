"""`retention.yaml`: what it says is kept, and a mistake in it is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.config import ConfigError, Retention, load, load_retention


def test_the_file_that_ships_keeps_rows_longer_than_run_directories(conf: Path) -> None:
    found = load(conf).retention
    assert found == load_retention(conf)
    assert found.schedule is not None
    assert found.event_log_nights
    assert found.run_nights
    assert found.raw_row_nights
    assert found.event_log_nights < found.run_nights < found.raw_row_nights


def test_without_the_file_everything_is_kept(conf: Path) -> None:
    (conf / "retention.yaml").unlink()
    assert load(conf).retention == Retention()
    assert set(Retention().model_dump().values()) == {None}
    assert Retention().host_builds == 4  # the disk of a host is no archive


def test_a_host_keeps_as_many_builds_as_the_home(conf: Path) -> None:
    (conf / "retention.yaml").write_text("retention: {builds: 7}\n")
    assert load(conf).retention.host_builds == 7


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        ("retain: {}", "1: retain", "unknown key 'retain'; did you mean 'retention'?"),
        ("retention: 5", "1: retention", "expected keys and values, got 5"),
        ("retention:", "1: retention", "expected keys and values"),
        (
            "retention:\n  run_night: 60",
            "2: retention.run_night",
            "unknown key 'run_night'; did you mean 'run_nights'?",
        ),
        ("retention:\n\n  run_nights: 9", "3: retention.run_nights", "greater than or equal to 10"),
        ("retention:\n  run_nights: soon", "2: retention.run_nights", "'soon'"),
        ("retention:\n  builds: 1", "2: retention.builds", "greater than or equal to 2"),
        ("retention:\n  schedule: daily", "2: retention.schedule", "is not a cron expression"),
        (
            "retention:\n  run_nights: 60\n  raw_row_nights: 30",
            "3: retention.raw_row_nights",
            "is 30, but run directories are kept for 60 nights",
        ),
        (
            "retention:\n  raw_row_nights: 30",
            "2: retention.raw_row_nights",
            "is 30, but run directories are kept for ever",
        ),
        (
            "retention:\n  event_log_nights: 61\n  run_nights: 60",
            "2: retention.event_log_nights",
            "is 61, but event logs go with their run directory after 60",
        ),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(
    conf: Path, text: str, where: str, says: str
) -> None:
    (conf / "retention.yaml").write_text(text + "\n")
    with pytest.raises(ConfigError) as raised:
        load(conf)
    assert f"retention.yaml:{where}: " in str(raised.value)
    assert says in str(raised.value)
