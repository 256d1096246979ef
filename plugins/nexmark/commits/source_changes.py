"""Say what changed in the source between two builds, by their revisions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from nexmark.commits.git import REVISION, GitError, git
from nexmark.config import Repository

SHORT = 12
"""The number of digits of a revision that are shown."""
SHOWN = 10
"""The largest number of commits that are listed as text."""
MOST = 1000
"""The largest number of commits that are read."""

_PATHS = ("sql", "connector/kafka-0-10-sql", "external/kafka-0-10-sql")
_AREAS = (
    (
        "state store",
        re.compile(
            r"^sql/core/src/main/.*/execution/"
            r"(streaming/state|streaming/operators/stateful|datasources/v2/state)/"
        ),
    ),
    (
        "streaming",
        re.compile(r"^sql/.*src/main/.*streaming/|^(connector|external)/kafka-0-10-sql/src/main/"),
    ),
    (
        "SQL execution",
        re.compile(r"^sql/(core/src/main/.*/sql/execution|catalyst/src/main)/"),
    ),
)
AREAS = "streaming, SQL execution or the state store"
_RECORD, _FIELD = "\x1e", "\x1f"
_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Commit:
    """A commit: its whole hash, the day it was committed, its title, and the areas it touches."""

    revision: str
    day: str
    title: str
    areas: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The commit in a few words: the first digits of its hash and its title."""
        return f"{self.revision[:SHORT]} {self.title}"


@dataclass(frozen=True)
class SourceChange:
    """The change from one revision to another.

    ``address`` is where the forge compares them, None if no template is configured. ``total`` is
    the number of commits between them, None without a clone that has both. ``commits`` are the ones
    among them that touch ``AREAS``, the newest first. ``problem`` says why the clone does not help.
    ``queries`` became red with it.
    """

    old: str
    new: str
    address: str | None = None
    total: int | None = None
    commits: tuple[Commit, ...] = ()
    problem: str = ""
    queries: tuple[str, ...] = ()

    @property
    def heading(self) -> str:
        """From what to what, and how many commits there are between."""
        between = f"from {self.old[:SHORT]} to {self.new[:SHORT]}"
        if self.total is None:
            return between
        if self.total == 0:
            return f"{between}: a way back, which adds no commit"
        commits = "commit" if self.total == 1 else "commits"
        touch = "touches" if len(self.commits) == 1 else "touch"
        return f"{between}: {len(self.commits)} of {self.total} {commits} {touch} {AREAS}"

    @property
    def lines(self) -> list[str]:
        """The change as text: a heading, the address, and a line per commit."""
        shown = [
            f"  {commit.name} ({commit.day}; {', '.join(commit.areas)})"
            for commit in self.commits[:SHOWN]
        ]
        if (more := len(self.commits) - SHOWN) > 0:
            shown.append(f"  and {more} more")
        problem = [f"  {self.problem}"] if self.problem else []
        address = [f"  {self.address}"] if self.address else []
        queries = f" for {', '.join(self.queries)}" if self.queries else ""
        return [f"changed{queries} {self.heading}", *address, *shown, *problem]


def source_change(
    repository: Repository | None, old: str, new: str, queries: Sequence[str] = ()
) -> SourceChange | None:
    """Return the change between two revisions; None if one is unknown or both are the same.

    Args:
        repository: Where the source is; None if that is not configured.
        old: The revision before the change; "" if it is not known.
        new: The revision after the change; "" if it is not known.
        queries: The queries that became red with it.
    """
    known = REVISION.fullmatch(old) and REVISION.fullmatch(new)
    if not known or old.startswith(new) or new.startswith(old):
        return None
    total: int | None = None
    commits: tuple[Commit, ...] = ()
    problem = ""
    if repository is not None and repository.clone is not None:
        try:
            total, commits = commits_between(repository.clone, old, new)
        except GitError:
            problem = (
                "the clone in include/conf/engines.yaml cannot list the commits; see that it is a "
                "clone with both revisions (git fetch)"
            )
    address = repository.comparison(old, new) if repository else None
    each = tuple(dict.fromkeys(queries))
    return SourceChange(old, new, address, total, commits, problem, each)


@lru_cache(maxsize=256)
def commits_between(clone: str, old: str, new: str) -> tuple[int, tuple[Commit, ...]]:
    """Return how many commits `new` has that `old` lacks, and those that touch ``AREAS``.

    Args:
        clone: The directory of a clone.
        old: The hash of a commit, or its first digits.
        new: The hash of a commit, or its first digits.

    Raises:
        GitError: The clone cannot be read, or lacks one of the commits.
    """
    place, between = Path(clone).expanduser(), f"{old}..{new}"
    total = git(place, "rev-list", "--count", between, "--", timeout_s=_TIMEOUT_S)
    listed = read_commits(place, f"--max-count={MOST}", "--name-only", between, "--", *_PATHS)
    return int(total), tuple(commit for commit in listed if commit.areas)


def read_commits(repository: Path, *arguments: str) -> Iterator[Commit]:
    """Yield the commits that `git log` lists, each with the areas of the files that are listed."""
    layout = f"--format={_RECORD}%H{_FIELD}%cs{_FIELD}%s"
    text = git(repository, "log", "--no-show-signature", layout, *arguments, timeout_s=_TIMEOUT_S)
    for record in text.split(_RECORD)[1:]:
        head, *files = record.split("\n")
        revision, day, title = head.split(_FIELD, 2)
        yield Commit(revision, day, _printable(title), areas_of(files))


def areas_of(files: Sequence[str]) -> tuple[str, ...]:
    """Return the areas of Spark to which some files belong; tests and other files have none."""
    touched = {area for file in files if (area := _area(file))}
    return tuple(dict.fromkeys(area for area, _ in _AREAS if area in touched))


def _area(file: str) -> str:
    return next((area for area, pattern in _AREAS if pattern.search(file)), "")


def _printable(text: str) -> str:
    """Return a title without the control characters that a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
