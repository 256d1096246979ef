"""`nexmark prune`: what is old goes, what somebody needs stays, and nothing is half there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.cluster.lease import Lease
from nexmark.config import Config, Retention, load, paths
from nexmark.engines import parse_source, resolve
from nexmark.engines.build import Manifest, manifest_in_place, scan
from nexmark.errors import NexmarkError
from nexmark.model import RunKey, Value
from nexmark.retention import pruning
from nexmark.retention.decision import ArtifactKind
from nexmark.retention.prune_table import prune_table
from nexmark.store import Store, open_store
from nexmark_jobs.host.leases import locked, write_whole
from tests.unit.engines.test_resolve import make_spark_home
from tests.unit.store.night_builder import judge, paired, record_night
from tests.unit.store.store_builder import DAG, BuildRecord, by_bounds
from tests.unit.store.store_builder import night as single
from tests.unit.store.store_builder import record as record_single

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
BUILD, BASELINE = BuildRecord("sha-430", "4.3.0", "pypi:4.3.0"), "sha-429"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("NEXMARK_HOME", str(made))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    return made


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    with open_store(paths.database_url()) as opened:
        yield opened


@pytest.fixture
def config() -> Config:
    """Two run directories, the rows of three nights, and a gate that learns from two."""
    found = load()
    limits = {"schedule": None, "event_log_nights": 1, "run_nights": 2, "raw_row_nights": 3}
    small = {"history_nights": 1, "creep_nights": 2}
    return found.model_copy(
        update={
            "retention": Retention.model_construct(**limits, builds=2),
            "gate": found.gate.model_copy(update=small),
        }
    )


def aged(path: Path, days: float) -> None:
    """Let everything below be of some days ago."""
    moment = (NOW - days * DAY).timestamp()
    for each in (*path.rglob("*"), path):
        os.utime(each, (moment, moment))


def night(
    store: Store, days: int, dag: str = DAG, slower: float = 1.0, *, judged: bool = True
) -> str:
    """A night of some days ago, with its run directory."""
    key = RunKey(dag, f"scheduled__{days:03}")
    directory = paths.run_dir(*key)
    record = paired(
        **{"dag_id": dag, "run_id": key.run_id, "directory": directory, "build": BUILD},
        started=NOW - days * DAY,
        baseline_builds=[BuildRecord(BASELINE, "4.2.9", "pypi:4.2.1")],
        queries=("q5",),
        baselines={"q5": BASELINE},
    )
    record_night(store, record, {"q5": slower})
    if judged:
        judge(store, record.run)
    events = directory / "q5" / "rep-1" / "events"
    events.mkdir(parents=True)
    (events / "app-20261127-0001.zstd").write_bytes(b"x" * 1000)
    (directory / "q5" / "rep-1" / "result.json").write_text("{}")
    (directory / "night.json").write_text(json.dumps({"dag_id": dag, "run_id": key.run_id}))
    aged(directory, days)
    return record.run


def directory_of(run: str) -> Path:
    return paths.run_dir(*RunKey.parse(run))


def prune(config: Config, store: Store) -> pruning.Pruned:
    return pruning.prune(config, store, lambda text: None)


def kept(runs: list[str]) -> list[bool]:
    return [directory_of(run).exists() for run in runs]


def with_rows(store: Store, runs: list[str]) -> list[bool]:
    return [bool(store.repetitions(run)) for run in runs]


def with_event_logs(runs: list[str]) -> list[bool]:
    return [any(directory_of(run).glob("*/*/events/*")) for run in runs]


def all_files(home: Path) -> set[Path]:
    return {path for path in home.rglob("*") if "results.db" not in path.name}


def test_what_is_beyond_the_limits_goes_and_the_rest_stays(
    home: Path, store: Store, config: Config
) -> None:
    runs = [night(store, days) for days in (10, 11, 12, 13, 14)]
    done = prune(config, store)
    assert done.problems == ()
    assert kept(runs) == [True, True, False, False, False]
    assert with_event_logs(runs) == [True, False, False, False, False]
    assert (directory_of(runs[1]) / "q5" / "rep-1" / "result.json").exists()
    assert with_rows(store, runs) == [True, True, True, False, False]
    assert [store.night(run).rows_pruned is None for run in runs] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert not list(home.rglob(".pruned/*"))
    assert not any(one.goes for one in pruning.plan(config, store, NOW))


def test_each_dag_has_its_own_limit(store: Store, config: Config) -> None:
    often = [night(store, days) for days in (10, 11, 12)]
    seldom = [night(store, days, "nexmark_build") for days in (100, 200)]
    prune(config, store)
    assert kept(often) == [True, True, False]
    assert kept(seldom) == [True, True]


def test_what_has_no_limit_is_kept(store: Store, config: Config) -> None:
    runs = [night(store, days) for days in (10, 11, 12, 400)]
    made = four_builds(paths.home())
    (paths.home() / "archives").mkdir()
    archive = paths.home() / "archives" / "3.5.0-aa.jsa"
    archive.touch()
    aged(archive, 100)
    everything = config.model_copy(update={"retention": Retention()})
    prune(everything, store)
    assert builds_in(paths.home()) == set(made)
    assert archive.exists()
    assert all(kept(runs))
    assert all(with_rows(store, runs))
    assert all(with_event_logs(runs))


def test_what_was_used_lately_stays(store: Store, config: Config) -> None:
    """A night that is run again, by clearing it, is older than others by its name only."""
    runs = [night(store, days) for days in (10, 11, 12)]
    aged(directory_of(runs[2]), 1)
    prune(config, store)
    assert kept(runs) == [True, False, True]  # it is among the newest now
    runs = [night(store, days) for days in (20, 21)]
    aged(directory_of(runs[0]), 1.2)
    aged(directory_of(runs[1]), 1.3)
    prune(config, store)
    assert kept(runs) == [True, True]


def leased(store: Store, run: str) -> None:
    lease = Lease(*RunKey.parse(run))
    write_whole(paths.home() / "clusters" / "local" / "lease.json", json.dumps(asdict(lease)))


def accepted(store: Store, run: str) -> None:
    store.accept(run, "ann", "good")


def sealed(store: Store, run: str) -> None:
    bundle = directory_of(run) / "signoff"
    bundle.mkdir()
    (bundle / "SHA256SUMS").write_text("")
    aged(directory_of(run), 30)


@pytest.mark.parametrize(
    ("need", "reason"),
    [(leased, "running"), (accepted, "baseline"), (sealed, "sealed sign-off")],
)
def test_a_night_that_is_needed_stays(
    store: Store, config: Config, need: Callable[[Store, str], None], reason: str
) -> None:
    dag = "nexmark_signoff" if need is sealed else DAG
    runs = [night(store, days, dag) for days in (10, 11, 12, 30)]
    need(store, runs[3])
    done = prune(config, store)
    assert kept(runs) == [True, True, False, True]
    assert with_event_logs(runs) == [True, False, False, True]
    assert with_rows(store, runs) == [True, True, True, True]
    reasons = {one.artifact.kind: one.reason for one in done.decisions if "030" in one.artifact.key}
    assert reasons == dict.fromkeys(
        (ArtifactKind.RUNS, ArtifactKind.EVENT_LOGS, ArtifactKind.RAW_ROWS), reason
    )


def test_a_baseline_that_was_taken_back_goes(store: Store, config: Config) -> None:
    runs = [night(store, days) for days in (10, 11, 12, 30)]
    accepted(store, runs[3])
    accepted(store, runs[0])
    prune(config, store)
    assert kept(runs)[3]  # it counts again when the later one is taken back
    store.withdraw(store.acceptances()[0].id, "ann", "bad")
    prune(config, store)
    assert not kept(runs)[3]


def test_the_nights_of_an_open_alarm_stay(store: Store, config: Config) -> None:
    """The one in which it began, the one before it, and the newest judged one."""
    good = [night(store, days) for days in range(19, 14, -1)]
    red = [night(store, days, slower=1.5) for days in range(14, 9, -1)]
    states = {store.verdicts(run)[0].red for run in red}
    assert states == {True}
    prune(config, store)
    assert kept(good) == [False, False, False, False, True]
    assert kept(red) == [True, False, False, True, True]
    assert with_rows(store, [good[-1], red[0]]) == [True, True]
    night(store, 9, slower=1.5, judged=False)
    night(store, 8, slower=1.5, judged=False)
    prune(config, store)
    assert kept([good[-1], red[0], red[-1]]) == [True] * 3  # a night that runs closes no alarm
    newest = store.night(red[-1])
    store.accept(newest.id, "ann", "known", ["q5"])
    judged_again(store, newest.id)
    prune(config, store)
    assert kept([good[-1], red[0]]) == [False, False]


def judged_again(store: Store, run: str) -> None:
    (acceptance,) = store.acceptances()
    accepted = [
        replace(verdict, acceptance=acceptance.id) if verdict.query == "q5" else verdict
        for verdict in store.verdicts(run)
    ]
    store.record_verdicts(run, accepted)


def test_the_rows_that_the_gate_learns_from_stay(store: Store, config: Config) -> None:
    gate = config.gate.model_copy(update={"history_nights": 4})
    runs = [night(store, days) for days in range(10, 18)]
    prune(config.model_copy(update={"gate": gate}), store)
    assert with_rows(store, runs) == [True] * 5 + [False] * 3  # a fourth more than its history
    assert kept(runs) == [True] * 2 + [False] * 6


def test_the_rows_of_a_run_stay_that_another_one_was_judged_by(
    store: Store, config: Config
) -> None:
    """By bounds: without them the verdict of the other could not be computed again."""
    runs = []
    for days in (400, 300, 12, 11, 10):
        record = single(run_id=f"{days}", started=NOW - days * DAY, queries=["q5"])
        runs.append(record_single(store, record))
    verdict = by_bounds("q5", Value.OK, ratio=1.0, baseline_run=runs[0])
    store.record_verdicts(runs[4], [verdict])
    done = prune(config, store)
    assert with_rows(store, runs) == [True, False, True, True, True]
    reasons = {one.artifact.key: one.reason for one in done.decisions}
    assert reasons[runs[0]] == "compared with"


def test_a_dry_run_deletes_nothing_and_says_what_would_go(
    home: Path, store: Store, config: Config
) -> None:
    runs = [night(store, days) for days in (10, 11, 12, 30)]
    accepted(store, runs[3])
    before = all_files(home)
    table = prune_table(pruning.plan(config, store, NOW))
    assert all_files(home) == before
    assert all(with_rows(store, runs))
    (line,) = (line for line in table.splitlines() if line.startswith("run directories"))
    oldest = f"{NOW - 12 * DAY:%Y-%m-%d}"
    size = r"\d+\.\d kB"
    stay = rf"3 +{size} +\S+ +2 newest 2, 1 baseline"
    assert re.fullmatch(rf"run directories +1 +{size} +{oldest} +{oldest} +{stay}", line), line


def test_the_bytes_of_all_count_each_file_once(home: Path, store: Store, config: Config) -> None:
    """An event log is a part of its run directory."""
    for days in (10, 11):
        directory = directory_of(night(store, days))
        (directory / "q5" / "rep-1" / "events" / "app-20261127-0001.zstd").write_bytes(b"x" * 10**6)
        (directory / "large").write_bytes(b"x" * 10**6)
        aged(directory, days)
    lines = prune_table(pruning.plan(config, store, NOW)).splitlines()
    go, stay = re.findall(r"(\d\.\d) MB", lines[-1])
    assert (go, stay) == ("1.0", "3.0")


def test_nothing_is_deleted_that_is_used_after_the_decision(store: Store, config: Config) -> None:
    runs = [night(store, days) for days in (10, 11, 12, 13)]
    home = paths.home()
    doomed = {
        one.artifact.key: one.artifact
        for one in pruning.plan(config, store, NOW)
        if one.goes and one.artifact.kind == ArtifactKind.RUNS
    }
    (directory_of(runs[2]) / "night.json").write_text("{}")  # its preflight runs again
    leased(store, runs[3])
    for artifact in doomed.values():
        assert list(pruning._remove(artifact, store, home)) == []
    assert len(doomed) == 2
    assert all(kept(runs))


def test_two_do_not_run_at_the_same_time(home: Path, store: Store, config: Config) -> None:
    run = [night(store, days) for days in (10, 11, 12)][-1]
    with locked(home / "prune.lock"), pytest.raises(NexmarkError, match="another prune runs"):
        prune(config, store)
    assert directory_of(run).exists()
    prune(config, store)
    assert not directory_of(run).exists()


PROGRAM = """
import sys
from nexmark.config import Retention, load, paths
from nexmark.retention import pruning
from nexmark.store import open_store
limits = {"schedule": None, "event_log_nights": 1, "run_nights": 2, "raw_row_nights": 3}
config = load().model_copy(
    update={"retention": Retention.model_construct(**limits, builds=2)}
)
with open_store(paths.database_url()) as store:
    pruning.prune(config, store, print)
"""


def test_the_next_one_finishes_what_a_killed_one_began(
    home: Path, store: Store, config: Config
) -> None:
    runs = [night(store, days) for days in (10, 11, 12)]
    many = directory_of(runs[2]) / "q5" / "rep-1" / "many"
    many.mkdir()
    for number in range(20_000):
        (many / str(number)).touch()
    aged(directory_of(runs[2]), 12)
    process = subprocess.Popen([sys.executable, "-c", PROGRAM])
    while not list(home.glob("runs/.pruned/*/*/*")):
        assert process.poll() is None, "it has ended before it was killed"
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(home.glob("runs/.pruned/*/*/*")), "it has ended before it was killed"
    assert not directory_of(runs[2]).exists()  # gone at once, as a whole
    assert {path.name for path in home.glob("runs/*/*/night.json")} == {"night.json"}
    assert len(list(home.glob("runs/*/*/night.json"))) == 2
    prune(config, store)
    assert not list(home.glob("runs/.pruned/*"))
    assert kept(runs) == [True, True, False]


def build(home: Path, version: str, content: str, source: str, days: float) -> str:
    """A build in the cache as `resolve` leaves it, used some days ago; returns its name."""
    work = home / "builds" / "work"
    for name in ("bin/spark-submit", f"jars/spark-core_2.13-{version}.jar"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(content)
    manifest: Manifest = scan(work)
    name = f"{version}-{manifest.id}"
    work.rename(home / "builds" / name)
    manifest.write(home / "builds" / f"{name}.json")
    index = home / "builds" / "sources" / f"{content}.json"
    index.parent.mkdir(exist_ok=True)
    index.write_text(json.dumps({"source": source, "build": name}))
    for path in (home / "builds" / f"{name}.json", index):
        os.utime(path, ((NOW - days * DAY).timestamp(),) * 2)
    return name


def builds_in(home: Path) -> set[str]:
    return {path.name for path in (home / "builds").iterdir() if path.is_dir()} - {
        "sources",
        ".pruned",
    }


def test_unused_builds_go_and_those_of_engines_and_baselines_stay(
    home: Path, store: Store, config: Config
) -> None:
    engine = next(iter(config.engines.values()))
    of_engine = build(home, "4.3.0", "engine", str(engine.build), 90)
    baseline = build(home, "4.2.1", "accepted", "pypi:4.2.1", 80)
    lately = build(home, "4.1.9", "lately", "pypi:4.1.9", 70)
    last = build(home, "4.1.8", "last", "pypi:4.1.8", 71)
    unused = build(home, "4.1.7", "unused", "pypi:4.1.7", 72)
    archives = home / "archives"
    archives.mkdir()
    for name in ("4.1.7-aa.jsa", "4.1.9-bb.jsa"):
        (archives / name).touch()
    aged(archives, 72)
    record = paired(
        run_id="accepted",
        started=NOW - 5 * DAY,
        build=BuildRecord(baseline.rpartition("-")[2], "4.2.1", "pypi:4.2.1"),
        baseline_builds=[BuildRecord(BASELINE, "4.2.9", "pypi:4.2.1")],
        queries=("q5",),
        baselines={"q5": BASELINE},
    )
    accepted(store, record_night(store, record))
    prune(config, store)
    assert builds_in(home) == {of_engine, baseline, lately, last}
    assert not (home / "builds" / f"{unused}.json").exists()
    assert not (home / "builds" / "sources" / "unused.json").exists()
    assert [path.name for path in archives.iterdir() if path.is_file()] == ["4.1.9-bb.jsa"]


def test_builds_of_commits_go_like_those_that_were_fetched(
    home: Path, store: Store, config: Config
) -> None:
    """What is being built is none yet."""
    fetched = four_builds(home)
    commits = home / "builds" / "commits" / "0123"
    for name, days in (("lately", 29), ("unused", 60)):
        spark = make_spark_home(commits / name)
        resolve(parse_source(f"directory:{spark}"), home / "builds")
        for path in (spark, manifest_in_place(spark, home / "builds")):
            os.utime(path, ((NOW - days * DAY).timestamp(),) * 2)
    (commits / ".half").mkdir()
    prune(config, store)
    assert sorted(path.name for path in commits.iterdir()) == [".half", "lately"]
    assert builds_in(home) & set(fetched) == {fetched[0]}
    assert not manifest_in_place(commits / "unused", home / "builds").exists()


def four_builds(home: Path) -> list[str]:
    return [build(home, f"4.0.{n}", f"of{n}", f"pypi:4.0.{n}", 30 + n) for n in range(4)]


def test_a_build_that_is_fetched_or_checked_just_now_stays(
    home: Path, store: Store, config: Config
) -> None:
    made = four_builds(home)
    with locked(home / "builds" / "sources" / "of3.lock"):
        prune(config, store)
    assert builds_in(home) == {made[0], made[1], made[3]}


def test_a_build_that_a_process_of_ours_runs_stays(
    home: Path, store: Store, config: Config
) -> None:
    made = four_builds(home)
    runs = {"NEXMARK_OWNER": "a night", "SPARK_HOME": str(home / "builds" / made[2])}
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **runs}) as process:
        try:
            prune(config, store)
        finally:
            process.kill()
    assert builds_in(home) == {made[0], made[1], made[2]}


def test_the_removal_of_a_build_that_was_interrupted_is_finished(
    home: Path, store: Store, config: Config
) -> None:
    made = four_builds(home)
    aside = home / "builds" / ".pruned" / "killed"
    aside.mkdir(parents=True)
    (home / "builds" / made[3]).rename(aside / made[3])
    prune(config, store)
    assert builds_in(home) == {made[0], made[1]}
    assert not aside.exists()
    assert not (home / "builds" / f"{made[3]}.json").exists()


def test_builds_of_another_home_are_left_alone(
    home: Path, tmp_path: Path, store: Store, config: Config
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    made = four_builds(other)
    (home / "builds").symlink_to(other / "builds")
    prune(config, store)
    assert builds_in(other) == set(made)


def test_logs_go_with_their_nights(home: Path, store: Store, config: Config) -> None:
    commands = home / "logs"
    runs = home / "airflow" / "logs" / f"dag_id={DAG}"
    for number in (1, 2, 3):
        (runs / f"run_id=scheduled__{number}").mkdir(parents=True)
        commands.mkdir(exist_ok=True)
        (commands / f"run-{number}.log").touch()
        aged(runs / f"run_id=scheduled__{number}", 10 - number)
        aged(commands / f"run-{number}.log", 10 - number)
    (commands / "ui-scheduler.log").touch()
    aged(commands / "ui-scheduler.log", 100)
    prune(config, store)
    found = sorted(path.name for path in (*commands.glob("*.log"), *runs.iterdir()))
    assert found == [
        *("run-2.log", "run-3.log"),
        *("run_id=scheduled__2", "run_id=scheduled__3"),
        "ui-scheduler.log",
    ]


def test_links_to_event_logs_go_with_them(home: Path, store: Store, config: Config) -> None:
    runs = [night(store, days) for days in (10, 11, 12)]
    links = home / "event-logs"
    links.mkdir()
    for number, run in enumerate(runs):
        (log,) = directory_of(run).glob("*/*/events/app-*")
        (links / f"app-{number}").symlink_to(log)
    prune(config, store)
    assert [path.name for path in links.iterdir()] == ["app-0"]


def test_what_cannot_be_deleted_is_named_and_the_rest_goes(
    home: Path, store: Store, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [night(store, days) for days in (10, 11, 12, 13)]
    own = home / "runs" / ".pruned"
    own.write_text("in the way")
    done = prune(config, store)
    assert len(done.problems) == 3
    assert all(str(own) in line for line in done.problems)
    assert all(kept(runs))
    assert with_rows(store, runs) == [True, True, True, False]


class TestVerb:
    """What a person sees at the prompt."""

    def test_a_dry_run_prints_the_table(
        self, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = night(store, 10)
        assert main(["prune", "--dry-run"]) == 0
        said = capsys.readouterr().out.splitlines()
        assert said[0].split()[:2] == ["kind", "go"]
        kinds = [kind.value for kind in ArtifactKind]
        assert [line.split("  ")[0] for line in said[1 : len(kinds) + 2]] == [*kinds, "all"]
        assert said[-1] == "nothing was deleted: this was a dry run"
        assert directory_of(run).exists()

    def test_what_is_young_stays(self, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        run = night(store, 10)
        assert main(["prune"]) == 0
        assert capsys.readouterr().err == ""
        assert directory_of(run).exists()
        assert store.repetitions(run)

    def test_it_cannot_be_run_beside_another(
        self, home: Path, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with locked(home / "prune.lock"):
            assert main(["prune"]) == 2
        assert "another prune runs in this home" in capsys.readouterr().err

    def test_a_lease_that_cannot_be_read_keeps_everything(
        self, home: Path, store: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """A night may have the cluster: nobody knows which."""
        lease = home / "clusters" / "local" / "lease.json"
        lease.parent.mkdir(parents=True)
        lease.write_text("{")
        assert main(["prune"]) == 2
        assert "so it counts as held" in capsys.readouterr().err

    def test_a_mistake_in_the_configuration_is_named(
        self, home: Path, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        conf = tmp_path / "conf"
        shutil.copytree(paths.conf_dir(), conf)
        (conf / "retention.yaml").write_text("retention:\n  runs: 5\n")
        monkeypatch.setenv("NEXMARK_CONF", str(conf))
        assert main(["prune"]) == 2

    def test_without_results_nothing_is_known(
        self, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The database says what has to stay."""
        (home / "runs" / DAG / "old").mkdir(parents=True)
        assert main(["prune"]) == 2
        assert "there are no results yet" in capsys.readouterr().err
        with contextlib.suppress(FileNotFoundError):
            assert not (home / "results.db").exists()
