"""The evidence of a night and of its alarms: complete, harmless, and it never fails the night."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from nexmark.evidence.alarms import alarm_groups
from nexmark.evidence.night_rows import night_rows
from nexmark.evidence.query_evidence import query_evidence
from nexmark.measure.cpu_series import CpuSeries
from nexmark.model import PROFILED, Value
from nexmark.report.evidence_files import DRAWN, Written, write_night
from nexmark.store import BuildRecord, RepetitionRecord, Store
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import cpu, judge, paired, record_night, validate
from tests.unit.store.store_builder import night, series

ROOT = Path(__file__).parents[3]
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\" ' & ${x} ]]>"
OLD, NEW = (
    BuildRecord("sha-429", "4.2.9", "pypi:4.2.1"),
    BuildRecord("sha-430", "4.3.0", "pypi:4.3.0"),
)
NIGHTS = 6


def write_evidence(directory: Path, store: Store, run: str) -> Written:
    """Write all files of a night; return what was written of its evidence."""
    _, written = write_night(directory, store, run)
    return written


@pytest.fixture
def run(store: Store, tmp_path: Path) -> str:
    """The last of some nights: q5 is 20 % slower; the plan and a conf have changed."""
    store.record_night(night(0, build=OLD))
    for number in range(1, NIGHTS + 1):
        last = number == NIGHTS
        made = paired(
            number,
            build=NEW,
            directory=tmp_path / "night",
            gate_spec={"version": 3},
            engine="spark-4.3.0",
            workload="small",
        )
        name = record_night(store, made, {"q5": 1.2} if last else None)
        judge(store, name)
    for arm, partitions in (("candidate", "60"), ("baseline", "2")):
        result = {
            "confs": {
                "spark.sql.shuffle.partitions": partitions,
                "spark.master": f"spark://127.0.0.1:{partitions}",
                "spark.x.secret": "hush",
            },
            "plan": {
                "text": f"Project [{EVIL}]\n  Exchange hashpartitioning({partitions})",
                "skeleton": "Project Exchange",
                "skeleton_hash": "h",
            },
            "batches": [
                {"id": x, "phase": "data", "duration_ms": 10 * x, "state_bytes": x}
                for x in range(3)
            ],
        }
        store.record_repetition(
            RepetitionRecord(
                name,
                "q5",
                1,
                arm=arm,
                result=result,
                measurement=cpu(12.0 if arm == "candidate" else 10.0, start=1000.0, end=1002.0),
                series=[series()],
            )
        )
    judge(store, name)
    return name


class Page(HTMLParser):
    """The tags and attributes of a page, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def assert_harmless(self) -> None:
        names = {tag for tag, _ in self.tags}
        attributes = {name for _, given in self.tags for name in given}
        assert names.isdisjoint(
            {"script", "link", "img", "image", "iframe", "a", "object", "foreignobject", "use"}
        )
        assert not {name for name in attributes if name.startswith("on")}
        assert attributes.isdisjoint({"src", "href", "xlink:href", "style", "srcset"})
        assert not re.search(r"@import|url\((?!#)", self.source)
        assert "default-src 'none'" in self.source


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_a_night_has_a_page_and_every_alarm_its_own(store: Store, run: str, tmp_path: Path) -> None:
    written = write_evidence(tmp_path / "report", store, run)
    assert written.problems == ()
    assert list(written.alarms) == ["q5"]
    whole = Page(tmp_path / "report" / "evidence.html")
    whole.assert_harmless()
    assert "The night is red." in whole.text
    assert "nexmark build" in whole.text
    found = read(tmp_path / "report" / "evidence.json")
    assert found["decision"] is None
    assert list(found["reproduce"]) == ["q5"]
    alarm = Page(tmp_path / "report" / "alarms" / "q5" / "evidence.html")
    alarm.assert_harmless()
    assert "q5 on spark-4.3.0: REGRESSION 1." in alarm.text
    for chart in ("Pairs", "Both arms", "History", "CPU on nexmark02", "Batch durations"):
        assert any(chart in (given.get("aria-label") or "") for _, given in alarm.tags), chart


def test_the_evidence_of_an_alarm_has_everything_it_rests_on(
    store: Store, run: str, tmp_path: Path
) -> None:
    write_evidence(tmp_path, store, run)
    found = read(tmp_path / "alarms" / "q5" / "evidence.json")
    assert [(x["stage"], x["number"]) for x in found["pairs"]] == [
        *((1, number) for number in (1, 2, 3)),
        *((2, number) for number in range(1, 7)),
    ]
    first = found["pairs"][0]
    assert (first["candidate_figure"], first["baseline_figure"]) == (12.0, 10.0)
    assert first["candidate"]["wall_s"] == 4.0
    assert found["conf_differences"][0] == {
        "key": "spark.sql.shuffle.partitions",
        "candidate": "60",
        "baseline": "2",
        "set_by_harness": False,
    }
    assert [x["set_by_harness"] for x in found["conf_differences"]] == [False, True]
    assert found["plans"]["changed"] is True
    assert "-  Exchange hashpartitioning(2)" in found["plans"]["diff"]
    assert "+  Exchange hashpartitioning(60)" in found["plans"]["diff"]
    assert len(found["history"]) == NIGHTS
    assert [x["role"] for x in found["builds"]] == ["candidate", "baseline"]
    assert "with the same build 4.3.0 pypi sha-430 and workload as the night" in found["since"]
    assert {(x["host"], x["arm"]) for x in found["cpu"]} == {
        ("nexmark02", "candidate"),
        ("nexmark02", "baseline"),
    }
    assert found["batches"][2]["duration_ms"] == 20


def test_a_repetition_that_is_not_judged_is_in_no_pair(
    store: Store, run: str, tmp_path: Path
) -> None:
    store.record_repetition(RepetitionRecord(run, "q5", 1, stage=PROFILED, measurement=cpu(99.0)))
    assert write_evidence(tmp_path, store, run).problems == ()
    found = read(tmp_path / "alarms" / "q5" / "evidence.json")
    assert {x["stage"] for x in found["pairs"]} == {1, 2}


def test_cpu_over_time_is_of_the_repetition_alone(store: Store, run: str, tmp_path: Path) -> None:
    """The sampler runs for all repetitions of a query; one of them began late and ended early."""
    times = tuple(float(x) for x in range(1000, 1400))
    idle = (0.0,) * len(times)
    busy = CpuSeries("h", 1.0, times, times, idle, None, None, None, 1, 0.0)
    for arm in ("candidate", "baseline"):
        row = RepetitionRecord(
            run,
            "q5",
            1,
            arm=arm,
            measurement=cpu(10.0, start=1200.0, end=1230.0),
            series=[(busy, Path("x"))],
        )
        store.record_repetition(row)
    write_evidence(tmp_path, store, run)
    for one in read(tmp_path / "alarms" / "q5" / "evidence.json")["cpu"]:
        assert (one["seconds"][0], one["seconds"][-1]) == (-9.5, 34.5)
        assert set(one["cores"]) == {1.0}


def test_what_the_hosts_are_is_told_where_the_night_has_noted_it(
    store: Store, run: str, tmp_path: Path
) -> None:
    directory = Path(store.night(run).directory)
    directory.mkdir()
    noted = {"nexmark02": {"kernel": "6.1", "cpu_model": "Xeon & co", "java": "17.0.9"}}
    (directory / "hosts.json").write_text(json.dumps(noted))
    write_evidence(tmp_path, store, run)
    assert read(tmp_path / "alarms" / "q5" / "evidence.json")["host_facts"] == noted
    text = Page(tmp_path / "evidence.html").text
    assert "Xeon & co" in text
    assert "17.0.9" in text


def test_no_secret_gets_into_it_wherever_it_was_written(
    store: Store, run: str, tmp_path: Path
) -> None:
    source = "tarball:https://me:pa55@example.org/s.tgz#sha512=" + "0" * 128
    other = paired(9, run_id="other", build=BuildRecord("sha-x", "4.3.0", source))
    store.record_night(other)
    reason = "fetching https://me:pa55@example.org failed, spark.x.password=pa55"
    store.record_verdicts(
        other.run, [Verdict(other.run, "q5", "m", Value.INVALID, reason, "paired", 3)]
    )
    for name in (run, other.run):
        write_evidence(tmp_path / name, store, name)
    text = "".join(x.read_text() for x in tmp_path.rglob("evidence.*"))
    assert "pa55" not in text
    assert "hush" not in text
    assert "https://me:***@example.org" in text


def test_nothing_that_somebody_wrote_becomes_html(store: Store, tmp_path: Path) -> None:
    made = paired(3, build=BuildRecord(EVIL, EVIL, f"directory:/{EVIL}"), baselines={"q5": EVIL})
    store.record_night(made)
    store.record_grade(made.run, EVIL, EVIL)
    for arm in ("candidate", "baseline"):
        store.record_repetition(
            RepetitionRecord(
                made.run,
                "q5",
                1,
                arm=arm,
                invalid=EVIL,
                result={"confs": {f"spark.{EVIL}": f"{arm} {EVIL}"}},
                measurement=cpu(10.0, start=1000.0, hosts=(EVIL,)),
                series=[series(EVIL)],
            )
        )
        store.record_repetition(
            RepetitionRecord(
                made.run,
                "q5",
                2,
                arm=arm,
                measurement=cpu(9.0, start=1000.0),
                series=[series(EVIL)],
            )
        )
    verdict = Verdict(made.run, "q5", EVIL, Value.INVALID, EVIL, "paired", 3, baseline_build=EVIL)
    store.record_verdicts(made.run, [verdict])
    written = write_evidence(tmp_path, store, made.run)
    assert written.problems == ()
    assert list(written.alarms) == ["q5"]
    for path in tmp_path.rglob("evidence.html"):
        page = Page(path)
        page.assert_harmless()
        assert "alert(1)" in page.text  # the page shows it as text


def test_what_cannot_be_written_is_reported_in_a_line_each(
    store: Store, run: str, tmp_path: Path
) -> None:
    (tmp_path / "report" / "evidence.html").mkdir(parents=True)
    (tmp_path / "report" / "alarms").write_text("a file where the directory should be")
    written = write_evidence(tmp_path / "report", store, run)
    assert written.page is None
    assert len(written.problems) == 2
    assert written.problems[0].startswith("evidence of the night: not written: ")
    assert written.problems[1].startswith("evidence of q5: not written: ")
    assert not any("\n" in line for line in written.problems)


def test_a_chart_that_cannot_be_drawn_leaves_the_rest(
    store: Store, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    written = write_evidence(tmp_path, store, run)
    assert written.problems == ()
    text = Page(written.alarms["q5"]).text
    assert "cannot be drawn (ModuleNotFoundError" in text
    assert "hashpartitioning(60)" in text


def test_an_alarm_that_was_accepted_meanwhile_is_gone(
    store: Store, run: str, tmp_path: Path
) -> None:
    write_evidence(tmp_path, store, run)
    number = store.accept(run, "ada", "meant so", ["q5"])
    assert number.queries == ("q5",)
    (acceptance,) = store.acceptances()
    verdicts = store.verdicts(run)
    store.record_verdicts(
        run,
        [replace(x, acceptance=acceptance.id if x.query == "q5" else None) for x in verdicts],
    )
    assert write_evidence(tmp_path, store, run).alarms == {}
    assert not (tmp_path / "alarms" / "q5").exists()


def test_only_the_worst_alarms_have_charts(store: Store, tmp_path: Path) -> None:
    queries = [f"q{number}" for number in range(DRAWN + 2)]
    made = paired(1, queries=queries, repetitions=1, baselines={})
    store.record_night(made)
    validate(store, made.run, queries)
    verdicts = []
    for number, query in enumerate(queries):
        for arm, figure in (("candidate", 20.0 + number), ("baseline", 10.0)):
            record = RepetitionRecord(made.run, query, 1, arm=arm, measurement=cpu(figure))
            store.record_repetition(record)
        value = {"ratio": 2.0 + number / 10, "gate_version": 3, "mode": "paired"}
        verdicts.append(
            Verdict(made.run, query, "m", value=Value.REGRESSION, reason="slow", **value)
        )
    store.record_verdicts(made.run, verdicts)
    written = write_evidence(tmp_path, store, made.run)
    drawn = {x for x, page in written.alarms.items() if 'class="drawn"' in page.read_text()}
    assert drawn == set(queries[2:])


def test_a_query_without_anything_is_no_reason_to_stop(store: Store, tmp_path: Path) -> None:
    made = paired(1, build=NEW, baselines={}, directory=tmp_path)
    store.record_night(made)
    night = store.night(made.run)
    found = query_evidence(store, night, "q10", night_rows(store, night, []))
    assert found.pairs == ()
    assert found.plans.changed is None
    assert alarm_groups(store, night, store.verdicts(night.id)) == []
