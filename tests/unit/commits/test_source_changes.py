"""What changed between two builds: the address of the comparison, and the commits that matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.commits.source_changes import SHOWN, areas_of, source_change
from nexmark.config import Repository
from tests.git_repository import GitRepository

COMPARE = "https://forge.example/spark/compare/{{ old }}...{{ new }}"
MAIN = "sql/core/src/main/scala/org/apache/spark/sql/execution"
STORE = f"{MAIN}/streaming/state/RocksDB.scala"


@pytest.fixture
def clone(tmp_path: Path) -> GitRepository:
    return GitRepository.make(tmp_path / "a clone")


def test_the_commits_that_matter_are_listed_the_newest_first(clone: GitRepository) -> None:
    old = clone.commit("Begin", {"README.md": "1"})
    store = clone.commit("[SPARK-1] Flush less", {STORE: "1"})
    clone.commit("[SPARK-2] Mend a test", {STORE.replace("main", "test"): "1"})
    clone.commit("[SPARK-3] Say more", {"docs/index.md": "1"})
    new = clone.commit("[SPARK-4] Plan\x1b[31m and join", {f"{MAIN}/joins/Hash.scala": "1"})
    change = source_change(Repository(compare=COMPARE, clone=str(clone.path)), old, new, ["q5"])
    assert change is not None
    assert change.address == f"https://forge.example/spark/compare/{old}...{new}"
    assert [(x.revision, x.areas) for x in change.commits] == [
        (new, ("SQL execution",)),
        (store, ("state store",)),
    ]
    assert change.lines == [
        f"changed for q5 from {old[:12]} to {new[:12]}: 2 of 4 commits touch streaming, SQL "
        "execution or the state store",
        f"  https://forge.example/spark/compare/{old}...{new}",
        f"  {new[:12]} [SPARK-4] Plan [31m and join (2026-11-03; SQL execution)",
        f"  {store[:12]} [SPARK-1] Flush less (2026-11-03; state store)",
    ]


def test_first_digits_are_enough_and_many_commits_are_cut_off(clone: GitRepository) -> None:
    old = clone.commit("Begin", {"README.md": "1"})
    for number in range(SHOWN + 2):
        new = clone.commit(f"Change {number}", {STORE: str(number)})
    change = source_change(Repository(clone=str(clone.path)), old[:10], new[:10])
    assert change is not None
    assert change.address is None
    assert change.total == len(change.commits) == SHOWN + 2
    assert change.lines[-1] == "  and 2 more"


def test_a_way_back_is_called_so(clone: GitRepository) -> None:
    old, new = (clone.commit(text, {STORE: text}) for text in "ab")
    change = source_change(Repository(clone=str(clone.path)), new, old)
    assert change is not None
    assert "a way back, which adds no commit" in change.lines[0]


@pytest.mark.parametrize("clone", ["/none", "."], ids=["no repository", "without the commits"])
def test_a_clone_that_cannot_help_is_one_line_without_its_path(clone: str) -> None:
    change = source_change(Repository(compare=COMPARE, clone=clone), "a" * 40, "b" * 40)
    assert change is not None
    assert change.address is not None
    assert (change.total, change.commits) == (None, ())
    assert change.problem.startswith("the clone in include/conf/engines.yaml cannot list")
    assert "/none" not in "".join(change.lines)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "b" * 40),
        ("a" * 40, ""),
        ("a" * 40, "a" * 40),
        ("a" * 11, "a" * 40),
        ("--all", "b" * 40),
    ],
)
def test_where_a_revision_is_not_known_or_the_same_there_is_no_change(old: str, new: str) -> None:
    assert source_change(Repository(compare=COMPARE), old, new) is None


def test_without_a_repository_the_revisions_are_named() -> None:
    change = source_change(None, "a" * 40, "b" * 40)
    assert change is not None
    assert change.lines == [f"changed from {'a' * 12} to {'b' * 12}"]


def test_a_clone_is_only_read(clone: GitRepository) -> None:
    old, new = (clone.commit(text, {STORE: text}) for text in "ab")
    (clone.path / STORE).write_text("not committed")
    before = {path: path.stat().st_mtime_ns for path in clone.path.rglob("*")}
    assert source_change(Repository(clone=str(clone.path)), old, new) is not None
    assert {path: path.stat().st_mtime_ns for path in clone.path.rglob("*")} == before


def test_variables_of_a_git_that_runs_us_lead_to_no_other_repository(
    clone: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (clone.commit(text, {STORE: text}) for text in "ab")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    change = source_change(Repository(clone=str(clone.path)), old, new)
    assert change is not None
    assert change.total == 1


@pytest.mark.parametrize(
    ("file", "areas"),
    [
        (STORE, ("state store",)),
        (f"{MAIN}/streaming/operators/stateful/join/Joiner.scala", ("state store",)),
        (f"{MAIN}/datasources/v2/state/StateDataSource.scala", ("state store",)),
        (f"{MAIN}/streaming/runtime/MicroBatchExecution.scala", ("streaming",)),
        ("sql/api/src/main/scala/org/apache/spark/sql/streaming/Trigger.scala", ("streaming",)),
        ("connector/kafka-0-10-sql/src/main/scala/K.scala", ("streaming",)),
        (f"{MAIN}/aggregate/HashAggregateExec.scala", ("SQL execution",)),
        ("sql/catalyst/src/main/scala/x/optimizer/Optimizer.scala", ("SQL execution",)),
        ("sql/core/src/test/scala/org/apache/spark/sql/execution/X.scala", ()),
        ("streaming/src/main/scala/org/apache/spark/streaming/DStream.scala", ()),
        ("core/src/main/scala/org/apache/spark/SparkContext.scala", ()),
    ],
)
def test_a_file_belongs_to_an_area(file: str, areas: tuple[str, ...]) -> None:
    assert areas_of([file]) == areas
