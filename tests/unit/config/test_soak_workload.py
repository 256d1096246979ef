"""A soak workload is checked before it costs hours."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nexmark.config import Workload, load, paths, profile_path
from nexmark.config.load import with_sizes
from nexmark.errors import KeyedError

SIZE = {"events": 120_000, "tps": 1_000, "rows_per_batch": 200}
VERIFY = {"events": 20_000, "tps": 1_000, "rows_per_batch": 10_000}


def workload(**changes: Any) -> Workload:
    given = {"kind": "soak", **SIZE, "verify": VERIFY, "queries": ("q0",), **changes}
    return Workload.model_validate({"name": "mine", **with_sizes(given)})


def test_a_soak_is_measured_nine_times_after_its_warm_up_unless_it_says_otherwise() -> None:
    assert workload().pause_every("q0") == 74  # of 600 batches, two of them warm-up
    assert workload(soak={"samples": 50}).pause_every("q0") == 12
    assert workload(warmup_batches=100).pause_every("q0") == 62
    larger = workload(sizes={"q0": {"events": 400_000}})
    assert larger.pause_every("q0") == 249


@pytest.mark.parametrize(
    "changes",
    [
        {"warmup_batches": 580},
        {"soak": {"samples": 500}},
        {"sizes": {"q5": {"events": 2_000}}},
    ],
)
def test_too_few_batches_for_the_samples_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((KeyedError, ValidationError), match="samples after it; raise"):
        workload(**changes)


def test_soak_belongs_to_its_kind() -> None:
    with pytest.raises(KeyedError, match="soak belongs to kind: soak; remove it"):
        with_sizes({**SIZE, "soak": {"samples": 20}})


def test_the_docs_name_what_the_profile_fills_in_the_warm_up() -> None:
    """All of it is full before the batches that count."""
    profile = load_profile()
    limits = {name: int(value) for name, value in profile.items() if "etain" in name}
    limits |= {name: int(value) for name, value in profile.items() if name.endswith("Updates")}
    docs = (paths.repository() / "docs" / "soak.md").read_text()
    assert [name for name in limits if f"`{name}`" not in docs] == []
    warmup = load().workloads["soak"].warmup_batches
    of_tasks = "spark.ui.retainedTasks"  # some for each batch
    assert max(limit for name, limit in limits.items() if name != of_tasks) < warmup


def load_profile() -> dict[str, str]:
    lines = profile_path("soak").read_text().splitlines()
    return dict(line.split(None, 1) for line in lines if line and not line.startswith("#"))
