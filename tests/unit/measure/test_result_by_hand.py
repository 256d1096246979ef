"""What a result file says: each field, what it may leave out, and what is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from nexmark.measure.host_samples import MeasurementError
from nexmark.measure.result_file import ResultBatch, data_batches, parse_result
from tests.unit.measure.sample_builder import T0, at, batch, result


def test_every_field_is_read() -> None:
    found = vars(parse_result(result(batch(7, 3, 5.5, 9, phase="end_of_input"))))
    assert found == {
        "query": "q5",
        "formulation": "panes",
        "build": "abc",
        "spark_version": "4.3.0",
        "conf_profile": "default",
        "application_id": "app-20261121040000-0000",
        "start": T0 + 2,
        "end": T0 + 62,
        "input_rows": 1_000_000,
        "output_rows": 5,
        "digest": "00ff00ff00ff00ff",
        "digest_kind": "sum",
        "late_rows": 0,
        "state_rows_max": 7,
        "state_rows_final": 5,
        "state_bytes_max": 9,
        "state_commit_ms": 1.5,
        "plan_skeleton_hash": "abcd",
        "exchanges": 2,
        "stateful_operators": 1,
        "batches": (ResultBatch(7, "end_of_input", T0 + 3, T0 + 5.5, 9, 2500.0),),
        "plan_text": "Plan",
        "events": 1_000_000,
    }


def test_a_run_may_know_neither_its_build_nor_a_digest_nor_how_much_it_was_to_read() -> None:
    left_out = ("build", "digest", "digest_kind", "workload")
    found = parse_result({k: v for k, v in result().items() if k not in left_out})
    assert (found.build, found.digest, found.digest_kind, found.events) == (None,) * 4


def test_a_run_of_one_event_is_a_run() -> None:
    assert parse_result(result(input_rows=1, workload={"events": 1})).input_rows == 1


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"start": at(62)}, "^result: it ended before it started"),
        ({"start": 5}, "^result: start is 5: Value error, not a time with its time zone"),
        ({"plan": {"text": "x"}}, "^result: plan.skeleton_hash is None: Field required"),
        ({"exchanges": None, "query": 5, "late_rows": "x"}, "^result: query is 5: "),
        ({"state": {"rows_max": "many"}}, "^result: state.rows_max is 'many': Input should be"),
        ({"schema_version": None}, "^result: schema_version None, this package reads 1"),
        ({"input_rows": 7}, "^result: it read 7 of 1,000,000 events"),
    ],
)
def test_the_first_field_that_is_wrong_is_named_with_its_value(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(MeasurementError, match=said):
        parse_result(result(**fields))


def test_the_source_of_a_refused_result_is_named() -> None:
    with pytest.raises(MeasurementError, match=r"^rep-1/result.json: it ended before it started"):
        parse_result(result(start=at(62)), "rep-1/result.json")


def test_data_batches_are_in_the_order_of_their_numbers() -> None:
    run = parse_result(
        result(batch(2, 30, 40, 1), batch(9, 50, 60, 0, "end_of_input"), batch(1, 12, 30, 1))
    )
    assert [x.number for x in data_batches(run.batches)] == [1, 2]


def test_executors_have_to_be_there_from_the_first_data_batch_to_the_end() -> None:
    later = result(batch(0, 3, 5, 0, phase="end_of_input"), batch(1, 12, 30, 1_000_000))
    assert parse_result(later).work == (T0 + 12, T0 + 62)
    assert parse_result(result(batches=[])).work == (T0 + 2, T0 + 62)
