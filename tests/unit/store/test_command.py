"""``python -m nexmark.store``: what a person types, and the one line they get when it is wrong."""

from __future__ import annotations

import pytest

from nexmark.store import Store
from nexmark.store.__main__ import main
from nexmark.verdict import Value, Verdict
from tests.unit.store.store_builder import night, record

RUN = night().run


@pytest.fixture(autouse=True)
def database(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("NEXMARK_DB", url)


def test_accept_tells_what_is_baseline_now_and_what_is_not(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, night(), q0="rows missing")
    assert main(["accept", "--run", "2026-11-21", "--by", "ada", "--reason", "new JDK"]) == 0
    out = capsys.readouterr().out
    assert f"{RUN} is now the baseline of spark-4.3.0 on smoke, cluster local for q5." in out
    assert "not q0: rows missing" in out
    (row,) = store.acceptances()
    assert (row.who, row.reason, row.night_id) == ("ada", "new JDK", RUN)


def test_without_a_name_the_user_of_the_process_accepts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    record(store, night())
    assert main(["accept", "--run", RUN, "--query", "q5"]) == 0
    assert [(x.query, x.who, x.reason) for x in store.acceptances()] == [("q5", "grace", "")]


@pytest.mark.parametrize("name", ["manual__2025-11-21", ""])
def test_an_unknown_run_is_one_line_with_the_nearest(
    store: Store, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    record(store, night())
    assert main(["accept", "--run", name]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert RUN in captured.err


def test_list_shows_runs_verdicts_and_baselines(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, night(1))
    record(store, night(2))
    store.record_verdicts(RUN, [Verdict("q5", Value.OK, "m", "r", 1, 1.1)])
    store.accept(RUN, "ada", "")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"2026-11-23 04:00 UTC  {night(2).run}"
    assert lines[1].endswith("not judged")
    assert lines[3].endswith("1 OK  baseline of 2 queries")


def test_show_tells_the_verdicts_and_the_history_of_acceptance(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, night(1))
    store.record_verdicts(RUN, [Verdict("q5", Value.REGRESSION, "m", "twice as slow", 1, 1.1)])
    store.accept(RUN, "ada", "new JDK")
    assert main(["show", "--run", RUN]) == 0
    out = capsys.readouterr().out
    assert "REGRESSION   twice as slow" in out
    assert f"{RUN}  2 queries (q0, q5), by ada: new JDK" in out


@pytest.mark.parametrize("arguments", [[], ["accept"], ["remove", "--run", "x"], ["list", "--no"]])
def test_a_wrong_argument_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_database_that_cannot_be_opened_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--db", "sqlite:////proc/nowhere/results.db", "list"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
