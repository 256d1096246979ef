"""An application of a person's own goes on in another build, or in another version of itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from nexmark.cli.app import main
from nexmark.compatibility import own_application
from nexmark.compatibility.cases import Side
from nexmark.compatibility.own_application import _beside, _Ended, _restart, check_application
from nexmark.compatibility.results import Compatibility, Restart, RestartOutcome, UpgradeClass
from nexmark.config import Job, paths
from nexmark.config.own_jobs import read_job
from nexmark.engines import Build
from nexmark.expectations.written_rows import WrittenRows
from nexmark.measure.streaming_log import Stream, StreamingLog
from tests.applications.order_files import write_orders
from tests.conftest import ENGINES

TOTALS = Path(__file__).parents[1] / "applications" / "totals.py"
STARTED = """
from pathlib import Path
from uuid import uuid4
starts = Path(output) / "starts"
starts.mkdir(parents=True, exist_ok=True)
(starts / f"{uuid4()}.json").write_text('{"started": 1}\\n')
totals = """


def say(_: str) -> None:
    pass


def totals(directory: Path, old: str = "", new: str = "") -> Job:
    """The application that ends by itself, with a change of its text; its input is beside it."""
    directory.mkdir(parents=True, exist_ok=True)
    source = directory.parent / "orders"
    if not source.exists():
        write_orders(source, files=6, rows=100)
    text = TOTALS.read_text()
    assert old in text
    (directory / "totals.py").write_text(text.replace(old, new))
    application = {
        "main": "totals.py",
        "args": ["{{ input }}", "{{ output }}", "{{ checkpoint }}"],
        "input": str(source),
        "output": {".": "json"},
        "ends": "itself",
    }
    (directory / "totals.yaml").write_text(yaml.safe_dump({"application": application}))
    return read_job(directory / "totals.yaml")


@pytest.fixture
def checked(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> Callable[[str, str], Compatibility]:
    """Check a change of the text of the application on one build; nothing is left of it."""

    def check(old: str, new: str) -> Compatibility:
        build, below = engine_build(ENGINES[0]), tmp_path / "below"
        jobs = totals(tmp_path / "jobs"), totals(tmp_path / "changed", old, new)
        sides = (Side(build).with_job(job) for job in jobs)
        found = check_application(*sides, say, below=below)
        assert list(below.iterdir()) == []
        return found

    return check


@pytest.mark.long
@pytest.mark.spare
@pytest.mark.spark
def test_it_goes_on_in_another_build_and_back(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    job = totals(tmp_path / "jobs")
    sides = (Side(engine_build(name)).with_job(job) for name in (ENGINES[-1], ENGINES[0]))
    lines: list[str] = []
    found = check_application(*sides, lines.append, below=tmp_path / "below")
    assert [str(found.forward), str(found.backward)] == ["right", "right"], found.reason
    assert found.class_ in (UpgradeClass.SAME, UpgradeClass.CHANGED)
    assert found.reason.count("checkpoint") == 0  # it was stopped while batches were left
    assert found.confs is not None
    assert found.confs["spark.sql.shuffle.partitions"] == "2"
    assert len(lines) == 5, lines
    assert lines[0].endswith("totals, uninterrupted run: 6 batches")
    assert list((tmp_path / "below").iterdir()) == []


@pytest.mark.long
@pytest.mark.spare
@pytest.mark.spark
def test_another_meaning_of_the_same_state_is_silently_wrong(
    checked: Callable[[str, str], Compatibility],
) -> None:
    found = checked("F.sum", "F.max")
    assert found.class_ == UpgradeClass.WRONG
    assert "other rows than an uninterrupted run: " in found.reason


@pytest.mark.spark
def test_state_of_other_types_is_refused_with_the_class_of_the_error(
    checked: Callable[[str, str], Compatibility],
) -> None:
    found = checked('F.sum("amount")', 'F.size(F.collect_list("amount"))')
    assert found.class_ == UpgradeClass.INCOMPATIBLE
    assert found.forward is not None
    assert "NOT_COMPATIBLE" in found.forward.error_class


@pytest.mark.spark
def test_what_a_stop_does_in_both_builds_is_not_the_upgrades(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    """Each start of it writes a row, so the stopped application has one more."""
    job = totals(tmp_path / "jobs", "totals = ", STARTED.lstrip("\n"))
    build = engine_build(ENGINES[0])
    conf = {"spark.sql.streaming.minBatchesToRetain": "3"}
    sides = Side(build).with_job(job), Side(build, conf).with_job(job)
    found = check_application(*sides, say, below=tmp_path / "below")
    assert [str(found.forward), str(found.backward)] == ["right", "right"], found.reason
    assert found.reason.startswith("after this stop, both builds put out the same rows")


@pytest.mark.spark
def test_it_may_have_put_out_nothing_when_it_is_stopped(
    tmp_path: Path, engine_build: Callable[[str], Build]
) -> None:
    late = "    if number < 5:\n        return rows.count()\n    rows.coalesce"
    side = Side(engine_build(ENGINES[0])).with_job(
        totals(tmp_path / "jobs", "    rows.coalesce", late)
    )
    found = check_application(side, side, say, below=tmp_path / "below")
    assert (str(found.forward), found.backward) == ("right", None), found.reason


def ended(batches: int = 4, rows: WrittenRows | None = None, query: str = "a") -> _Ended:
    """A run of one streaming query."""
    log = StreamingLog()
    progress = [{"sources": [], "durationMs": {"addBatch": 1}} for _ in range(batches)]
    log.streams["run"] = Stream("run", query, None, "now", progress=[*progress])
    return _Ended(log, rows)


FEW, MANY, OTHER = WrittenRows(5, "aa"), WrittenRows(6, "bb"), WrittenRows(5, "cc")


@pytest.mark.parametrize(
    ("begun", "resumed", "outcome", "reason"),
    [
        (ended(2), ended(2, FEW), RestartOutcome.RIGHT, ""),
        (ended(4), ended(0, FEW), RestartOutcome.RIGHT, "its checkpoint was only opened"),
        (ended(2), ended(2, MANY), RestartOutcome.WRONG, "6 rows, an uninterrupted run has 5"),
        (ended(2), ended(2, OTHER), RestartOutcome.WRONG, "5 each, not all equal"),
        (ended(2), ended(4, FEW, "b"), RestartOutcome.NOT_BEGUN, "a streaming query began again"),
        (
            ended(2),
            _Ended(StreamingLog(), problem="no"),
            RestartOutcome.NOT_ENDED,
            "no",
        ),
        (
            ended(2),
            _Ended(StreamingLog(), problem="no", error_class="STATE"),
            RestartOutcome.REFUSED,
            "no",
        ),
    ],
)
def test_how_it_went_on(
    begun: _Ended, resumed: _Ended, outcome: RestartOutcome, reason: str
) -> None:
    found = _restart(begun, resumed, ended(4, FEW))
    assert found.outcome is outcome
    assert reason in found.reason
    assert bool(found.reason) == bool(reason)


def test_rows_that_nobody_names_are_not_compared() -> None:
    found = _restart(ended(2), ended(2), ended(4))
    assert found == Restart(
        RestartOutcome.RIGHT, reason="it names no output, so its rows are not compared"
    )


@pytest.mark.parametrize(
    ("resumed", "control", "outcome"),
    [
        (MANY, FEW, RestartOutcome.WRONG),
        (MANY, MANY, RestartOutcome.RIGHT),
        (MANY, OTHER, RestartOutcome.NOT_BEGUN),
    ],
)
def test_only_what_the_other_build_does_is_the_upgrades(
    resumed: WrittenRows, control: WrittenRows, outcome: RestartOutcome
) -> None:
    whole, begun = ended(4, FEW), ended(2)
    runs = ended(2, resumed), ended(2, control)
    found, other = (_restart(begun, run, whole) for run in runs)
    assert _beside(found, runs[0], other, runs[1]).outcome is outcome


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with the application."""
    shutil.copytree(paths.repository() / "include" / "conf", tmp_path / "conf")
    totals(tmp_path / "conf" / "jobs")
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path / "conf"))
    return tmp_path / "conf"


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"args": []}, (), "--query: totals: no argument and no conf of it has {{ checkpoint }}"),
        ({"input": "/no/where"}, (), "input: /no/where is not on this machine; correct the path"),
        ({}, ("--plans-only",), "--plans-only: totals is an application, whose plans show when"),
        ({}, ("--corpus", "new"), "--corpus: totals is a job of yours; leave it out"),
    ],
)
def test_what_is_refused(
    conf: Path,
    change: dict[str, object],
    arguments: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = conf / "jobs" / "totals.yaml"
    described = yaml.safe_load(file.read_text())["application"] | change
    if not described["args"]:
        del described["input"], described["output"]
    file.write_text(yaml.safe_dump({"application": described}))
    assert main(["compat", "--from", "pypi:4.3.0", "--query", "totals", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


@pytest.mark.spark
def test_an_application_that_fails_says_why_and_shows_no_secret(
    conf: Path,
    tmp_path: Path,
    engine_build: Callable[[str], Build],
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = conf / "jobs" / "totals.yaml"
    described = yaml.safe_load(file.read_text())["application"]
    described["args"].append("--password=hunter2hunter2")
    described["confs"] = {"spark.hadoop.orders.password": "hunter3hunter3"}
    file.write_text(yaml.safe_dump({"application": described}))
    script = conf / "jobs" / "totals.py"
    failing = 'raise ValueError(sys.argv[4] + spark.conf.get("spark.hadoop.orders.password"))\n'
    script.write_text(script.read_text().replace("\n\ndef write", f"{failing}\n\ndef write"))
    build, out = f"directory:{engine_build(ENGINES[0]).spark_home}", tmp_path / "out.json"
    arguments = ["compat", "--from", build, "--query", "totals", "--out", str(out)]
    assert main(arguments) == 2
    printed = capsys.readouterr()
    (found,) = json.loads(out.read_text())
    assert found["class"] == UpgradeClass.UNKNOWN
    assert found["forward"]["outcome"] == "not begun"
    assert "ValueError" in found["reason"]
    assert "hunter" not in printed.out + printed.err + out.read_text()


@pytest.mark.spark
def test_one_that_has_no_more_batches_is_ended(
    tmp_path: Path, engine_build: Callable[[str], Build], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_application, "_SILENCE_S", 5.0)
    job = totals(
        tmp_path / "jobs", "written.start()", "import time; time.sleep(900); written.start()"
    )
    side = Side(engine_build(ENGINES[0])).with_job(job)
    found = check_application(side, side, say, below=tmp_path / "below")
    assert found.class_ == UpgradeClass.UNKNOWN
    assert found.reason == "had no further batch for 5 s"
