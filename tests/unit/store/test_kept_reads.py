"""What was read is not read again until somebody writes, in this process or in another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nexmark.store import Store, StoreError, ValidationRecord, history, open_store
from nexmark.store.kept_reads import MOST, NOTHING, KeptReads, kept_until_written, key_of
from tests.unit.store.night_builder import OK, judged
from tests.unit.store.store_builder import DAG, night, record, repetition, statements


@contextmanager
def reads(store: Store) -> Iterator[list[str]]:
    """Yield a list that takes every statement that reads verdicts."""
    verdicts: list[str] = []
    with statements(store) as made:
        yield verdicts
    verdicts += [each for each in made if "FROM verdict" in " ".join(each.split())]


def measured(store: Store, number: int) -> str:
    """A judged night whose verdict on q5 can be accepted."""
    run = judged(store, number, OK)
    for each in (1, 2, 3):
        store.record_repetition(repetition(run, "q5", each))
    store.record_validation(ValidationRecord(run, "q5", True))
    return run


def shown(store: Store) -> list[float | None]:
    """The ratios of the newest nights."""
    return [each.ratio for each in history.judged(store, history.nights(store, [DAG], 10))]


def test_what_nobody_has_changed_is_read_once(store: Store) -> None:
    judged(store, 1, OK)
    with reads(store) as first:
        before = shown(store)
    with reads(store) as second:
        assert shown(store) == before
    assert (len(first), second) == (1, [])


def test_each_caller_has_a_list_of_its_own(store: Store) -> None:
    judged(store, 1, OK)
    shown_nights = history.nights(store, [DAG], 10)
    history.judged(store, shown_nights).clear()
    assert len(history.judged(store, shown_nights)) == 1


def test_what_another_process_has_written_is_seen(store: Store, database: str) -> None:
    judged(store, 1, OK)
    assert len(shown(store)) == 1
    with open_store(database) as other:
        run = measured(other, 2)
        assert len(shown(store)) == 2
        other.accept(run, "ada", "wanted so", ["q5"])
    assert [row.who for row in store.acceptances()] == ["ada"]


def test_an_acceptance_that_is_taken_back_is_seen(store: Store) -> None:
    run = measured(store, 1)
    store.accept(run, "ada", "wanted so", ["q5"])
    (row,) = store.acceptances()
    store.withdraw(row.id, "grace", "it was not")
    (row,) = store.acceptances()
    assert row.withdrawal is not None


def test_a_write_that_fails_forgets_nothing(store: Store) -> None:
    run = judged(store, 1, OK)
    shown(store)
    before = store.changes()
    with pytest.raises(StoreError):
        store.accept(run, "ada", "no such query", ["q99"])
    assert store.changes() == before
    with reads(store) as again:
        shown(store)
    assert again == []


def test_every_transaction_that_writes_is_counted_once(store: Store, database: str) -> None:
    before = store.changes()
    with open_store(database) as other:
        record(other, night())
        counted = other.changes() - before
    assert counted > 0
    assert store.changes() == before + counted
    store.record_grade(night().run, "steady")
    assert store.changes() == before + counted + 1


def test_one_moment_does_not_see_what_was_kept_after_it_began(store: Store, database: str) -> None:
    judged(store, 1, OK)
    with store.at_one_moment() as moment:
        assert len(shown(moment)) == 1
        with open_store(database) as other:
            judged(other, 2, OK)
        assert len(shown(store)) == 2
        assert len(shown(moment)) == 1
    assert len(shown(store)) == 2


def test_a_function_is_kept_by_its_arguments(store: Store) -> None:
    calls: list[tuple[object, ...]] = []

    @kept_until_written
    def read(reader: Store, *queries: str, limit: int = 1) -> tuple[object, ...]:
        calls.append((*queries, limit))
        return calls[-1]

    assert read(store, "q5") == ("q5", 1)
    assert read(store, "q5", limit=2) == ("q5", 2)
    assert read(store, "q0", "q5") == ("q0", "q5", 1)
    assert read(store, "q5") == ("q5", 1)
    assert len(calls) == 3


def test_results_that_are_not_asked_for_any_more_go() -> None:
    kept = KeptReads()
    kept.get(1, "first")
    for number in range(MOST + 1):
        kept.put(1, number, [number])
        kept.get(1, 0)  # the oldest one, but in use
    assert kept.get(1, 0) == [0]
    assert kept.get(1, 1) is NOTHING
    assert kept.get(1, MOST) == [MOST]


def test_what_was_read_before_a_write_is_not_kept_after_it() -> None:
    """Two threads: one reads while the other one has seen a later state."""
    kept = KeptReads()
    assert kept.get(1, "q5") is NOTHING
    assert kept.get(2, "q5") is NOTHING
    kept.put(1, "q5", "old")
    assert kept.get(2, "q5") is NOTHING


def test_rows_count_by_their_ids_and_lists_by_their_content(store: Store) -> None:
    run = record(store, night())
    assert key_of(store.night(run)) == key_of(store.night(run)) == ("NightRow", run)
    assert key_of(["a", "b"]) == key_of(("a", "b")) != key_of(["b", "a"])
    assert key_of({"a": ["b"]}) == key_of({"a": ("b",)}) != key_of({"a": ["c"]})
    assert key_of({"a", "b"}) == key_of(frozenset({"b", "a"}))
