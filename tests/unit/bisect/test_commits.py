"""The commits of a repository are built, each once and whole, and the answer is a commit."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nexmark.bisect import built_commits
from nexmark.bisect.build_sequence import BuildSequence
from nexmark.bisect.built_commits import BuiltCommits, commits_to_search
from nexmark.bisect.search import Search, table
from nexmark.cli import night_runner
from nexmark.cli.app import main
from nexmark.config import paths
from nexmark.engines import BuildError
from nexmark.engines.launcher import ProcessGroup, start
from nexmark.errors import NexmarkError
from nexmark.verdict.bisection import Pairs
from nexmark_jobs.host.processes import identify
from tests.git_repository import GitRepository
from tests.unit.bisect.test_measuring import Machine

#: Makes what looks like a build of the file `speed`, unless that says that it cannot be built.
BUILD = """
grep -qv broken speed || { echo cannot compile; exit 3; }
mkdir -p "$NEXMARK_BUILD/bin" "$NEXMARK_BUILD/jars"
cp speed "$NEXMARK_BUILD/RELEASE"
echo "$NEXMARK_COMMIT" > "$NEXMARK_BUILD/COMMIT"
touch "$NEXMARK_BUILD/bin/spark-submit" "$NEXMARK_BUILD/jars/spark-core_2.13-4.3.0.jar"
echo built >> "$COUNT"
"""
STATE_STORE = "sql/core/src/main/scala/org/apache/spark/sql/execution/streaming/state/Store.scala"
SPEEDS = ("fast 0", "fast 1", "fast 2", "slow 3", "slow 4")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    return tmp_path / "home"


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    return GitRepository.make(tmp_path / "a 'clone' of $HOME")


def commit_all(repository: GitRepository, *speeds: str) -> list[str]:
    """Commit each speed; the slow ones touch the state store, too."""
    return [
        repository.commit(f"Be {speed}", {"speed": f"{speed}\n", STATE_STORE: speed.split()[0]})
        for speed in speeds
    ]


def sequence(repository: GitRepository, command: str = BUILD) -> BuiltCommits:
    place, commits = commits_to_search(str(repository.path), "HEAD~1", "HEAD")
    return BuiltCommits(place, command, commits, lambda _: None)


def built(tmp_path: Path) -> int:
    count = tmp_path / "count"
    return len(count.read_text().splitlines()) if count.exists() else 0


class TestBuilding:
    def test_a_commit_is_built_once_in_a_checkout_of_its_own(
        self, repository: GitRepository, tmp_path: Path
    ) -> None:
        first, second = commit_all(repository, "fast 1", "slow 2")
        (repository.path / "speed").write_text("not committed")
        before = {path: path.stat().st_mtime_ns for path in repository.path.rglob("*")}
        commits = sequence(repository)
        for _ in range(2):
            for build in commits.builds:
                commits.prepare(build)
        homes = [Path(build.removeprefix("directory:")) for build in commits.builds]
        assert [(home / "RELEASE").read_text() for home in homes] == ["fast 1\n", "slow 2\n"]
        assert [(home / "COMMIT").read_text().strip() for home in homes] == [first, second]
        assert [home.name for home in homes] == [first, second]
        assert built(tmp_path) == 2
        assert {path: path.stat().st_mtime_ns for path in repository.path.rglob("*")} == before

    def test_what_make_distribution_leaves_is_a_build(self, repository: GitRepository) -> None:
        commit_all(repository, "fast 1", "slow 2")
        commits = sequence(repository, f"NEXMARK_BUILD=dist{BUILD}")
        commits.prepare(commits.builds[0])
        home = Path(commits.builds[0].removeprefix("directory:"))
        assert (home / "bin" / "spark-submit").exists()

    def test_another_command_builds_another_build(
        self, repository: GitRepository, tmp_path: Path
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        for command in (BUILD, f"{BUILD} # differently"):
            commits = sequence(repository, command)
            commits.prepare(commits.builds[0])
        assert built(tmp_path) == 2

    @pytest.mark.parametrize(
        ("command", "says"),
        [
            (BUILD, "the build command failed with 3: cannot compile; its log: "),
            ("kill -9 $$", "the build command failed with -9: it printed nothing"),
            ("touch $NEXMARK_BUILD/x", "no Spark build in $NEXMARK_BUILD or in dist/ after the"),
            ("true", "no Spark build in $NEXMARK_BUILD or in dist/ after the build command"),
        ],
    )
    def test_what_cannot_be_built_is_one_line_and_leaves_nothing(
        self, repository: GitRepository, command: str, says: str
    ) -> None:
        commit_all(repository, "fast 1", "broken 2")
        commits = sequence(repository, command)
        with pytest.raises(BuildError) as caught:
            commits.prepare(commits.builds[-1])
        assert f"{commits.commits[-1].revision[:12]} Be broken 2: {says}" in str(caught.value)
        assert [x for x in commits.directory.iterdir() if x.suffix != ".lock"] == []

    def test_a_build_that_was_killed_half_way_is_begun_again(
        self, repository: GitRepository
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        commits = sequence(repository)
        half = commits.directory / f".{commits.commits[0].revision}"
        (half / "build" / "bin").mkdir(parents=True)
        (half / "build" / "bin" / "half").touch()
        commits.prepare(commits.builds[0])
        home = Path(commits.builds[0].removeprefix("directory:"))
        assert not (home / "bin" / "half").exists()
        assert not half.exists()

    def test_the_build_command_sees_no_variable_of_ours_that_may_be_a_secret(
        self, repository: GitRepository, monkeypatch: pytest.MonkeyPatch, home: Path
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        monkeypatch.setenv("NEXMARK_AIRFLOW_TOKEN", "hunter2")
        monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "hunter2")
        monkeypatch.setenv("GIT_DIR", "hunter2")
        commits = sequence(repository, "env; false")
        with pytest.raises(BuildError):
            commits.prepare(commits.builds[0])
        (log,) = (home / "logs").glob("run-build-*.log")
        assert "COUNT=" in log.read_text()
        assert "hunter2" not in log.read_text()

    def test_a_secret_in_the_last_line_of_a_log_is_not_shown(
        self, repository: GitRepository
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        commits = sequence(repository, "echo token=hunter2hunter2; exit 3")
        with pytest.raises(BuildError, match="failed with 3: token=") as caught:
            commits.prepare(commits.builds[0])
        assert "hunter2" not in str(caught.value)

    def test_a_build_command_ends_when_the_interrupt_comes_just_as_it_starts(
        self, repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        pids = tmp_path / "pids"
        commits = sequence(
            repository, f"sleep 300 & echo $$ $! > {shlex.quote(str(pids))}; sleep 300"
        )
        started = []

        def started_and_interrupted(*arguments: Any) -> ProcessGroup:
            running = start(*arguments)
            wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
            started.extend(identify(int(pid)) for pid in pids.read_text().split())
            os.kill(os.getpid(), signal.SIGINT)
            return running

        monkeypatch.setattr(built_commits, "start", started_and_interrupted)
        with pytest.raises(KeyboardInterrupt):
            commits.prepare(commits.builds[0])
        assert len(started) == 2
        assert all(started)
        wait_until(lambda: not any(each and each.alive for each in started))

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    def test_a_build_command_ends_with_the_command_that_started_it(
        self, repository: GitRepository, tmp_path: Path, number: signal.Signals
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        pids = tmp_path / "pids"
        command = f"sleep 300 & echo $$ $! > {shlex.quote(str(pids))}; sleep 300"
        process = subprocess.Popen(
            [sys.executable, "-m", "nexmark.cli", *arguments(repository, build=command)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a CI may ignore it
        )
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        running = [identify(int(pid)) for pid in pids.read_text().split()]
        assert all(running)
        os.kill(process.pid, number)
        said, _ = process.communicate(timeout=60)
        wait_until(lambda: not any(each and each.alive for each in running))
        if number != signal.SIGKILL:
            assert process.returncode == 130
            assert "interrupted: the same command goes on from here" in said
        commits = paths.builds_dir() / "commits"
        assert list(commits.glob("*/[!.]*")) == []


def wait_until(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class TestCommits:
    def test_they_are_in_their_order_and_a_merge_is_one(self, repository: GitRepository) -> None:
        first, second = commit_all(repository, "fast 1", "fast 2")
        repository.git("checkout", "--quiet", "-b", "aside", first)
        repository.commit("Aside", {"aside": "1"})
        repository.git("checkout", "--quiet", "main")
        repository.git("merge", "--quiet", "--no-ff", "--message", "Merge", "aside")
        merged, last = repository.git("rev-parse", "HEAD"), repository.commit("Last", {"b": "1"})
        repository.git("tag", "v1", first)
        place, commits = commits_to_search(f"{repository.path}/", "v1", "main")
        assert [commit.revision for commit in commits] == [first, second, merged, last]
        assert commits[2].name == f"{merged[:12]} Merge"
        assert place == repository.path / ".git"

    @pytest.mark.parametrize(
        ("good", "bad", "says"),
        [
            ("HEAD", "HEAD", "--good and --bad are the same commit, "),
            (
                "HEAD",
                "HEAD~1",
                "'HEAD' has commits that --bad 'HEAD~1' lacks; give a commit",
            ),
            ("none", "HEAD", "bisect: --good: no commit 'none' in the repository; give a hash, a"),
            ("HEAD~1", "HEAD:speed", "bisect: --bad: no commit 'HEAD:speed' in the repository"),
            ("", "HEAD", "bisect: --good: '' is no revision; give --good REV"),
            ("HEAD~1", "--all", "bisect: --bad: '--all' is no revision; give --bad REV"),
            ("HEAD~1", "$(touch x)", "bisect: --bad: no commit '$(touch x)' in the repository"),
        ],
    )
    def test_a_wrong_revision_is_one_line(
        self, repository: GitRepository, good: str, bad: str, says: str
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        with pytest.raises(NexmarkError) as caught:
            commits_to_search(str(repository.path), good, bad)
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_what_is_no_repository_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(NexmarkError, match=r"--repo: '/none': git rev-parse: .*; give"):
            commits_to_search("/none", "a", "b")


def arguments(repository: GitRepository, build: str = BUILD, **changes: str) -> list[str]:
    options = {
        **{"repo": str(repository.path), "build-command": build, "query": "q5"},
        **{"good": "HEAD~1", "bad": "HEAD", "workload": "small", "cluster": "local"},
        **changes,
    }
    return ["bisect", *(f"--{name}={value}" for name, value in options.items())]


class CommitMachine(Machine):
    """Nights that are recorded at once; a build is as slow as its commit says."""

    def is_slow(self, build: str) -> bool:
        home = Path(build.removeprefix("directory:"))
        return (home / "RELEASE").read_text().startswith("slow")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> CommitMachine:
    made = CommitMachine(slow=set())
    monkeypatch.setattr(night_runner, "run_night", made)
    return made


class TestSearch:
    def test_the_answer_is_a_commit_with_its_comparison(
        self,
        repository: GitRepository,
        machine: CommitMachine,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        commits = commit_all(repository, *SPEEDS)
        assert main(arguments(repository, good=commits[0], bad="main")) == 0
        said = capsys.readouterr().out.splitlines()
        assert said[-1].startswith(f"first bad commit: {commits[3][:12]} Be slow 3, with 9")
        assert said[-5] == f"{commits[3]} of 2026-11-03: Be slow 3"
        assert f"from {commits[2][:12]} to {commits[3][:12]}: 1 of 1 commit touches" in said[-4]
        assert said[-3].endswith(f"/compare/{commits[2]}...{commits[3]}")
        assert said[-2].endswith("Be slow 3 (2026-11-03; state store)")
        made = {path.name for path in (paths.builds_dir() / "commits").glob("*/[!.]*")}
        assert made == {commits[place] for place in (0, 2, 3, 4)}, "what it needs is built"
        assert built(tmp_path) == len(made)

    def test_the_same_command_again_builds_and_measures_nothing(
        self,
        repository: GitRepository,
        machine: CommitMachine,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        commit_all(repository, *SPEEDS)
        for _ in range(2):
            assert main(arguments(repository, good="HEAD~4")) == 0
            nights, count = len(machine.ran), built(tmp_path)
        assert len(machine.ran) == nights
        assert built(tmp_path) == count
        assert f"{nights} nights of an earlier search are used" in capsys.readouterr().out

    def test_a_commit_that_cannot_be_built_is_said_and_left_out(
        self,
        repository: GitRepository,
        machine: CommitMachine,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        commits = commit_all(repository, "fast 0", "fast 1", "broken 2", "slow 3", "slow 4")
        assert main(arguments(repository, good="HEAD~4")) == 0
        said = capsys.readouterr().out
        assert f"left out: {commits[2][:12]} Be broken 2: the build command failed with 3" in said
        last = said.splitlines()[-1]
        assert f"one of {commits[2][:12]} Be broken 2, {commits[3][:12]} Be slow 3, with" in last

    def test_an_end_that_cannot_be_built_ends_the_search_before_any_night(
        self,
        repository: GitRepository,
        machine: CommitMachine,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        commit_all(repository, "fast 0", "fast 1", "broken 2")
        assert main(arguments(repository, good="HEAD~2")) == 2
        assert "Be broken 2: the build command failed with 3" in capsys.readouterr().err
        assert machine.ran == []

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"builds": "pypi:4.1.0"}, "bisect: --builds is given with --repo, whose commits"),
            (
                {"build-command": " "},
                "bisect: --repo is given without --build-command; give --build-",
            ),
            ({"good": "none"}, "bisect: --good: no commit 'none'"),
        ],
    )
    def test_a_mistake_is_one_line_and_nothing_is_built(
        self,
        repository: GitRepository,
        machine: CommitMachine,
        tmp_path: Path,
        given: dict[str, str],
        says: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        assert main(arguments(repository, **given)) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1
        assert built(tmp_path) == 0

    def test_a_repository_without_a_command_and_a_command_without_a_repository(
        self, repository: GitRepository, capsys: pytest.CaptureFixture[str]
    ) -> None:
        commit_all(repository, "fast 1", "slow 2")
        both = arguments(repository)
        assert main([each for each in both if not each.startswith("--build-command")]) == 2
        assert "--repo is given without --build-command; give" in capsys.readouterr().err
        assert main([each for each in both if not each.startswith("--repo")]) == 2
        assert "--build-command is given without --repo; give --repo" in capsys.readouterr().err


def test_the_table_of_many_commits_has_those_that_matter() -> None:
    builds = [f"b{number}" for number in range(400)]
    names = {build: f"{build} is the commit" for build in builds}
    nights = [Pairs("b399", (0.2, 0.21, 0.19)), Pairs("b200", (0.0, 0.01, -0.01))]
    search = Search(builds, nights, 0.004, ["b201"], names, "commit")
    lines = table(search, search.state()).splitlines()
    assert lines[0].startswith("commit ")
    assert [line.split()[0] for line in lines[1:5]] == ["b0", "b200", "b201", "b399"]
    assert lines[5:] == ["and 396 more, none of them measured"]


def test_a_listed_build_and_a_commit_are_searched_alike(repository: GitRepository) -> None:
    commit_all(repository, "fast 1", "slow 2")
    of_commits: BuildSequence = sequence(repository)
    assert of_commits.names[of_commits.builds[1]].endswith(" Be slow 2")
