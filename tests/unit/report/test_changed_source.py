"""A red night says what changed in the source between the last good build and the first bad one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nexmark.cli.app import main
from nexmark.evidence.build_comparison import build_named, compare_builds
from nexmark.evidence.night_evidence import make_report
from nexmark.evidence.query_evidence import query_evidence
from nexmark.model import Value
from nexmark.report.evidence_files import night_html
from nexmark.report.evidence_json import query_json
from nexmark.report.rendering import standalone
from nexmark.report.table import report_text
from nexmark.store import BuildRecord, Store
from tests.git_repository import STATE_STORE, GitRepository
from tests.unit.report.rendered import collect, evidence
from tests.unit.store.night_builder import OK, judged

RED = replace(OK, value=Value.REGRESSION, ratio=1.2, lo=1.15, hi=1.25, shift=0.18)


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[BuildRecord]:
    """Builds of four commits of a clone that engines.yaml names; the last two are what changed."""
    clone = GitRepository.make(tmp_path / "clone")
    titles = ("Begin", "Rest", "Write docs", "[SPARK-7] Flush <b>each</b> row")
    files = ("a", "b", "c", STATE_STORE)
    commits = [
        clone.commit(title, {file: title}) for title, file in zip(titles, files, strict=True)
    ]
    clone.name_in_copy_of_conf(tmp_path / "conf")
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path / "conf"))
    names = ("sha-429", "sha-1", "sha-2", "sha-3")
    return [
        BuildRecord(name, "4.4.0", f"tarball:{name}", commit)
        for name, commit in zip(names, commits, strict=True)
    ]


def between(old: BuildRecord, new: BuildRecord, counted: str) -> str:
    areas = "touches streaming, SQL execution or the state store"
    first, last = str(old.revision)[:12], str(new.revision)[:12]
    return f"changed for q5 from {first} to {last}: {counted} {areas}"


def test_the_change_is_from_the_last_night_that_was_not_red(
    store: Store, builds: list[BuildRecord]
) -> None:
    old, good, _, bad = builds
    judged(store, 1, build=good, baseline_builds=[old])
    judged(store, 2, RED, build=bad)
    run = judged(store, 3, RED, build=bad)
    report = make_report(store, run)
    lines = report_text(report).splitlines()
    place = lines.index(between(good, bad, "1 of 2 commits"))
    assert lines[place - 1].startswith("Since: ")
    address, commit = lines[place + 1 : place + 3]
    assert address == f"  https://forge.example/{good.revision}..{bad.revision}"
    assert commit.endswith("[SPARK-7] Flush <b>each</b> row (2026-11-03; state store)")
    (change,) = collect(store, run)["source_changes"]
    assert (change["old"], change["new"]) == (good.revision, bad.revision)
    assert [each["areas"] for each in change["commits"]] == [["state store"]]
    assert [x["revision"] for x in collect(store, run)["builds"]] == [bad.revision, old.revision]


@pytest.mark.parametrize("verb", ["report", "show", "nights"])
def test_every_verb_that_explains_a_night_lists_the_commits(
    store: Store,
    url: str,
    builds: list[BuildRecord],
    capsys: pytest.CaptureFixture[str],
    verb: str,
) -> None:
    """They have the same lines as the page of the night, after what happened and since when."""
    old, good, _, bad = builds
    judged(store, 1, build=good, baseline_builds=[old])
    run = judged(store, 2, RED, build=bad)
    (change,) = make_report(store, run).source_changes
    assert main([verb, "--db", url, *([] if verb == "nights" else ["--run", run])]) == 0
    indent = 4 * " " if verb == "nights" else ""
    lines = capsys.readouterr().out.splitlines()
    place = lines.index(indent + change.lines[0])
    assert lines[place - 1].startswith(f"{indent}Since: ")
    assert lines[place : place + len(change.lines)] == [indent + line for line in change.lines]


def test_a_build_that_was_red_for_another_reason_is_passed_over(
    store: Store, builds: list[BuildRecord]
) -> None:
    old, good, wrong, bad = builds
    judged(store, 1, build=good, baseline_builds=[old])
    invalid = replace(RED, value=Value.INVALID, ratio=None, lo=None, hi=None, shift=None)
    judged(store, 2, invalid, build=wrong)
    (change,) = make_report(store, judged(store, 3, RED, build=bad)).source_changes
    assert change.lines[0] == between(good, bad, "1 of 2 commits")


def test_the_page_links_to_the_comparison_and_the_file_has_its_address(
    store: Store, builds: list[BuildRecord]
) -> None:
    old, good, _, bad = builds
    judged(store, 1, build=good, baseline_builds=[old])
    run = judged(store, 2, RED, build=bad)
    page = night_html(evidence(store, run))
    assert f"<code>https://forge.example/{good.revision}..{bad.revision}</code>" in page
    assert "Flush &lt;b&gt;each&lt;/b&gt; row" in page
    assert "<b>each</b>" not in page


def test_without_an_earlier_night_it_is_from_the_baseline(
    store: Store, builds: list[BuildRecord]
) -> None:
    old, _, _, bad = builds
    run = judged(store, 1, RED, build=bad, baseline_builds=[old])
    (change,) = make_report(store, run).source_changes
    assert change.lines[0] == between(old, bad, "1 of 3 commits")


def test_a_comparison_on_demand_is_from_what_it_was_compared_with(
    store: Store, builds: list[BuildRecord]
) -> None:
    old, good, _, bad = builds
    judged(store, 1, build=good, baseline_builds=[old])
    run = judged(store, 2, RED, build=bad, teaches=False)
    (change,) = make_report(store, run).source_changes
    assert change.lines[0] == between(old, bad, "1 of 3 commits")


def test_the_same_build_and_one_whose_commit_is_unknown_say_nothing(
    store: Store, builds: list[BuildRecord]
) -> None:
    old, good, other, bad = builds
    judged(store, 1, build=good, baseline_builds=[old])
    assert make_report(store, judged(store, 2, RED, build=good)).source_changes == ()
    judged(store, 3, build=good)
    run = judged(store, 4, RED, build=replace(bad, id="sha-4", revision=None))
    assert make_report(store, run).source_changes == ()
    assert make_report(store, judged(store, 5, build=other)).source_changes == ()


def test_the_page_of_a_red_query_and_the_comparison_of_its_builds_say_it_too(
    store: Store, builds: list[BuildRecord]
) -> None:
    old, good, _, bad = builds
    judged(store, 1, build=good, baseline_builds=[old])
    night = store.night(judged(store, 2, RED, build=bad))
    page = query_evidence(store, night, "q5")
    (change,) = page.source_changes
    assert change.lines[0] == between(good, bad, "1 of 2 commits")
    text = standalone("query.html", draw=False, page=page, charts=[], over_time=[])
    assert f"<code>https://forge.example/{good.revision}..{bad.revision}</code>" in text
    assert query_json(page)["source_changes"][0]["new"] == bad.revision  # type: ignore[index]
    dags = {night.dag_id}
    named = [build_named(store, dags, build.id) for build in (bad, old, good)]
    newest, oldest, between_both = (one for one in named if one is not None)
    compared = compare_builds(store, dags, newest, oldest).source
    assert compared is not None
    assert (compared.old, compared.new) == (old.revision, bad.revision)
    assert compared.total == 3
    assert compare_builds(store, dags, between_both, between_both).source is None


def test_a_query_that_is_not_red_has_no_change(store: Store, builds: list[BuildRecord]) -> None:
    old, good, *_ = builds
    night = store.night(judged(store, 1, build=good, baseline_builds=[old]))
    assert query_evidence(store, night, "q5").source_changes == ()
