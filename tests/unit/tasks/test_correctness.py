"""A timed repetition whose rows are not the right ones is never taken for fast."""

from __future__ import annotations

from nexmark.recording.repetitions import Expected, Produced, faults

RIGHT = Produced(input_rows=100, output_rows=92, digest="aa")


def test_repetitions_that_agree_are_right() -> None:
    assert faults(100, {1: RIGHT, 2: RIGHT}, None) == {}
    assert faults(100, {1: RIGHT}, Expected(92, "aa", "the verified result")) == {}


def test_a_repetition_that_disagrees_with_most_is_wrong() -> None:
    wrong = Produced(100, 92, "bb")
    found = faults(100, {1: RIGHT, 2: wrong, 3: RIGHT}, None)
    assert list(found) == [2]
    assert found[2] == (
        "put out 92 rows with digest bb, but most repetitions' result has 92 rows with digest aa"
    )


def test_without_a_majority_no_repetition_counts_as_right() -> None:
    found = faults(100, {1: RIGHT, 2: Produced(100, 92, "bb")}, None)
    assert sorted(found) == [1, 2]
    assert found[1] == "the repetitions disagree: digests aa, bb"


def test_a_reference_outvotes_all_repetitions() -> None:
    found = faults(100, {1: RIGHT, 2: RIGHT}, Expected(92, "cc", "the verified result"))
    assert sorted(found) == [1, 2]
    assert "the verified result has 92 rows with digest cc" in found[1]


def test_the_same_digest_with_another_row_count_is_wrong() -> None:
    """A digest that adds hashes up could be met by chance; the count must be right as well."""
    assert faults(100, {1: Produced(100, 91, "aa")}, Expected(92, "aa", "x")).keys() == {1}


def test_a_repetition_that_did_not_read_everything_is_wrong_and_has_no_vote() -> None:
    short = Produced(input_rows=99, output_rows=92, digest="bb")
    found = faults(100, {1: RIGHT, 2: short, 3: short}, None)
    assert found == {2: "read 99 of 100 events", 3: "read 99 of 100 events"}


def test_without_a_digest_only_the_events_count() -> None:
    one, two = Produced(100, 50, None), Produced(100, 51, None)
    assert faults(100, {1: one, 2: two}, None) == {}
    assert faults(100, {1: one, 2: two}, Expected(50, "aa", "x")) == {}


def test_no_repetition_at_all_is_not_a_fault_of_one() -> None:
    assert faults(100, {}, None) == {}
