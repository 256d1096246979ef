"""Raw rows of a night go all or not at all; what was said of it stays, and says that they went."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

from nexmark.evidence.night_evidence import make_report, night_evidence
from nexmark.report.evidence_files import night_html
from nexmark.report.table import report_text
from nexmark.store import Refused, Store, StoreError, open_store
from nexmark.store.connecting import POSTGRESQL
from nexmark.store.table_rows import CanaryRow, PartRow, PlanRow, RepetitionRow, SeriesRow
from tests.unit.store.night_builder import (
    QUERIES,
    canary,
    judge,
    paired,
    record_night,
    record_pair,
)
from tests.unit.store.store_builder import BuildRecord, night, record, repetition, series

RAW = (RepetitionRow, PartRow, SeriesRow, CanaryRow)
PLAN = {"text": "Scan", "skeleton": "Scan", "skeleton_hash": "1"}


def counts(store: Store) -> dict[str, int]:
    with store.reading() as session:
        rows = {row: session.scalar(select(func.count()).select_from(row)) for row in RAW}
    return {row.__tablename__: int(count or 0) for row, count in rows.items()}


def measured(store: Store, number: int, slower: float = 1.0) -> str:
    """A judged night of pairs with a row of each raw kind."""
    other = BuildRecord("sha-429", "4.2.9", "pypi:4.2.1")
    run = record_night(store, paired(number, baseline_builds=[other]), {"q5": slower})
    store.record_canary(run, [canary("before", 1.0), canary("after", 1.1)])
    store.record_repetition(
        repetition(run, "q0", 1, result={"plan": PLAN}, series=[series()], position=1)
    )
    judge(store, run)
    return run


def test_the_rows_of_one_night_go_and_its_verdicts_stay(store: Store) -> None:
    old, new = measured(store, 1, slower=1.3), measured(store, 2)
    of_both, verdicts = counts(store), store.verdicts(old)
    assert all(of_both[name] for name in ("repetition", "canary", "sample_series"))
    gone = store.prune_raw_rows(old)
    of_new = counts(store)
    assert gone == sum(of_both.values()) - sum(of_new.values())
    assert store.repetitions(old) == []
    assert store.canaries(old) == []
    assert len(store.repetitions(new)) == of_new["repetition"] > 0
    assert store.verdicts(old) == verdicts
    assert len(store.validations(old)) == len(QUERIES)
    moment = store.night(old).rows_pruned
    assert moment is not None
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 60
    assert store.night(new).rows_pruned is None


def test_its_report_and_its_pages_say_when_they_were_pruned(store: Store) -> None:
    run = measured(store, 1, slower=1.3)
    before = make_report(store, run)
    store.prune_raw_rows(run)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    report = make_report(store, run)
    assert f"raw rows pruned on {day}" in report_text(report)
    assert [x.verdict for x in report.rows] == [x.verdict for x in before.rows]
    assert [x.ratio for x in report.rows] == [x.ratio for x in before.rows]
    assert {x.result for x in report.rows} == {"right"}
    assert report.failed == before.failed
    page = night_html(night_evidence(store, store.night(run)))
    assert f"pruned on {day}: the verdicts are as they were given" in " ".join(page.split())


def test_a_result_that_was_wrong_is_not_right_without_its_repetitions(store: Store) -> None:
    """Only a repetition said so: the validation was of another run of the query."""
    run = store_wrong(store)
    assert {x.query: x.result for x in make_report(store, run).rows}["q5"] == "WRONG"
    store.prune_raw_rows(run)
    assert {x.query: x.result for x in make_report(store, run).rows}["q5"] == "pruned"


def store_wrong(store: Store) -> str:
    from tests.unit.store.store_builder import measurement

    run = measured(store, 1)
    wrong = {"measurement": measurement(10.0), "invalid": "another digest"}
    record_pair(store, run, "q5", 1, candidate=wrong)
    judge(store, run)
    return run


def test_a_later_night_is_judged_alike_without_the_rows_of_earlier_ones(store: Store) -> None:
    """The gate learns from verdicts, so old raw rows are not needed for a new verdict."""
    earlier = [measured(store, number) for number in range(1, 6)]
    last = measured(store, 6, slower=1.2)
    verdicts = store.verdicts(last)
    for run in earlier:
        assert store.prune_raw_rows(run)
    again = judge(store, last)
    assert [(x.key, x.value, x.ratio, x.noise) for x in again] == [
        (x.key, x.value, x.ratio, x.noise) for x in verdicts
    ]


def test_a_failure_in_the_middle_leaves_all_rows(store: Store) -> None:
    run = measured(store, 1)
    before = counts(store)
    with store._engine.begin() as connection:  # the canary goes last, and cannot
        connection.execute(text("CREATE TABLE holds (id INTEGER REFERENCES canary(id))"))
        connection.execute(text("INSERT INTO holds SELECT max(id) FROM canary"))
    try:
        with pytest.raises(StoreError):
            store.prune_raw_rows(run)
        assert counts(store) == before
        assert store.night(run).rows_pruned is None
    finally:
        with store._engine.begin() as connection:
            connection.execute(text("DROP TABLE holds"))
    assert store.prune_raw_rows(run) == sum(before.values())


def test_two_at_once_delete_the_rows_once(store: Store, database: str) -> None:
    run = measured(store, 1)
    rows = sum(counts(store).values())
    with open_store(database) as other, ThreadPoolExecutor() as pool:
        gone = list(pool.map(lambda each: each.prune_raw_rows(run), (store, other)))
    assert sorted(gone) == [0, rows]


def test_a_baseline_keeps_its_rows_until_it_is_taken_back(store: Store) -> None:
    """It may have been accepted after it was decided that they go."""
    run = measured(store, 1)
    store.accept(run, "ann", "good", ["q0"])
    assert store.prune_raw_rows(run) == 0
    assert store.repetitions(run)
    store.withdraw(store.acceptances()[0].id, "ann", "bad")
    assert store.prune_raw_rows(run)


def test_a_night_without_its_rows_can_only_be_read(store: Store) -> None:
    run = measured(store, 1)
    other = BuildRecord("sha-429", "4.2.9", "pypi:4.2.1")
    store.prune_raw_rows(run)
    for write in (
        lambda: judge(store, run),
        lambda: store.accept(run, "ann", "good"),
        lambda: record_pair(store, run, "q0", candidate=1.0),
        lambda: store.record_night(paired(1, baseline_builds=[other])),
    ):
        with pytest.raises(Refused, match=r"its raw rows were pruned on 20\S+ so it can"):
            write()


def test_the_nights_for_replay_are_those_with_rows(store: Store, tmp_path: Path) -> None:
    runs = [measured(store, 1), measured(store, 2)]
    store.prune_raw_rows(runs[0])
    written = store.export(tmp_path / "export", "csv")
    assert written["nights.csv"] == 1
    assert runs[0] not in (tmp_path / "export" / "nights.csv").read_text()


def test_plans_go_with_the_last_repetition_that_had_them(store: Store) -> None:
    runs = [measured(store, 1), measured(store, 2)]
    assert store.prune_plans() == 0
    store.prune_raw_rows(runs[0])
    assert store.prune_plans() == 0
    store.prune_raw_rows(runs[1])
    assert store.prune_plans() == 1
    with store.reading() as session:
        assert session.scalar(select(func.count()).select_from(PlanRow)) == 0


def test_the_size_of_a_night_counts_its_rows_and_their_values(store: Store) -> None:
    small, large = record(store, night(1)), record(store, night(2))
    long = {"batches": [{"batch": number} for number in range(2000)]}
    store.record_repetition(repetition(large, "q0", 1, result=long, series=[series()]))
    found = store.raw_sizes()
    assert (found[small].rows, found[large].rows) == (2, 3)
    assert found[small].bytes > 100
    # PostgreSQL keeps long values packed.
    assert found[large].bytes - found[small].bytes > 1000
    store.prune_raw_rows(large)
    assert store.raw_sizes().keys() == {small}


def test_the_file_becomes_smaller(store: Store, database: str, backend: str) -> None:
    run = record(store, night(1))
    long = {"batches": [{"batch": number} for number in range(100_000)]}
    store.record_repetition(repetition(run, "q0", 1, result=long))
    assert store.shrink() == 0  # no page is free
    store.prune_raw_rows(run)
    if backend == POSTGRESQL:
        assert store.shrink() == 0  # the server uses the room again by itself
        return
    assert store.shrink() > 1_000_000
    file = Path(database.removeprefix("sqlite:///"))
    assert sum(path.stat().st_size for path in file.parent.glob("results.db*")) < 1_000_000
    assert store.night(run).rows_pruned is not None
