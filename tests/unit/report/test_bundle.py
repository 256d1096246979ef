"""The evidence of a sign-off is complete and harmless in a browser; any change is reported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from store_builder import night, record, repetition, series

from nexmark.cli.app import main
from nexmark.evidence.signoffs import verify
from nexmark.model import Value
from nexmark.report.evidence_files import Bundle, night_html, question_text, write_bundle
from nexmark.store import BuildRecord, Store
from nexmark.store.table_rows import SelfTestRow
from nexmark.verdict.verdict import Verdict
from tests.unit.report.rendered import collect, evidence

EVIL = "<script>alert('x')</script>"
DECISION = {"choice": "approved", "who": "ada", "when": "2026-11-21T09:00:00+00:00", "reason": EVIL}
PAIRED = {
    "mode": "paired",
    "baselines": {"q0": "sha-429", "q5": "sha-429"},
    "gate_spec": {"version": 3, "pairs": 5},
}


@pytest.fixture
def run(store: Store) -> str:
    """A red night of two builds, accepted before, with a self-test."""
    old = BuildRecord("sha-429", "4.2.9", "tarball:https://me:pw@example.org/4.2.9.tgz#sha512=00")
    record(store, night(1, build=old))
    name = record(store, night(2, **PAIRED))
    confs = {"spark.sql.shuffle.partitions": "2", "spark.x.secret": "hush"}
    row = repetition(name, "q5", result={"confs": confs}, series=[series()])
    store.record_repetition(row)
    values: dict[str, Any] = {"night": name, "metric": "cpu_s_per_mevent", "mode": "paired"}
    values |= {"gate_version": 3, "baseline_build": "sha-429"}
    q5 = Verdict(query="q5", value=Value.REGRESSION, reason=EVIL, ratio=1.12, **values)
    q0 = Verdict(query="q0", value=Value.OK, reason="as ever", ratio=1.0, mde=0.02, **values)
    store.record_verdicts(name, [q0, q5])
    store.record_grade(name, "steady", "within 2 %")
    own = {"gate_version": 3, "query": "q0"}
    store.record_self_test(name, SelfTestRow(**own, kind="aa", size=1.0, value="OK"))
    own["query"] = "q5"
    store.record_self_test(name, SelfTestRow(**own, kind="slowdown", size=1.2, value="REGRESSION"))
    store.accept(name, "ada", "meant so", ["q5"], link="https://issues/1")
    return name


@pytest.fixture
def bundle(store: Store, run: str, tmp_path: Path) -> Iterator[Bundle]:
    return write_bundle(
        tmp_path / "run" / "signoff", tmp_path / "kept" / "x", evidence(store, run, DECISION), store
    )


def test_the_evidence_names_everything_it_rests_on(store: Store, run: str) -> None:
    found = collect(store, run, DECISION)
    assert found["red"] is True
    assert [(x["role"], x["id"], x["version"]) for x in found["builds"]] == [
        ("candidate", "sha-430", "4.3.0"),
        ("baseline", "sha-429", "4.2.9"),
    ]
    assert found["gate"] == {"version": 3, "settings": {"version": 3, "pairs": 5}}
    assert found["hosts"] == ["nexmark02"]
    assert found["confs"]["candidate"]["spark.sql.shuffle.partitions"] == "2"
    assert [(x["query"], x["value"], x["ratio"]) for x in found["verdicts"]] == [
        ("q0", "OK", 1.0),
        ("q5", "REGRESSION", 1.12),
    ]
    assert found["self_test"]["words"].startswith("self-test: 0 of 1 A/A pair sets alarmed")
    assert found["self_test"]["recall"]["hits"] == 1
    (ack,) = found["acceptances"]
    assert (ack["who"], ack["reason"], ack["link"]) == ("ada", "meant so", "https://issues/1")
    assert found["grade"] == {"grade": "steady", "reason": "within 2 %"}
    assert found["decision"] == {**DECISION, "signed_off": None, "objection": ""}
    assert found["alarms"] == [f"since build 4.3.0 pypi sha-430 (night {run}): q5 1.120"]


def test_no_secret_gets_into_the_evidence(store: Store, run: str) -> None:
    text = json.dumps(collect(store, run))
    assert "hush" not in text
    assert ":pw@" not in text


def test_the_page_asks_nobody_and_runs_nothing(store: Store, run: str) -> None:
    page = night_html(evidence(store, run, DECISION))
    tags: list[tuple[str, dict[str, str | None]]] = []

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append((tag, dict(attrs)))

    Parser().feed(page)
    assert {tag for tag, _ in tags}.isdisjoint({"script", "link", "img", "iframe", "a"})
    assert not {name for _, attrs in tags for name in attrs} & {"src", "href", "style", "onload"}
    assert not re.search(r"@import|url\(", page)
    assert "&lt;script&gt;" in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page


def test_the_question_has_table_reasons_and_places(store: Store, run: str) -> None:
    text = question_text(evidence(store, run), Path("/r/draft.html"), Path("/r/kept"))
    assert text.startswith("**The gate says RED.**")
    for part in ("| q5 ", "NIGHT FAILED", "Since: build 4.3.0", "/r/draft.html", "/r/kept"):
        assert part in text
    assert text.count("```") % 2 == 0


def test_a_reason_cannot_break_out_of_its_block(store: Store, run: str) -> None:
    store.record_verdicts(
        run, [Verdict(run, "q0", "m", Value.INVALID, "```\n# all is well", "paired", 3)]
    )
    text = question_text(evidence(store, run), Path("a"), Path("b"))
    blocks = text.split("```")
    assert "# all is well" in "".join(blocks[1::2])
    assert "# all is well" not in "".join(blocks[::2])


class TestBundle:
    def test_it_is_whole_read_only_and_kept_twice(self, bundle: Bundle) -> None:
        for directory in (bundle.directory, bundle.copy):
            assert verify(directory) == []
            files = [path for path in directory.rglob("*") if path.is_file()]
            assert {path.stat().st_mode & 0o777 for path in files} == {0o444}
        command = ["sha256sum", "-c", "--quiet", "SHA256SUMS"]
        assert subprocess.run(command, cwd=bundle.directory).returncode == 0

    def test_every_change_is_named(
        self, bundle: Bundle, capsys: pytest.CaptureFixture[str]
    ) -> None:
        page = bundle.directory / "evidence.html"
        page.chmod(0o644)
        page.write_text("all is well")
        (bundle.directory / "report" / "table.txt").unlink()
        (bundle.directory / "more.txt").write_text("x")
        assert main(["verify", str(bundle.directory)]) == 1
        assert capsys.readouterr().err.splitlines() == [
            f"{bundle.directory}: evidence.html: was changed",
            f"{bundle.directory}: report/table.txt: is missing",
            f"{bundle.directory}: more.txt: was added",
        ]

    def test_a_bundle_that_was_made_anew_breaks_the_seal(
        self, bundle: Bundle, store: Store, run: str, tmp_path: Path
    ) -> None:
        shutil.rmtree(bundle.directory)
        other = evidence(store, run, DECISION | {"who": "eve"})
        write_bundle(bundle.directory, tmp_path / "kept" / "y", other, store)
        assert main(["verify", str(bundle.directory)]) == 0
        assert main(["verify", str(bundle.directory), "--seal", bundle.seal]) == 1
        assert main(["verify", str(bundle.copy), "--seal", bundle.seal]) == 0

    def test_the_same_decision_again_changes_nothing_another_has_its_own(
        self, bundle: Bundle, store: Store, run: str
    ) -> None:
        again = write_bundle(bundle.directory, bundle.copy, evidence(store, run, DECISION), store)
        assert again == bundle
        rejected = evidence(store, run, DECISION | {"choice": "rejected"})
        second = write_bundle(bundle.directory, bundle.copy, rejected, store)
        assert (second.directory.name, second.copy.name) == ("signoff-2", "x-2")
        assert verify(bundle.directory) == []

    def test_what_is_no_bundle_is_reported_in_one_line(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["verify", str(tmp_path)]) == 2
        error = capsys.readouterr().err
        assert "is not an evidence bundle" in error
        assert error.count("\n") == 1

    def test_checksums_that_lead_out_of_the_bundle_are_refused(
        self, bundle: Bundle, capsys: pytest.CaptureFixture[str]
    ) -> None:
        sums = bundle.directory / "SHA256SUMS"
        sums.chmod(0o644)
        sums.write_text(f"{'0' * 64}  ../../etc/passwd\n")
        assert main(["verify", str(bundle.directory)]) == 2
        assert "SHA256SUMS:1: is not a line of checksums" in capsys.readouterr().err
