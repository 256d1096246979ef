"""A soak workload is checked before it costs hours."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nexmark.config import Workload
from nexmark.config.load import with_sizes
from nexmark.errors import KeyedError

SIZE = {"events": 120_000, "tps": 1_000, "rows_per_batch": 200}
VERIFY = {"events": 20_000, "tps": 1_000, "rows_per_batch": 10_000}


def workload(**changes: Any) -> Workload:
    given = {"kind": "soak", **SIZE, "verify": VERIFY, "queries": ("q0",), **changes}
    return Workload.model_validate({"name": "mine", **with_sizes(given)})


def test_a_soak_is_measured_twenty_times_unless_it_says_otherwise() -> None:
    assert workload().pause_every("q0") == 30  # of 600 batches
    assert workload(soak={"samples": 50}).pause_every("q0") == 12
    larger = workload(sizes={"q0": {"events": 400_000}})
    assert larger.pause_every("q0") == 100


@pytest.mark.parametrize(
    "changes",
    [
        {"warmup_batches": 500},
        {"soak": {"samples": 500}},
        {"sizes": {"q5": {"events": 2_000}}},
    ],
)
def test_too_few_batches_for_the_samples_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises((KeyedError, ValidationError), match="too few for 6 of"):
        workload(**changes)


def test_soak_belongs_to_its_kind() -> None:
    with pytest.raises(KeyedError, match="soak belongs to kind: soak; remove it"):
        with_sizes({**SIZE, "soak": {"samples": 20}})
