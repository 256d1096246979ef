"""Evidence is sent to others: it says nothing of where files of this machine are."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.model import Value
from nexmark.report.evidence_files import write_bundle, write_night
from nexmark.report.host_paths import with_short_paths, without_host_paths
from nexmark.store import BuildRecord, Store
from tests.unit.report.rendered import evidence
from tests.unit.web import web_nights


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the package, in the home directory of a user."""
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "ada" / "nexmark"))
    return tmp_path / "ada" / "nexmark"


@pytest.fixture
def run(store: Store, home: Path) -> str:
    """A red night of a build in a directory; the reason of a failure names a file of its run."""
    build = BuildRecord("d1" * 8, "4.4.0", f"directory:{home.parent}/spark/dist")
    directory = home / "runs" / "night"
    values = {"q0": Value.MISSING, "q5": Value.REGRESSION, "q7": Value.INVALID}
    reason = f"see {directory}/q0/rep-1/log"
    return web_nights.record(store, 1, values, reason, build=build, directory=directory)


def test_no_file_of_the_evidence_has_a_path_of_this_machine(
    store: Store, run: str, home: Path, tmp_path: Path
) -> None:
    write_night(home / "runs" / "night" / "report", store, run)
    decided = evidence(store, run, {"choice": "Reject", "who": "ada", "reason": f"{home}/x"})
    write_bundle(home / "signoff", home / "copy", decided, store)
    again = write_bundle(home / "signoff", home / "copy", decided, store)
    assert again.directory == home / "signoff"
    files = [path for path in home.rglob("*") if path.is_file()]
    assert {"evidence.json", "evidence.html", "table.txt", "results.json"} <= {
        path.name for path in files
    }
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    assert {path for path, text in texts.items() if str(tmp_path / "ada") in text} == set()
    report = texts[home / "runs" / "night" / "report" / "evidence.html"]
    assert "$NEXMARK_HOME/runs/night/q0/rep-1/log" in report
    assert "--build directory:~/spark/dist" in report


def test_the_terminal_still_has_the_whole_path(store: Store, run: str, home: Path) -> None:
    assert f"{home}/runs/night/q0" in "\n".join(evidence(store, run).report.first_lines)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("file://{0}/runs/1", "file://$NEXMARK_HOME/runs/1"),
        ("{0}", "$NEXMARK_HOME"),
        ("{0}-old/x", "~/nexmark-old/x"),
        ("/mnt{0}/x", "/mnt{0}/x"),
        ("nothing", "nothing"),
    ],
)
def test_only_whole_paths_are_shortened(home: Path, text: str, shown: str) -> None:
    given, expected = text.format(home), shown.format(home)
    assert with_short_paths(given) == expected
    assert without_host_paths({"a": [{"b": given}, 1]}) == {"a": [{"b": expected}, 1]}
