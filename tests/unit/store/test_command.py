"""The verbs about stored nights: what a person types, and the one line for what is wrong."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.model import Value
from nexmark.people import process_user
from nexmark.store import Store
from tests.unit.store.night_builder import OK, judged
from tests.unit.store.store_builder import by_bounds, night, record

RUN = night().run


@pytest.fixture(autouse=True)
def setting(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    monkeypatch.setenv("NEXMARK_DB", database)


def test_accept_fails_where_some_of_the_queries_are_refused_and_tells_which(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, night(), q0="rows missing")
    assert main(["accept", "--run", "2026-11-21", "--by", "ada", "--reason", "new JDK"]) == 2
    out, err = capsys.readouterr()
    assert f"{RUN} is now the baseline of spark-4.3.0 on smoke, cluster local for q5." in out
    assert err == "not accepted: q0: rows missing\n"
    (row,) = store.acceptances()
    assert (row.who, row.reason, row.night_id) == (f"{process_user()} (for ada)", "new JDK", RUN)


def test_accept_tells_what_is_baseline_now(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, night())
    assert main(["accept", "--run", RUN, "--reason", "new JDK", "--query", "q5"]) == 0
    out, err = capsys.readouterr()
    assert f"{RUN} is now the baseline of spark-4.3.0 on smoke, cluster local for q5." in out
    assert err == ""


def test_without_a_name_the_user_of_the_process_accepts_whatever_its_environment_says(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "grace")
    monkeypatch.setenv("USER", "grace")
    record(store, night())
    assert main(["accept", "--run", RUN, "--query", "q5", "--reason", "right"]) == 0
    assert [(x.query, x.who) for x in store.acceptances()] == [("q5", process_user())]


@pytest.mark.parametrize("name", ["manual__2025-11-21", ""])
def test_an_unknown_run_is_one_line_with_the_nearest(
    store: Store, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    record(store, night())
    assert main(["accept", "--run", name, "--reason", "x"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert RUN in captured.err


def test_list_shows_runs_verdicts_and_baselines(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, night(1))
    record(store, night(2))
    store.record_verdicts(RUN, [by_bounds("q5", Value.OK)])
    store.accept(RUN, "ada", "right")
    assert main(["nights"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2026-11-23 04:00 UTC  NOT JUDGED"
    assert lines[1] == f"    {night(2).run}"
    assert lines[-3] == "2026-11-22 04:00 UTC  GREEN         1 OK, baseline of 2 queries"
    assert lines[-2] == f"    {RUN}"


def test_the_newest_run_of_each_dag_says_in_the_list_what_to_do(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, dag in ((1, "nexmark_a"), (2, "nexmark_a"), (3, "nexmark_b")):
        record(store, night(number, dag_id=dag))
    assert main(["nights"]) == 0
    lines = capsys.readouterr().out.splitlines()
    runs = [after.strip() for line, after in pairwise(lines) if not line.startswith(" ")]
    after = [place for place, line in enumerate(lines) if line.startswith("    Next: ")]
    assert [run.partition("/")[0] for run in runs] == ["nexmark_b", "nexmark_a", "nexmark_a"]
    assert len(after) == 2
    assert lines.index(next(line for line in lines if runs[2] in line)) > after[1]


def test_show_tells_the_verdicts_and_the_history_of_acceptance(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    record(store, night(1))
    store.record_verdicts(RUN, [by_bounds("q5", Value.REGRESSION, "twice as slow")])
    store.accept(RUN, "ada", "new JDK")
    assert main(["show", "--run", RUN]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^q5 +REGRESSION .* twice as slow$", out, re.M)
    assert f"{RUN}  2 queries (q0, q5), by ada: new JDK" in out


def test_show_has_what_needs_attention_first_and_what_informs_behind_all(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = replace(OK, query="q7", value=Value.REGRESSION, reason="slower", pairs=3)
    wall = replace(OK, metric="wall_s", decides=False, value=Value.WATCH, reason="more")
    run = judged(store, 1, OK, slower, wall, queries=("q5", "q7"))
    assert main(["show", "--run", run]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.startswith(("q5", "q7"))]
    assert [row[:2] for row in rows] == [["q7", "REGRESSION"], ["q5", "OK"]]
    assert rows[0][2:] == ["1.010", "(0.980-1.040)", "3"]
    assert "1 verdicts on metrics that inform, 1 of them not OK: --all has them" in out
    assert "wall_s" not in out
    assert main(["show", "--run", run, "--all"]) == 0
    out = capsys.readouterr().out
    assert out.index("What decides, cpu_s_per_mevent:") < out.index("What informs, wall_s:")
    assert "    q5 wall_s: WATCH: more" in out
    assert main(["nights", "--all"]) == 0
    assert "    Informing: q5 wall_s WATCH" in capsys.readouterr().out


class TestLatest:
    @pytest.fixture(autouse=True)
    def runs(self, store: Store) -> list[str]:
        """Three nights, the last of another engine."""
        for number, engine in ((1, "spark-4.3.0"), (2, "spark-4.3.0"), (3, "spark-3.5.9")):
            record(store, night(number, engine=engine))
        return [night(number).run for number in (1, 2, 3)]

    @pytest.mark.parametrize(("options", "number"), [((), 3), (("--engine", "spark-4.3.0"), 2)])
    @pytest.mark.parametrize(
        "verb", [("show",), ("report",), ("accept", "--reason", "right", "--by", "ada")]
    )
    def test_it_is_the_newest_run_and_says_which(
        self,
        runs: list[str],
        verb: tuple[str, ...],
        options: tuple[str, ...],
        number: int,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        assert main([*verb, "--run", "latest", *options]) == 0
        told = capsys.readouterr()
        assert told.err.splitlines()[0] == f"latest: {runs[number - 1]}"
        assert runs[number - 1] in told.out

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (["--run", "latest", "--engine", "spark-4.3"], "did you mean 'spark-4.3.0'?"),
            (["--run", "run_1", "--engine", "spark-4.3.0"], "give it with --run latest only"),
        ],
    )
    def test_what_it_cannot_be_is_one_line(
        self, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["show", *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert says in line


def test_without_a_run_there_is_no_latest(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--run", "latest"]) == 2
    assert "run latest: no run is recorded yet" in capsys.readouterr().err


def accept(*options: str) -> int:
    return main(["accept", "--run", RUN, "--by", "ada", "--reason", "right", *options])


class TestExpiry:
    @pytest.mark.parametrize(
        ("text", "least", "most"), [("30d", 29.9, 30.1), ("2999-01-31", 355_000, 365_000)]
    )
    def test_an_acceptance_may_be_for_a_while(
        self, store: Store, text: str, least: float, most: float
    ) -> None:
        record(store, night())
        assert accept("--expires", text, "--query", "q5", "--link", "https://x/1") == 0
        (row,) = store.acceptances()
        assert row.expires is not None
        assert least < (row.expires - row.accepted) / timedelta(days=1) < most
        assert row.link == "https://x/1"

    def test_a_day_begins_at_midnight_utc(self, store: Store) -> None:
        record(store, night())
        accept("--expires", "2999-01-31")
        assert store.acceptances()[0].expires == datetime(2999, 1, 31, tzinfo=UTC)

    def test_the_past_is_one_line(self, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        record(store, night())
        assert accept("--expires", "2020-01-31") == 2
        assert capsys.readouterr().err.count("\n") == 1

    @pytest.mark.parametrize("text", ["soon", "2999-02-31", "-1d", "30 d"])
    def test_what_is_no_day_is_reported(
        self, text: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert accept(f"--expires={text}") == 2
        assert "neither a day (2027-01-31) nor a number of days (30d)" in capsys.readouterr().err


class TestAcks:
    def test_each_is_listed_with_what_became_of_it(
        self, store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        record(store, night())
        accept("--query", "q5")
        accept("--query", "q5", "--expires", "1d", "--link", "https://x/1")
        accept("--query", "q0")
        capsys.readouterr()

        def listed() -> list[str]:
            assert main(["acks"]) == 0
            head, *lines = capsys.readouterr().out.splitlines()
            assert head.split()[:4] == ["id", "accepted", "state", "query"]
            return [" ".join(line.split()[4:6]) for line in lines]

        assert listed() == ["counts q0", "counts q5", "superseded q5"]

        class Later(datetime):
            @classmethod
            def now(cls, tz: object = None) -> datetime:
                return datetime.now(UTC) + timedelta(days=2)

        monkeypatch.setattr("nexmark.cli.acceptance.datetime", Later)
        assert listed() == ["counts q0", "expired q5", "counts q5"]

    def test_what_is_accepted_together_is_one_row_until_a_part_is_taken_back(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record(store, night())
        accept("--query", "q0,q5")
        first, last = (row.id for row in store.acceptances())
        capsys.readouterr()

        def listed(*options: str) -> list[list[str]]:
            assert main(["acks", *options]) == 0
            _, *lines = capsys.readouterr().out.splitlines()
            return [re.split("  +", line)[:4] for line in lines]

        assert [(ids, queries) for ids, _, _, queries in listed()] == [
            (f"{first} to {last}", "2 queries (q0, q5)")
        ]
        each = [(ids, queries) for ids, _, _, queries in listed("--each")]
        assert each == [(str(last), "q5"), (str(first), "q0")]
        assert main(["withdraw", "--id", str(last), "--reason", "no"]) == 0
        capsys.readouterr()
        assert [(state, queries) for _, _, state, queries in listed()] == [
            ("withdrawn", "q5"),
            ("counts", "q0"),
        ]

    def test_one_is_taken_back_and_stays_on_the_list(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        record(store, night())
        accept("--query", "q0,q5")
        number = str(store.acceptances()[-1].id)
        capsys.readouterr()
        assert main(["withdraw", "--id", number, "--by", "bob", "--reason", "no"]) == 0
        assert f"{number} of q5" in (out := capsys.readouterr().out)
        assert "is withdrawn; it has no baseline now" in out
        assert main(["acks"]) == 0
        assert "withdrawn" in capsys.readouterr().out.splitlines()[1]

    def test_nothing_accepted_says_so(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["acks"]) == 0
        assert capsys.readouterr().out == "Nothing is accepted yet.\n"


def test_export_tells_what_it_wrote(
    store: Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    record(store, night())
    out = tmp_path / "out"
    assert main(["export", "--out", str(out), "--format", "csv"]) == 0
    assert f"2 rows   {out / 'repetition.csv'}" in capsys.readouterr().out
    assert main(["export", "--out", str(out)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["accept"],
        ["remove", "--run", "x"],
        ["nights", "--no"],
        ["export"],
        ["export", "--out", ""],
        ["export", "--out", "x", "--format", "xml"],
    ],
)
def test_a_wrong_argument_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_database_that_cannot_be_opened_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nights", "--db", "sqlite:////proc/nowhere/results.db"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
