"""Build the commits of a repository, one at a time and each once: the builds of a bisection.

<builds>/commits/<key>/<commit>/     the build of a commit; `key` is of the repository and command
<builds>/commits/<key>/.<commit>     what is being built; it becomes the directory above when whole

A commit is built in a clone of its own, which borrows the objects of the repository: the repository
and its working tree are only read.
"""

import hashlib
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nexmark.commits.git import GitError, git
from nexmark.commits.source_changes import SHORT, Commit, read_commits, source_change
from nexmark.config import Repository, paths
from nexmark.engines import BuildError, find_spark_home, spark_version
from nexmark.engines.cached_builds import COMMITS
from nexmark.engines.launcher import start
from nexmark.errors import NexmarkError
from nexmark.interrupts import interrupts_held_back, undisturbed
from nexmark.model import Say
from nexmark.reaper import command_variables, reaper_of_command
from nexmark.secrets import without_secrets
from nexmark_jobs.host.leases import locked
from nexmark_jobs.host.processes import end, identify

#: The directory that the build command fills, and the commit that it builds.
TARGET_VARIABLE, COMMIT_VARIABLE = "NEXMARK_BUILD", "NEXMARK_COMMIT"
#: Where `dev/make-distribution.sh` leaves a build.
_DIST = "dist"
_GRACE_S = 10.0
_LOCK_S = 24 * 3600.0
_LINE = 200


@dataclass(frozen=True)
class BuiltCommits:
    """The commits from a good one to a bad one, with the command that builds one of them.

    `repository` is the directory of the repository's data, `commits` are the good commit and those
    after it, up to the bad one; a merge counts as one. `compare` is where a forge compares
    revisions, None if that is not configured.
    """

    repository: Path
    command: str
    commits: Sequence[Commit]
    say: Say
    compare: str | None = None

    noun = "commit"
    #: A directory has the build of one commit for ever.
    fixed = True

    @property
    def builds(self) -> list[str]:
        """The builds of the commits, the good one first, as the param `build` of a night."""
        return [f"directory:{self.directory / commit.revision}" for commit in self.commits]

    @property
    def names(self) -> Mapping[str, str]:
        """The name of each build for people: the commit and its title."""
        return dict(zip(self.builds, (commit.name for commit in self.commits), strict=True))

    @property
    def directory(self) -> Path:
        """The directory of what this command has built of this repository."""
        text = f"{self.repository}\0{self.command}"
        return paths.builds_dir() / COMMITS / hashlib.sha256(text.encode()).hexdigest()[:16]

    def prepare(self, build: str) -> None:
        """Build a commit unless it is built; BuildError says why it cannot be."""
        commit = self.commits[self.builds.index(build)]
        target = self.directory / commit.revision
        lock = self.directory / f".{commit.revision}.lock"
        waiting = partial(self.say, f"waiting for another process that builds {commit.name}")
        with locked(lock, _LOCK_S, waiting):
            if target.is_dir():
                os.utime(target)  # what was not used for longest is removed first
                return
            with _work(self.directory / f".{commit.revision}") as work:
                self._build(commit, work).rename(target)

    def details(self, before: str, last: str) -> list[str]:
        """Return what is known of the change from one build to a later one, line by line."""
        places = {build: place for place, build in enumerate(self.builds)}
        old, new = (self.commits[places[build]] for build in (before, last))
        repository = Repository(compare=self.compare, clone=str(self.repository))
        change = source_change(repository, old.revision, new.revision)
        lines = [f"{new.revision} of {new.day}: {new.title}"]
        return lines + (change.lines if change else [])

    def _build(self, commit: Commit, work: Path) -> Path:
        """Build a commit in a new directory, and return the directory of its build."""
        checkout, target = work / "checkout", work / "build"
        target.mkdir()
        try:
            borrowed = ("--shared", "--no-checkout", "--quiet", "--template=")
            git(work, "clone", *borrowed, "--", str(self.repository), str(checkout))
            git(checkout, "checkout", "--quiet", "--detach", commit.revision, timeout_s=600)
        except GitError as error:
            raise BuildError(f"{commit.name}: cannot be checked out: {error}") from None
        self.say(f"building {commit.name}")
        log = paths.home() / "logs" / f"run-build-{commit.revision[:SHORT]}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        code = _run(self.command, checkout, self._environment(commit, target), log)
        if code != 0:
            problem = f"the build command failed with {code}: {_last_line(log)}"
            raise BuildError(f"{commit.name}: {problem}; its log: {log}")
        built = target if any(target.iterdir()) else checkout / _DIST
        try:
            spark_version(find_spark_home(built))
        except BuildError:
            problem = f"no Spark build in ${TARGET_VARIABLE} or in {_DIST}/ after the build command"
            raise BuildError(f"{commit.name}: {problem}; its log: {log}") from None
        return built

    def _environment(self, commit: Commit, target: Path) -> dict[str, str]:
        """Return the environment of the build command: without variables of Airflow, git or ours.

        They may have secrets, or lead git to another repository.
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AIRFLOW_", "GIT_", "NEXMARK_"))
        }
        of_commit = {TARGET_VARIABLE: str(target), COMMIT_VARIABLE: commit.revision}
        return kept | of_commit | command_variables()


def commits_to_search(directory: str, good: str, bad: str) -> tuple[Path, list[Commit]]:
    """Return the repository in a directory, and its commits from a good one to a bad one.

    Where branches were merged, the way along the first parents counts.

    Args:
        directory: The directory of a clone, or one in it.
        good: A revision without the change.
        bad: A later revision with it.

    Raises:
        NexmarkError: There is no repository or no such revision, or the good one is no ancestor.
    """
    place = Path(directory).expanduser()
    try:
        of_git = git(place, "rev-parse", "--path-format=absolute", "--git-common-dir").rstrip("\n")
    except GitError as error:
        raise NexmarkError(
            f"--repo: {directory!r}: {error}; give the directory of a clone"
        ) from None
    ends = [_commit(place, name, text) for name, text in (("--good", good), ("--bad", bad))]
    first, last = (commit.revision for commit in ends)
    if first == last:
        raise NexmarkError(f"--good and --bad are the same commit, {first}; give two")
    if git(place, "rev-list", "--count", f"{last}..{first}").strip() != "0":
        raise NexmarkError(
            f"--good: {good!r} has commits that --bad {bad!r} lacks; give a commit before it, as "
            "`git merge-base` prints one"
        )
    later = read_commits(place, "--first-parent", "--reverse", f"{first}..{last}", "--")
    return Path(of_git), [ends[0], *later]


def _commit(place: Path, option: str, text: str) -> Commit:
    """Return the commit of a revision; NexmarkError, with the option's name, if there is none."""
    if not text.strip() or text.startswith("-") or not text.isprintable():
        raise NexmarkError(f"bisect: {option}: {text!r} is no revision; give {option} REV")
    try:
        revision = git(place, "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}").strip()
    except GitError:
        problem = f"no commit {text!r} in the repository; give a hash, a tag or a branch"
        raise NexmarkError(f"bisect: {option}: {problem}") from None
    return next(read_commits(place, "--max-count=1", revision, "--"))


@contextmanager
def _work(directory: Path) -> Iterator[Path]:
    """Yield a new directory, and remove it at the end, whatever ends the block."""
    shutil.rmtree(directory, ignore_errors=True)  # a killed command has left it
    directory.mkdir(parents=True)
    try:
        yield directory
    finally:
        with undisturbed():
            shutil.rmtree(directory, ignore_errors=True)


def _run(command: str, directory: Path, environment: Mapping[str, str], log: Path) -> int:
    """Run a shell command in a process group of its own, and return its exit code.

    The whole group is ended afterwards, also when this command is interrupted. When it is killed,
    its reaper ends the group.

    Args:
        command: The command, as a person wrote it for the shell.
        directory: Its working directory.
        environment: Its environment.
        log: The file for its output.
    """
    with reaper_of_command(os.environ), interrupts_held_back() as let_through:
        running = start(["/bin/sh", "-c", command], environment, log, directory, signal.SIGKILL)
        process = identify(running.pid)
        try:
            let_through()
            return running.wait()
        finally:
            with undisturbed():
                if process is not None:
                    end([process], _GRACE_S)
                running.kill()


def _last_line(log: Path) -> str:
    """Return the last line of a log that is not empty, without secrets."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return without_secrets(lines[-1])[-_LINE:] if lines else "it printed nothing"
