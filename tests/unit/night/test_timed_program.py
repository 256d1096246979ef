"""A baseline's digest is compared while a timed run imports the same code; nothing else counts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nexmark_jobs
from nexmark.config import load
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.timed_program import imported, timed_program
from nexmark.recording.night_records import record_night
from nexmark.recording.repetitions import Expected, ResultOutput, _accepted
from nexmark.store import Store, ValidationRecord, open_store
from tests.unit.store.store_builder import measurement, repetition

HERE = Path(nexmark_jobs.__file__).parent


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """A copy of the jobs, to be changed."""
    target = tmp_path / "changed" / "nexmark_jobs"
    shutil.copytree(HERE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def change(jobs: Path, name: str, old: str, new: str) -> None:
    path = jobs / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def add(jobs: Path, name: str, line: str) -> None:
    path = jobs / name
    path.write_text(f"{path.read_text()}\n{line}\n")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("experiments/long_window.py", "SIZE = 7"),
        ("cpu_sampler.py", "FORMAT = 2"),
        ("host/canary.py", "FORMAT = 2"),
        ("dump_events.py", "MORE = 1"),
        ("run_query.py", "# it reads its arguments"),
        ("queries/q05_hot_items.py", "# all ties of the maximum"),
    ],
)
def test_what_a_timed_run_does_not_import_and_comments_leave_it_the_same(
    jobs: Path, name: str, line: str
) -> None:
    add(jobs, name, line)
    assert timed_program(jobs) == timed_program(HERE)


def test_docstrings_leave_it_the_same(jobs: Path) -> None:
    change(jobs, "session.py", '"""Work in a directory', '"""Now work in a directory')
    change(jobs, "session.py", '"""Delete the directory', '"""Remove the directory')
    change(jobs, "session.py", '"""A directory on any', '"""A place on any')
    assert timed_program(jobs) == timed_program(HERE)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("run_query.py", "_POLL_S = 0.06"),
        ("paced_query.py", "_POLL_S = 0.06"),
        ("queries/q05_hot_items.py", "SIZE = 7"),
        ("generator/draws.py", "SALT = None"),
        ("generator/__init__.py", "SALT = 1"),
        ("sources/kafka_topic.py", "import nexmark_jobs.cpu_sampler"),
    ],
)
def test_code_that_a_timed_run_imports_makes_it_another(jobs: Path, name: str, line: str) -> None:
    add(jobs, name, line)
    assert timed_program(jobs) != timed_program(HERE)


def test_a_new_query_makes_it_another(jobs: Path) -> None:
    shutil.copy(jobs / "queries" / "q05_hot_items.py", jobs / "queries" / "q24_more.py")
    assert timed_program(jobs) != timed_program(HERE)


@pytest.mark.parametrize("program", ["run_query", "paced_query"])
def test_all_that_a_timed_run_really_imports_is_in_it(program: str) -> None:
    """But for the experiments, which it imports to know their names."""
    show = (
        f"import sys; import nexmark_jobs.{program};"
        "print(*(x.__file__ for n, x in sys.modules.items() if n.startswith('nexmark_jobs')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", show],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    really = {Path(name) for name in done.stdout.split()}
    really = {path for path in really if "experiments" not in path.parts}
    assert len(really) > 20
    assert really <= imported(HERE).keys()


class TestAccepted:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
        monkeypatch.delenv("NEXMARK_DB", raising=False)

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        (tmp_path / "home").mkdir()
        with open_store(f"sqlite:///{tmp_path / 'home' / 'results.db'}") as opened:
            yield opened

    def begin(self, run: str, jobs: str, program: str) -> Night:
        asked = {"workload": "smoke", "cluster": "local", "queries": "q0", "repetitions": 1}
        night = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", run, asked)
        deployment = Deployment(
            build="0123456789abcdef",
            spark_version="4.3.0",
            spark_home="/opt/spark",
            source="pypi:4.3.0",
            jobs=jobs,
            jobs_home="/opt/jobs/nexmark_jobs",
            program=program,
        )
        night.write()
        deployments = Deployments(candidate=deployment)
        deployments.write(night)
        record_night(night, deployments)
        return night

    def baseline(self, store: Store, jobs: str, program: str) -> None:
        name = self.begin("run 1", jobs, program).name
        store.record_validation(ValidationRecord(name, "q0", True))
        store.record_repetition(repetition(name, "q0"))
        store.accept(name, "ada", "the first one")

    def expected(self, store: Store, jobs: str, program: str) -> Expected | None:
        night = self.begin("run 2", jobs, program)
        output = ResultOutput(
            formulation=measurement().formulation,
            output_mode="append",
            input_rows=1,
            output_rows=1,
            digest=None,
        )
        return _accepted(night, "q0", output, store)

    def test_other_jobs_with_the_same_program_have_its_digest(self, store: Store) -> None:
        self.baseline(store, "jobs-1", "same")
        found = self.expected(store, "jobs-2", "same")
        assert found is not None
        assert found.digest == measurement().digest

    def test_another_program_does_not(self, store: Store) -> None:
        self.baseline(store, "jobs-1", "one")
        assert self.expected(store, "jobs-2", "two") is None
