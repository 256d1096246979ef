"""The boundary events: whole, always the same, and never late."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from nexmark_jobs import boundary
from nexmark_jobs.sources.recorded_events import KINDS, open_recording

DELAY = timedelta(seconds=4)
"""What a watermark waits (`nexmark_jobs.queries.formulation.WATERMARK_DELAY`)."""


def test_every_event_is_whole_and_numbered(tmp_path: Path) -> None:
    boundary.write(tmp_path)
    recording = open_recording(tmp_path)
    assert recording.numbered
    assert sum(recording.events) == len(boundary.events())
    numbers = [json.loads(line)["n"] for part in boundary.lines() for line in part]
    assert numbers == list(range(len(numbers)))


def test_they_are_the_same_every_time() -> None:
    assert boundary.lines() == boundary.lines()


def times(part: list[str], kind: str) -> list[datetime]:
    entities = (json.loads(line)[kind] for line in part)
    return [datetime.fromisoformat(entity["dateTime"]) for entity in entities if entity]


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_part_begins_exactly_as_late_as_the_watermark_waits(kind: str) -> None:
    first, second = boundary.lines()
    assert min(times(second, kind)) == max(times(first, kind)) - DELAY


def test_command(tmp_path: Path) -> None:
    command = [sys.executable, Path(boundary.__file__), tmp_path / "new"]
    subprocess.run(command, check=True)
    assert len(open_recording(tmp_path / "new").files) == len(boundary.lines())
    again = subprocess.run(command, check=False, capture_output=True, text=True)
    assert again.returncode == 1
    assert again.stderr.startswith("boundary.py: error: [Errno 17] File exists")
    assert again.stderr.count("\n") == 1
