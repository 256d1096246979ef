"""A night whose database fails at its end is kept, and recorded later, whatever the fault was."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from nexmark.cli import night_runner
from nexmark.cli.app import main
from nexmark.cluster import Lease, identify
from nexmark.config import BUILD_DAG_ID, load
from nexmark.model import Value, round_group
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.night_runs import first_runs
from nexmark.night.run_directory import GroupDirectory, Run, TaskDirectory, UpgradeOutcome
from nexmark.night.verification import Verification
from nexmark.recording import night_records
from nexmark.recording.night_records import record_night
from nexmark.store import Store, StoreError, connecting, open_store
from nexmark.store.connecting import connect, writing
from nexmark.store.table_base import Base
from nexmark.tasks import judging, preflight
from nexmark.tasks import query as tasks
from tests.unit.measure.sample_builder import batch, header, proc, result, tick
from tests.unit.store.postgresql import Postgresql

QUERIES = ("q0", "q5")
NAME = "nexmark_spark_4_3_0/run 1"
RECORD = ["record", "--run", "run 1"]
#: What a database numbers, or notes the moment of, by itself.
OWN = {"id", "repetition_id", "recorded", "judged", "first_seen", "started", "checked", "taken"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NEXMARK_PROGRESS", str(tmp_path / "said"))
    monkeypatch.setattr(connecting, "BUSY_TIMEOUT_S", 0.3)
    monkeypatch.setattr(connecting, "INTERACTIVE_TIMEOUT_S", 0.3)
    return tmp_path / "home"


@pytest.fixture
def begin(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Night]:
    """begin(url): a night with this results database has run all of its applications."""

    def begun(url: str) -> Night:
        monkeypatch.setenv("NEXMARK_DB", url)
        params = {"workload": "smoke", "cluster": "local", "queries": "q0,q5", "repetitions": 3}
        night = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
        begin_night(night, Deployments(candidate=deployed("4.3.0", "0123")))
        run = SimpleNamespace(dag_id=night.dag_id, run_id=night.run_id)
        monkeypatch.setattr("nexmark.tasks.get_current_context", lambda: {"dag_run": run})
        for query in QUERIES:
            ran(night, query)
        return night

    return begun


def deployed(version: str, build: str) -> Deployment:
    return Deployment(
        program="fedc",
        **{"build": build, "spark_version": version, "spark_home": "/opt/spark"},
        **{"source": f"pypi:{version}", "jobs": "fedc", "jobs_home": "/opt/jobs"},
        revision="98bc0212c947",
    )


def begin_night(night: Night, deployments: Deployments) -> None:
    night.write()
    deployments.write(night)
    record_night(night, deployments)


def ran(night: Night, query: str) -> None:
    """Leave what a query leaves: verified, measured, but for its last repetition."""
    directory = night.query_dir(query)
    Verification(success=True, evaluated=5, statistics={"rows": 7}).write(directory)
    busy = [tick(s, (3, 2, 90 * s, 0)) for s in range(71)]
    lines(
        GroupDirectory(directory).driver_samples,
        header(host="here"),
        proc(3, "executor", ppid=2),
        *busy,
    )
    reading = [{"here": {"memory": 1.5, "integer": 2.5}}]
    (directory / "canary-before.json").write_text(json.dumps(reading))
    batches = [batch(n, 2 + 5 * n, 7 + 5 * n, 100_000) for n in range(12)]
    content = result(*batches, workload={"events": night.workload.events})
    content |= {"input_rows": night.workload.events, "output_mode": "update"}
    *measured, last = first_runs(night, query)
    for run in measured:
        place = directory / run.name
        place.mkdir(parents=True)
        (place / "result.json").write_text(json.dumps(content))
    TaskDirectory(directory / last.name).write_failure("java.lang.OutOfMemoryError: Zündung → 雪")


def lines(path: Path, *records: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))


def end(night: Night) -> list[str]:
    """Run the tasks at the end as Airflow does, each whatever the others did; what each said."""
    told = []
    for task in (*(lambda x=x: tasks.record(x) for x in night.queries), judging.judge):
        try:
            task()
        except StoreError as error:
            told.append(str(error))
    return told


def rows(url: str) -> dict[str, list[dict[str, Any]]]:
    """Everything that a database holds, but for what is its own."""
    found: dict[str, list[dict[str, Any]]] = {}
    engine = connect(url)
    with engine.begin() as connection:
        for table in Base.metadata.sorted_tables:
            columns = [x for x in table.columns if x.name not in OWN]
            made = connection.execute(table.select()).mappings()
            own = [{x.name: row[x.name] for x in columns} for row in made]
            found[table.name] = sorted(own, key=repr)
    engine.dispose()
    return found


def numbers(url: str) -> list[Any]:
    """What tells a row that was replaced by one like it."""
    with open_store(url) as store:
        verdicts = [(x.key, x.judged) for x in store.verdicts(NAME)]
        return [verdicts, [(x.id, x.recorded) for x in store.repetitions(NAME)]]


Fault = Callable[[], AbstractContextManager[None]]


@pytest.fixture
def undisturbed(begin: Callable[[str], Night], tmp_path: Path) -> dict[str, Any]:
    """What a database has of such a night that nothing befell."""
    url = f"sqlite:///{tmp_path / 'undisturbed.db'}"
    assert end(begin(url)) == []
    found = rows(url)
    assert [len(found[x]) for x in ("repetition", "validation", "canary", "verdict")] == [
        6,
        2,
        4,
        2,
    ]
    assert [x["status"] for x in found["repetition"]].count("ok") == 4
    (tmp_path / "home").rename(tmp_path / "home of another")
    return found


def check(night: Night, url: str, fault: Fault, undisturbed: dict[str, Any]) -> None:
    """The tasks fail in one line, the night is kept, and one command records it, once."""
    said = Path(os.environ["NEXMARK_PROGRESS"])
    with fault():
        told = end(night)
        assert len(told) == len(QUERIES) + 1
        assert all("\n" not in line for line in told)
        assert f"nexmark record --run '{NAME}'" in said.read_text()
        assert f"they are kept in {night.directory}" in said.read_text()
        assert main(RECORD) == 2
    assert main(RECORD) == 1  # red: a repetition of each query is missing
    assert rows(url) == undisturbed
    before = numbers(url)
    assert main(RECORD) == 1
    assert numbers(url) == before


class TestPostgresql:
    @pytest.fixture
    def night_on(
        self, postgresql: Postgresql, undisturbed: object, begin: Callable[[str], Night]
    ) -> Iterator[tuple[Night, str]]:
        with postgresql.database() as url:
            yield begin(url), url

    def test_that_is_stopped(
        self, postgresql: Postgresql, night_on: tuple[Night, str], undisturbed: dict[str, Any]
    ) -> None:
        @contextmanager
        def stopped() -> Iterator[None]:
            postgresql.stop("fast")
            try:
                yield
            finally:
                postgresql.start()

        check(*night_on, stopped, undisturbed)

    @pytest.mark.parametrize(
        ("setting", "normal"),
        [
            ("default_transaction_read_only = on", "default_transaction_read_only = off"),
            ("search_path = 'nowhere'", "search_path = 'public'"),
        ],
    )
    def test_that_may_not_be_written(
        self,
        postgresql: Postgresql,
        night_on: tuple[Night, str],
        undisturbed: dict[str, Any],
        setting: str,
        normal: str,
    ) -> None:
        name = night_on[1].partition("@/")[2].partition("?")[0]

        @contextmanager
        def set_so() -> Iterator[None]:
            postgresql.execute(f"ALTER DATABASE {name} SET {setting}")
            yield
            postgresql.execute(f"ALTER DATABASE {name} SET {normal}")

        check(*night_on, set_so, undisturbed)

    def test_that_cannot_keep_every_letter(
        self,
        postgresql: Postgresql,
        night_on: tuple[Night, str],
        undisturbed: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        night, url = night_on

        @contextmanager
        def another() -> Iterator[None]:
            with postgresql.database(encoding="LATIN1") as latin:
                monkeypatch.setenv("NEXMARK_DB", latin)
                yield
            monkeypatch.setenv("NEXMARK_DB", url)

        check(night, url, another, undisturbed)


class TestSqlite:
    def test_that_another_process_keeps(
        self, tmp_path: Path, begin: Callable[[str], Night], undisturbed: dict[str, Any]
    ) -> None:
        url = f"sqlite:///{tmp_path / 'results.db'}"

        @contextmanager
        def locked() -> Iterator[None]:
            engine = connect(url)
            with writing(engine).begin():
                yield
            engine.dispose()

        check(begin(url), url, locked, undisturbed)

    def test_on_a_full_disk(
        self, tmp_path: Path, begin: Callable[[str], Night], undisturbed: dict[str, Any]
    ) -> None:
        if os.getuid() != 0:
            pytest.skip("only root can mount a disk")
        disk = tmp_path / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], check=True)
        url = f"sqlite:///{disk / 'results.db'}"

        @contextmanager
        def full() -> Iterator[None]:
            with (disk / "fill").open("ab", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(4096))
            yield
            (disk / "fill").unlink()

        try:
            check(begin(url), url, full, undisturbed)
        finally:
            subprocess.run(["umount", "--lazy", disk], check=True)

    def test_that_is_lost(
        self, tmp_path: Path, begin: Callable[[str], Night], undisturbed: dict[str, Any]
    ) -> None:
        """The night itself is recorded again, as it began."""
        url = f"sqlite:///{tmp_path / 'results.db'}"
        night = begin(url)
        with open_store(url) as store:
            started = store.night(NAME).started
        assert end(night) == []
        for file in tmp_path.glob("results.db*"):
            file.unlink()
        assert main(RECORD) == 1
        assert rows(url) == undisturbed
        with open_store(url) as store:
            assert abs((store.night(NAME).started - started).total_seconds()) < 5
            assert store.build("0123").revision == "98bc0212c947"


class TestInterrupted:
    """A comparison that ended between two queries goes on with the one that it has not measured."""

    @pytest.fixture
    def night(self, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
        monkeypatch.setenv("NEXMARK_DB", f"sqlite:///{tmp_path / 'results.db'}")
        params = {"build": "pypi:4.3.0", "against": "pypi:4.2.1", "queries": "q0,q5"}
        params |= {"workload": "small", "cluster": "local", "repetitions": 3}
        night = make_night(load(), "spark-4.3.0", BUILD_DAG_ID, "run 1", params)
        baselines = dict.fromkeys(QUERIES, deployed("4.2.1", "0122"))
        begin_night(night, Deployments(candidate=deployed("4.3.0", "0123"), baselines=baselines))
        ran(night, "q0")
        return night

    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
        """The params of the nights that would run."""
        params: list[Mapping[str, Any]] = []

        def run_night(config: object, dag: str, engine: str, given: Mapping[str, Any]) -> int:
            params.append(given)
            return 0

        monkeypatch.setattr(night_runner, "run_night", run_night)
        return params

    def test_what_it_has_measured_is_recorded_and_the_rest_begins(
        self, night: Night, started: list[Mapping[str, Any]], tmp_path: Path
    ) -> None:
        assert main(["build", "--continue", night.name, "--queries", "q5"]) == 0
        (params,) = started
        assert (params["queries"], params["repetitions"]) == ("q5", 3)
        assert (params["build"], params["against"]) == ("pypi:4.3.0", "pypi:4.2.1")
        with open_store(f"sqlite:///{tmp_path / 'results.db'}") as store:
            of_q0 = store.repetitions(night.name, ["q0"])
            values = {row.query: row.value for row in store.verdicts(night.name) if row.decides}
        assert [row.ok for row in of_q0].count(True) == 5  # of 6, as `ran` leaves them
        assert values["q5"] == Value.MISSING

    def test_while_it_runs_it_is_not_judged(
        self,
        night: Night,
        started: list[Mapping[str, Any]],
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        me = identify(os.getpid())
        night.spark_cluster.claim(Lease(night.dag_id, night.run_id, me, me))
        assert main(["build", "--continue", night.name]) == 2
        assert "has cluster local still; wait until it has ended" in capsys.readouterr().err
        assert started == []


class TestItself:
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'results.db'}"

    @pytest.fixture
    def night(self, url: str, begin: Callable[[str], Night]) -> Night:
        return begin(url)

    @pytest.fixture
    def opened(self, night: Night, url: str) -> Iterator[Store]:
        with open_store(url) as store:
            yield store

    def test_what_a_database_missed_in_the_middle_is_recorded_at_the_end(
        self, night: Night, opened: Store
    ) -> None:
        """Nobody has to do anything where it came back in time."""
        tasks.record("q5")
        judging.judge()
        assert {x.query for x in opened.repetitions(NAME)} == {"q0", "q5"}
        assert {x.query for x in opened.validations(NAME)} == {"q0", "q5"}
        said = Path(os.environ["NEXMARK_PROGRESS"]).read_text()
        assert "q0: was not recorded; is recorded now" in said
        assert "q5: was not recorded" not in said

    def test_a_later_round_too(self, night: Night, opened: Store) -> None:
        fresh = [Run(query="q5", number=n, stage=2) for n in (1, 2)]
        night.files.group(round_group(2)).write_runs(fresh)
        for query in QUERIES:
            tasks.record(query)
        assert night_records.lacking(night, opened) == [round_group(2)]
        judging.judge()
        assert night_records.lacking(night, opened) == []

    def test_whether_queries_survive_is_kept_too(
        self, night: Night, url: str, opened: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outcome = UpgradeOutcome(
            query="q5", baseline_build="0123", outcome="NOT KNOWN", red=True, reason="Zündung"
        )
        engine = connect(url)
        with writing(engine).begin():
            night_records.record_upgrades(night, [outcome])
        engine.dispose()
        assert opened.compatibility(NAME) == []
        said = Path(os.environ["NEXMARK_PROGRESS"]).read_text()
        assert "compatibility: not recorded yet: " in said
        judging.judge()
        (found,) = opened.compatibility(NAME)
        assert (found.query, found.outcome, found.red, found.reason) == (
            *("q5", "NOT KNOWN", True, "Zündung"),
        )
        assert night_records.record_lacking(night, opened, print) == 0

    def test_a_night_that_still_runs_is_refused(
        self, night: Night, opened: Store, capsys: pytest.CaptureFixture[str]
    ) -> None:
        me = identify(os.getpid())
        night.spark_cluster.claim(Lease(night.dag_id, night.run_id, me, me))
        assert main(RECORD) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"run {NAME}: has cluster local still; wait until it has ended")
        assert error.count("\n") == 1
        assert opened.repetitions(NAME) == []

    def test_a_night_of_a_process_that_is_gone_is_not(self, night: Night, opened: Store) -> None:
        with subprocess.Popen(["sleep", "60"]) as gone:
            held = identify(gone.pid)
            gone.kill()
        night.spark_cluster.claim(Lease(night.dag_id, night.run_id, held, held))
        assert main(RECORD) == 1
        assert len(opened.repetitions(NAME)) == 6

    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("run 7", f"run 'run 7' is not kept in .*; the nearest are: {NAME}"),
            ("", "run '' is not kept in .*; the nearest are: "),
            ("../../x", "is not kept in "),
        ],
    )
    def test_another_name_is_one_line(
        self, night: Night, name: str, told: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["record", "--run", name]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert told.replace(".*", str(night.directory.parents[1])) in error

    def test_the_latest_is_the_newest_that_is_kept(
        self, night: Night, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["record", "--run", "latest", "--engine", "spark-9"]) == 2
        assert "run latest: no night of engine 'spark-9' is kept" in capsys.readouterr().err
        assert main(["record", "--run", "latest", "--engine", night.engine.name]) == 1
        assert capsys.readouterr().err.startswith(f"latest: {NAME}\n")

    @pytest.mark.parametrize("text", ["", "{}", "[]", '{"dag_id": 1', "\0"])
    def test_a_damaged_plan_is_one_line(
        self, night: Night, text: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (night.directory / "night.json").write_text(text)
        assert main(["record", "--run", "run_1"]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "night.json cannot be read (" in error

    def test_a_database_that_cannot_be_opened_is_found_before_anything_costs_time(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In every mode, also where the plan needs nothing that is recorded."""
        monkeypatch.setenv("NEXMARK_DB", "postgresql://ada@127.0.0.1:9/results")
        run = SimpleNamespace(dag_id="d", run_id="r", logical_date=None)
        monkeypatch.setattr(preflight, "get_current_context", lambda: {"dag_run": run})
        with pytest.raises(AirflowFailException, match="check NEXMARK_DB") as caught:
            preflight.prepare_night("spark-4.3.0", {"workload": "smoke", "queries": "q0"})
        assert "\n" not in str(caught.value)
        assert not list(home.glob("runs/*"))

    def test_without_any_night_it_makes_nothing(
        self, home: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(RECORD) == 2
        assert "no night is kept in" in capsys.readouterr().err
        assert not home.exists()
