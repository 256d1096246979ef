"""What no command can do is refused at once, in one line, and nothing has been written."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.cli.app import main

EMPTY = "is empty; give a value, or leave it out for the default"
RUN, BUILD, BACKFILL, BISECT, VERDICT = "run", "build", "backfill", "bisect", "replay"
UI, EXPECTATIONS, REPORT = "ui", "validate", "report"
STORE = ""  # its verbs are the first of the arguments
CLUSTER, DETECTION, SIMULATION = "cluster", "bench detection", "bench gate"
SCREENSHOTS, OVERHEAD = "bench screenshots", "bench flight-recorder"
HUGE = "9" * 22
BISECTED = [
    "--good",
    "pypi:4.1.0",
    "--bad",
    "pypi:4.1.2",
    "--builds",
    "pypi:4.1.1",
    "--query",
    "q5",
]
DAYS = ["--engine", "spark-4.3.0", "--from", "2026-11-01", "--to", "2026-11-02"]

CASES: list[tuple[str, list[str], str]] = [
    *(
        (command, [option, value], f"Invalid value for '{option}': {EMPTY}")
        for command in (RUN, BUILD)
        for option in ("--engine", "--workload", "--queries", "--cluster", "--against")
        for value in ("", " ", "\n")
    ),
    (RUN, ["--candidate", ""], EMPTY),
    (RUN, ["--date", ""], EMPTY),
    (RUN, ["--date", "tomorrow"], "date: 'tomorrow' is not a date; write it like 2026-11-03"),
    (RUN, ["--engine", "spark-4.3.0\n"], "has a control character; write one line"),
    (RUN, ["--engine", "spark-4.3"], "unknown engine 'spark-4.3'; did you mean"),
    (RUN, ["--workload", "$(x)"], "unknown workload '$(x)'; known: smoke"),
    (RUN, ["--queries", "q1,,q2"], "queries: an empty name in 'q1,,q2'; write them like q1,q5"),
    (RUN, ["--queries", "q1,"], "queries: an empty name in 'q1,'; write them like q1,q5"),
    (RUN, ["--queries", ","], "queries: an empty name in ','; write them like q1,q5"),
    (RUN, ["--queries", "$(x)"], "queries: unknown query '$(x)'; known: q0"),
    (RUN, ["--queries", "q1;q2"], "queries: unknown query 'q1;q2'; did you mean "),
    (RUN, ["--repetitions", ""], "'' is not a whole number from 1 to 100; correct it"),
    *(
        (command, [option, text], f"'{text}' is not a whole number from 1 to")
        for command, option in ((RUN, "--repetitions"), ("withdraw", "--id"))
        for text in ("1_0", "٣", "1e1", "1.0", "0x1")
    ),
    (RUN, ["--repetitions", "-1"], "'-1' is not a whole number from 1 to 100; correct it"),
    (RUN, ["--repetitions", HUGE], f"'{HUGE}' is not a whole number from 1 to 100"),
    (RUN, ["--mode", "both"], "Invalid value for '--mode': Value error, 'both' is not one of"),
    (RUN, ["--mode", "history"], "'history' is not one of 'bounds', 'paired'"),
    (BUILD, ["--mode", "history"], "'history' is not one of 'bounds', 'paired'"),
    (RUN, ["--candidate-conf", "spark.a"], "'spark.a' is not KEY=VALUE"),
    (RUN, ["--candidate-conf", "spark.master=x"], "spark.master is set by the benchmark itself"),
    (RUN, ["--candidate-conf", "spark.a=x\ny"], "the value of spark.a has a line break"),
    (RUN, ["--candidate-conf", "spark.a="], "spark.a has no value; write one, or remove it"),
    (RUN, ["--candidate", "tarball:file:///etc/passwd#sha512=" + "a" * 128], "not a tarball by"),
    (RUN, ["--candidate", "directory:/etc"], "not a Spark build (no bin/spark-submit"),
    (BUILD, [], "--build: none is given; give it as pypi:4.3.0"),
    (BUILD, ["--build", " "], "--build: none is given; give it as pypi:4.3.0"),
    (BACKFILL, [], "--from is not given; give --from 2026-11-03"),
    (BACKFILL, [*DAYS, "--queries", ""], f"'--queries': {EMPTY}"),
    (BACKFILL, [*DAYS, "--reprocess", ""], "'--reprocess': Value error, '' is not one of"),
    (BACKFILL, [*DAYS, "--port", "99999"], "'99999' is not a whole number from 1 to 65535"),
    (BISECT, [], "bisect: --good is not given; give --good ..."),
    (BISECT, [*BISECTED, "--repetitions", "0"], "'0' is not a whole number from 1 to 100"),
    (BISECT, [*BISECTED, "--measurements", "-1"], "'-1' is not a whole number from 1 to 10000"),
    (BISECT, [*BISECTED, "--query", "q5,,q6"], "queries: an empty name in 'q5,,q6'"),
    (BISECT, [*BISECTED, "--query", ""], "query: '' is not one query; give --query q5"),
    (BISECT, [*BISECTED, "--builds", "pypi:4.1.1,,pypi:4.1.3"], "--builds: an empty name in"),
    (BISECT, [*BISECTED, "--airflow", ""], f"'--airflow': {EMPTY}"),
    (
        STORE,
        ["accept", "--run", "x", "--reason", "y", "--query", " "],
        f"'--query' / '--queries': {EMPTY}",
    ),
    (STORE, ["accept", "--run", "x", "--reason", "y", "--query", "q1,,q2"], "an empty name in"),
    (STORE, ["accept", "--run", "x", "--reason", "y", "--link", ""], f"'--link': {EMPTY}"),
    (STORE, ["accept", "--run", "x", "--reason", "y", "--expires", ""], "until when? give a day"),
    (STORE, ["withdraw", "--id", "", "--reason", "y"], "Invalid value for '--id'"),
    (
        STORE,
        ["history", "--query", "q5", "--format", "xml"],
        "'--format': Value error, 'xml' is not one of",
    ),
    (
        STORE,
        ["history", "--query", "q5", "--format", ""],
        "'--format': Value error, '' is not one of",
    ),
    (STORE, ["history", "--query", " "], "which query? give --query q5"),
    (STORE, ["history", "--query", "q5", "--metric", ""], f"'--metric': {EMPTY}"),
    (STORE, ["history", "--query", "q5", "--engine", "\n"], f"'--engine': {EMPTY}"),
    (STORE, ["history", "--query", "q5", "--limit", "-1"], "'-1' is not a whole number from 1"),
    (STORE, ["acks", "--limit", "0"], "'0' is not a whole number from 1"),
    (STORE, ["nights", "--limit", HUGE], f"'{HUGE}' is not a whole number from 1"),
    (STORE, ["export", "--out", " "], "where to? give --out DIR"),
    (
        STORE,
        ["export", "--out", "x", "--format", "xml"],
        "'--format': Value error, 'xml' is not one of",
    ),
    (VERDICT, ["--nights", " "], "which file? name a CSV of measurements"),
    (VERDICT, ["--nights", "/none.csv"], "/none.csv: cannot be read: No such file or directory"),
    (DETECTION, ["--cause", ""], "argument --cause: an empty name in ''; write it like a,b"),
    (DETECTION, ["--cause", "sort,,sleep"], "an empty name in 'sort,,sleep'; write it like a,b"),
    (DETECTION, ["--workload", ""], f"argument --workload: {EMPTY}"),
    (DETECTION, ["--pairs", "2"], "--pairs 2: a night needs 3 at least; give more"),
    (DETECTION, ["--nights", HUGE], "is not in 1 to 100; correct it"),
    (DETECTION, ["--more", "-1"], "--silent and --more: give 0 or more, and at most 100 pairs"),
    (CLUSTER, ["check", ""], EMPTY),
    (CLUSTER, ["check", "locl"], "cluster: unknown cluster 'locl'; did you mean 'local'?"),
    (CLUSTER, ["look"], "No such command 'look'"),
    (UI, ["--port", "0"], "'0' is not a whole number from 1 to 65535; correct it"),
    (UI, ["--port", "http"], "'http' is not a whole number from 1 to 65535; correct it"),
    (SIMULATION, ["--nights", ""], "argument --nights: '' is not a whole number"),
    (SIMULATION, ["--seed", "²"], "argument --seed: '²' is not a whole number"),
    (SIMULATION, ["--seed", "-1"], "argument --seed: '-1' is not a whole number"),
    (SCREENSHOTS, ["--out", ""], f"argument --out: {EMPTY}"),
    (OVERHEAD, ["--pairs", "0"], "'0' is not a whole number from 1 to 1000; correct it"),
    (OVERHEAD, ["--query", ""], "argument --query: invalid choice: ''"),
    (EXPECTATIONS, ["--query", "q5"], "Missing option '--events'"),
    (REPORT, [], "Missing option '--run'; see --help"),
    ("", [], "nexmark: Missing command; see --help"),
    (CLUSTER, [], "nexmark cluster: Missing command; see --help"),
]


@pytest.fixture(autouse=True)
def _nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not refused would prepare Airflow next, or begin the nights of a benchmark."""

    def begin(*_: object) -> None:
        pytest.fail("it was not refused")

    monkeypatch.setattr("nexmark.airflow_site.airflow_home.run_airflow", begin)
    monkeypatch.setattr("bench.detection.__main__.measure", begin)


@pytest.mark.parametrize(("command", "arguments", "says"), CASES)
def test_a_refusal_is_one_line_and_writes_nothing(
    command: str,
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NEXMARK_DB", f"sqlite:///{tmp_path}/home/results.db")
    code = main([*command.split(), *arguments])
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1, err
    assert says in err
    assert list(tmp_path.iterdir()) == []
