"""What is shown or sealed is of one moment of the database, and read in one transaction."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import event, update
from sqlalchemy.exc import DBAPIError, OperationalError

from nexmark.evidence.night_evidence import make_report, night_evidence
from nexmark.evidence.query_evidence import query_evidence
from nexmark.model import CPU, Value
from nexmark.night.run_directory import RunDirectory
from nexmark.recording import night_records
from nexmark.report.evidence_files import write_night
from nexmark.store import BuildRecord, Store, StoreError, open_store
from nexmark.store.table_rows import NightRow
from nexmark.tasks import signoff_steps
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import paired
from tests.unit.store.store_builder import record, statements


@pytest.fixture
def run(store: Store, tmp_path: Path) -> str:
    """A judged night of two queries."""
    builds = [BuildRecord("sha-429", "4.2.9", "pypi:4.2.1")]
    fields = {"queries": ["q0", "q5"], "directory": tmp_path / "run", "baseline_builds": builds}
    name = record(store, paired(**fields))
    say(store, name, Value.REGRESSION, 1.12)
    return name


def say(store: Store, run: str, value: Value, ratio: float) -> None:
    numbers = {"ratio": ratio, "lo": ratio - 0.01, "hi": ratio + 0.01, "pairs": 3}
    numbers |= {"shift": 0.1, "spread": 0.01, "noise": 0.01}
    said = [Verdict(run, x, CPU, value, "", "paired", 8, **numbers) for x in ("q0", "q5")]
    store.record_verdicts(run, said)


@contextmanager
def transactions(store: Store) -> Iterator[list[None]]:
    """Yield a list with an element for every transaction that begins."""
    begun: list[None] = []

    def begin(*_: Any) -> None:
        begun.append(None)

    event.listen(store._engine, "begin", begin)
    yield begun
    event.remove(store._engine, "begin", begin)


@pytest.mark.parametrize("deep", [True, False])
def test_a_night_is_read_in_one_transaction(store: Store, run: str, deep: bool) -> None:
    night = store.night(run)
    with transactions(store) as begun:
        night_evidence(store, night, deep=deep)
    assert len(begun) == 1


def test_the_rows_of_a_night_are_read_once(store: Store, run: str) -> None:
    """However many lines, alarms and commands are made of them; verdicts of other nights apart."""
    night = store.night(run)
    with statements(store) as made:
        night_evidence(store, night, deep=False)
    assert readings(made) == dict.fromkeys(ONCE, 1)


ONCE = ("verdict", "validation", "compatibility", "canary")


def readings(made: list[str]) -> dict[str, int]:
    """How often the rows of one night were read, by table."""
    of_night = [x for x in made if re.search(r"night_id = [?%]", x)]
    return {table: sum(f"FROM {table} " in " ".join(x.split()) for x in of_night) for table in ONCE}


def test_report_evidence_and_alarms_of_a_night_are_written_from_one_reading(
    store: Store, run: str, tmp_path: Path
) -> None:
    with statements(store) as made, transactions(store) as begun:
        _, written = write_night(tmp_path, store, run)
    assert written.problems == ()
    assert list(written.alarms) == ["q0", "q5"]
    assert readings(made) == dict.fromkeys(ONCE, 1)
    assert len(begun) == 1


def test_a_report_and_a_query_are_read_in_one_transaction_each(store: Store, run: str) -> None:
    night = store.night(run)
    with transactions(store) as begun:
        make_report(store, run)
        query_evidence(store, night, "q5")
    assert len(begun) == 2


def test_what_others_write_meanwhile_is_not_seen(store: Store, database: str, run: str) -> None:
    with open_store(database) as other:
        with store.at_one_moment() as moment:
            before = [(x.value, x.ratio) for x in moment.verdicts(run)]
            say(other, run, Value.OK, 1.0)
            other.record_grade(run, "broken", "by another")
            with moment.at_one_moment() as same:
                assert [(x.value, x.ratio) for x in same.verdicts(run)] == before
            assert moment.night(run).grade is None
            assert store.night(run).grade == "broken"
        assert {x.value for x in store.verdicts(run)} == {"OK"}


def test_rows_are_kept_as_they_were_read(store: Store, run: str) -> None:
    with store.at_one_moment() as moment:
        short = moment.repetitions(run, leave_out=("batch_list", "confs"))
        whole = moment.repetitions(run)
    assert {x.id for x in short} == {x.id for x in whole}
    assert all(x.batch_list is None for x in whole)
    assert moment.find_run(run).id == run


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_the_server_refuses_to_write_at_one_moment(store: Store, run: str) -> None:
    statement = update(NightRow).values(grade="steady")
    with store.at_one_moment() as moment, pytest.raises(StoreError, match="read-only"):  # noqa: SIM117
        with moment.reading() as session:
            session.execute(statement)


def test_the_database_failing_within_is_one_line(store: Store, run: str) -> None:
    def fail(*_: Any) -> None:
        raise OperationalError("SELECT", {}, DBAPIError("no", {}, Exception("gone")))

    with store.at_one_moment() as moment:
        event.listen(store._engine, "before_cursor_execute", fail)
        with pytest.raises(StoreError):
            moment.verdicts(run)
        event.remove(store._engine, "before_cursor_execute", fail)


def test_a_sealed_bundle_is_of_one_state_though_others_write(
    store: Store, database: str, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process judges the night again after each of the first statements."""
    directory = tmp_path / "run"
    files = RunDirectory(directory)
    night = SimpleNamespace(name=run, directory=directory, files=files, candidate="pypi:4.3.0")
    decided = {"choice": "approved", "who": "ada", "when": datetime.now(UTC).isoformat()}
    decided["reason"] = "known"
    task = SimpleNamespace(xcom_pull=lambda **_: decided)
    monkeypatch.setattr(signoff_steps, "current_night", lambda: night)
    monkeypatch.setattr(signoff_steps, "get_current_context", lambda: {"ti": task})
    monkeypatch.setattr(signoff_steps, "_kept_in", lambda _: tmp_path / "kept")
    monkeypatch.setattr(night_records, "results", lambda: store)
    written: list[float] = []
    with open_store(database) as other:

        def again(*arguments: Any) -> None:
            if "FROM verdict" in arguments[2] and len(written) < 9:
                written.append(1.2 + len(written) / 10)
                say(other, run, Value.REGRESSION, written[-1])

        event.listen(store._engine, "before_cursor_execute", again)
        with transactions(store) as begun:
            bundle = Path(signoff_steps.evidence()["directory"])
    assert len(written) == 9
    assert len(begun) == 1
    sealed = [
        json.loads((bundle / name).read_text(encoding="utf-8"))
        for name in ("evidence.json", "report/results.json", "alarms/q5/evidence.json")
    ]
    ratios = {x["ratio"] for one in sealed for x in one["verdicts"]}
    assert len(ratios) == 1
