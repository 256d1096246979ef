"""Small changes that are accepted one after the other: seen, with how much they come to."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nexmark.cli.app import main
from nexmark.config import SIGNOFF_DAG_ID
from nexmark.evidence import creep
from nexmark.evidence.creep import creeps_of, lineage_of
from nexmark.evidence.night_evidence import make_report
from nexmark.evidence.query_evidence import query_evidence
from nexmark.model import CPU, FIRST_ROUND, Value
from nexmark.report.evidence_json import query_json
from nexmark.report.rendering import standalone
from nexmark.store import BuildRecord, NightRecord, Store, open_store
from nexmark.verdict.__main__ import main as replay
from nexmark.verdict.measured_night import Measured, MeasuredNight
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.verdict import Verdict
from tests.unit.store.night_builder import RULES, paired, record_pair, validate
from tests.unit.store.store_builder import STARTED
from tests.unit.verdict.gate_builder import noisy

CV = 0.01
QUERIES = ("q0", "q5")


@cache
def build(number: int) -> BuildRecord:
    return BuildRecord(f"b{number}", "4.3.0", f"tarball:{number}")


class Season:
    """Nights of one place: each measures a new build against the accepted one."""

    def __init__(self, store: Store, queries: tuple[str, ...] = ("q5",), **fields: Any) -> None:
        self.store, self.queries, self.fields = store, queries, fields
        self.number, self.baseline = 0, 0
        self.rng = np.random.default_rng(11)

    def night(self, ratio: float = 1.0, accept: bool = True, **changes: Any) -> list[Verdict]:
        """Judge the next night; its build is ``ratio`` of the baseline, and is accepted."""
        self.number += 1
        record = self.record(**changes)
        self.store.record_night(record)
        measured = tuple(
            Measured(query, CPU, noisy(ratio, 5, self.rng, CV), (noisy(ratio, 10, self.rng, CV),))
            for query in self.queries
        )
        night = MeasuredNight(
            record.run,
            measured,
            baseline=dict(record.baselines or {}),
            candidate=record.build.id,
            teaches=record.teaches,
        )
        row = self.store.night(record.run)
        lineage = lineage_of(self.store, row, CPU)
        verdicts = judge_night(night, self.store.earlier(record.run, 75), RULES, lineage)
        self.store.record_verdicts(record.run, verdicts)
        if accept:
            self.baseline = self.number
        return verdicts

    def record(self, **changes: Any) -> NightRecord:
        """The record of the night that comes next."""
        values: dict[str, Any] = {
            "run_id": f"n{self.number}",
            "started": STARTED + timedelta(days=self.number),
            "build": build(self.number),
            "queries": self.queries,
            "baselines": dict.fromkeys(self.queries, f"b{self.baseline}"),
            "baseline_builds": [build(self.baseline)],
        }
        return paired(self.number, **{**values, **self.fields, **changes})

    def creeps(self, query: str = "q5", number: int | None = None, **how: Any) -> list[creep.Creep]:
        """What the accepted builds come to, up to a night (the last)."""
        run = self.record(run_id=f"n{number or self.number}").run
        return creeps_of(self.store, self.store.night(run), query, CPU, **how)


def of_q5(verdicts: list[Verdict]) -> Verdict:
    (found,) = (x for x in verdicts if x.query == "q5")
    return found


def sign_off(season: Season, directory: Path, signed_off: bool, when: datetime) -> None:
    """A sign-off of the build of the last night, measured against the first one, decided on."""
    number = season.number
    season.night(
        1.0,
        accept=False,
        dag_id=SIGNOFF_DAG_ID,
        build=build(number),
        baselines={"q5": "b0"},
        baseline_builds=[build(0)],
        teaches=False,
        directory=directory,
    )
    (directory / "signoff").mkdir(parents=True)
    decision = {"choice": "approved", "when": when.isoformat(), "signed_off": signed_off}
    text = json.dumps({"decision": decision})
    (directory / "signoff" / "evidence.json").write_text(text, encoding="utf-8")


def test_links_are_read_again_where_a_night_is_judged_again(store: Store, database: str) -> None:
    """Those of the other past nights are kept."""
    season = Season(store, QUERIES)
    first, *_ = (season.night(1.01) for _ in range(3))
    run = season.record(run_id="n3").run
    before = store.links(run, CPU)
    assert [link.night for link in before["q5"]] == [
        season.record(run_id=f"n{number}").run for number in (1, 2, 3)
    ]
    assert store.links(run, CPU) == before
    again = [replace(one, shift=0.5, noise=1.0) for one in first if one.query == "q5"]
    store.record_verdicts(season.record(run_id="n1").run, again)
    after = store.links(run, CPU)
    assert [link.shift for link in after["q5"]] == [
        0.5,
        *(link.shift for link in before["q5"][1:]),
    ]
    with open_store(database) as fresh:
        assert fresh.links(run, CPU) == after


@pytest.mark.parametrize(("slower", "nights"), [(0.015, 24), (0.01, 40)])
def test_a_creep_that_is_accepted_every_night_is_watched(
    store: Store, slower: float, nights: int
) -> None:
    season = Season(store)
    said = [of_q5(season.night(1 + slower)) for _ in range(nights)]
    assert [x.reason for x in said if x.red] == []
    last = said[-1]
    assert last.value is Value.WATCH
    assert f"accepted builds add up: since 2026-11-22 (4.3.0 0 b0): {_size(season)}" in last.reason
    assert f"{nights - 1} accepted builds" in last.reason
    (found,) = season.creeps()
    assert found.lo < (1 + slower) ** nights < found.hi
    assert found.hi / found.lo < 1.2


def _size(season: Season) -> str:
    (found,) = season.creeps()
    return f"{100 * (found.ratio - 1):.0f} % slower ({100 * (found.lo - 1):.0f} % to "


def test_the_command_says_what_the_accepted_builds_come_to(
    store: Store, database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEXMARK_DB", database)
    season = Season(store)
    for _ in range(24):
        season.night(1.015)
    assert main(["history", "--query", "q5", "--since", "2026-12-01"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-2] == "accepted builds, multiplied:"
    assert out[-1].startswith("  since 2026-12-01 (4.3.0 9 b9): ")
    assert out[-1].endswith("14 accepted builds")
    assert main(["history", "--query", "q5"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("  since 2026-11-22 (4.3.0 0 b0): ")
    assert line.endswith("23 accepted builds")


def test_the_page_and_the_table_say_it_too(store: Store) -> None:
    season = Season(store)
    for _ in range(14):
        season.night(1.015)
    night = store.night(season.record().run)
    (line,) = [x for x in make_report(store, night.id).lines if x.startswith("Watch: ")]
    assert "q5: accepted builds add up: since 2026-11-22 (4.3.0 0 b0): " in line
    found = query_evidence(store, night, "q5")
    page = standalone("query.html", page=found, charts=[], over_time=[])
    assert f"Since{found.creeps[0].words[5:]}" in page
    assert query_json(found)["creeps"][0]["accepted"] == 13


def test_a_withdrawn_acceptance_leaves_the_chain_to_the_build_before(store: Store) -> None:
    season = Season(store)
    season.night(1.02)
    season.night(1.3)  # accepted, and taken back: b1 is the baseline again
    season.baseline = 1
    for _ in range(4):
        season.night(1.02)
    (found,) = season.creeps()
    assert found.lo < 1.02**5 < found.hi
    assert found.accepted == 4  # b1 and what came after b2


def test_a_baseline_that_was_moved_back_does_not_count_twice(store: Store) -> None:
    season = Season(store)
    for _ in range(5):
        season.night(1.02)
    season.baseline = 2
    season.night(1.02, accept=False)
    (found,) = season.creeps()
    assert found.accepted == 2
    assert found.lo < 1.02**3 < found.hi


def test_a_build_that_was_never_measured_against_the_one_before_begins_another_chain(
    store: Store,
) -> None:
    season = Season(store)
    for _ in range(3):
        season.night(1.1)
    season.baseline = 99
    for _ in range(3):
        season.night(1.02)
    (found,) = season.creeps()
    assert (found.since, found.accepted) == ("b99", 2)
    assert found.lo < 1.02**3 < found.hi


@pytest.mark.parametrize(
    "fields",
    [
        {"engine": "spark-3.5.9"},
        {"workload": "large"},
        {"workload_spec": {"events": 1}},
        {"cluster": "moon"},
        {"candidate_conf": {"spark.x": "1"}, "teaches": False},
    ],
)
def test_a_night_of_another_place_or_setting_is_no_link(
    store: Store, fields: Mapping[str, Any]
) -> None:
    season = Season(store)
    season.night(1.02)
    season.night(1.5, dag_id="other", **fields)
    season.night(1.02, accept=False)
    assert season.creeps() == []  # b2 is linked to nothing here


def test_two_nights_of_the_same_builds_are_one_link(store: Store) -> None:
    season = Season(store)
    season.night(1.02, accept=False)
    (alone,) = store.links(season.record().run, CPU)["q5"]
    season.night(1.02, accept=False, build=build(1))
    season.baseline = 1
    season.night(1.02, accept=False)
    (found,) = season.creeps()
    widths = [x.deviation for x in store.links(season.record().run, CPU)["q5"]]
    expected = 1 / (1 / widths[0] ** 2 + 1 / widths[1] ** 2) + widths[2] ** 2
    assert np.log(found.hi / found.lo) / 3.92 == pytest.approx(expected**0.5)
    assert alone.deviation == widths[0]


class TestRelease:
    def test_the_chain_begins_with_the_build_that_was_signed_off(
        self, store: Store, tmp_path: Path
    ) -> None:
        season = Season(store)
        for _ in range(14):
            season.night(1.015)
        assert of_q5(season.night(1.015)).value is Value.WATCH
        sign_off(season, tmp_path / "run", True, STARTED + timedelta(days=15, hours=12))
        said = of_q5(season.night(1.0))
        assert said.value is Value.OK
        for _ in range(8):
            said = of_q5(season.night(1.015))
        assert said.value is Value.WATCH
        assert "since 4.3.0 15 b15 was signed off on 2026-12-06: " in said.reason
        first, release = season.creeps()
        assert (first.since, release.since, release.accepted) == ("b0", "b15", 8)
        assert release.lo < 1.015**8 < release.hi

    def test_what_was_not_signed_off_or_later_is_no_release(
        self, store: Store, tmp_path: Path
    ) -> None:
        season = Season(store)
        season.night(1.02)
        sign_off(season, tmp_path / "no", False, STARTED)
        season.night(1.02)
        season.number += 1
        sign_off(season, tmp_path / "later", True, datetime(2999, 1, 1, tzinfo=UTC))
        season.night(1.02)
        assert [x.signed_off for x in season.creeps()] == [False]

    def test_a_sign_off_without_a_bundle_counts_once_it_is_the_baseline(self, store: Store) -> None:
        season = Season(store)
        season.night(1.02)
        season.night(
            1.02,
            accept=False,
            dag_id=SIGNOFF_DAG_ID,
            build=build(1),
            teaches=False,
            baselines={"q5": "b0"},
            baseline_builds=[build(0)],
        )
        run = season.record(dag_id=SIGNOFF_DAG_ID).run
        record_pair(store, run, "q5", candidate=1.0, baseline=1.0)
        record_pair(store, run, "q5", 2, candidate=1.0, baseline=1.0)
        record_pair(store, run, "q5", 3, candidate=1.0, baseline=1.0)
        validate(store, run, ("q5",))
        store.accept(run, "ada", "signed off")
        later = datetime.now(UTC) + timedelta(days=1)
        season.baseline = 1
        season.night(1.02, started=later)
        season.night(1.02, started=later + timedelta(days=1))
        assert [x.since for x in season.creeps() if x.signed_off] == ["b1"]


def test_a_suite_that_creeps_together_is_watched(store: Store) -> None:
    queries = tuple(f"q{number}" for number in range(10))
    season = Season(store, queries)
    for _ in range(20):
        said = {x.query: x for x in season.night(1.003)}
    assert not any(x.red for x in said.values())
    assert said["suite"].value is Value.WATCH
    assert "accepted builds add up: since 2026-11-22 (4.3.0 0 b0): " in said["suite"].reason
    (found,) = season.creeps("suite")
    assert found.lo < 1.003**20 < found.hi


@pytest.mark.parametrize("known", [True, False])
def test_replay_sees_the_same_creep(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], known: bool
) -> None:
    """Without a column that names the candidate, too: it is accepted before the night after."""
    gate = tmp_path / "gate.yaml"
    gate.write_text(RULES.model_dump_json())
    for number in range(1, 13):
        record = replace(Season(store).record(), run_id=f"n{number:02}", build=build(number))
        record = replace(
            record,
            baselines={"q5": f"b{number - 1}"},
            started=STARTED + timedelta(days=number),
            baseline_builds=[build(number - 1)],
        )
        store.record_night(record)
        validate(store, record.run, ("q5",))
        rng = np.random.default_rng(number)
        for stage, count in ((FIRST_ROUND, 3), (2, 6)):
            for pair in range(1, count + 1):
                figure = 10.2 * float(np.exp(rng.normal(0, CV)))
                record_pair(
                    store, record.run, "q5", pair, stage=stage, candidate=figure, baseline=10.0
                )
        lineage = lineage_of(store, store.night(record.run), CPU)
        verdicts = judge_night(
            store.paired_night(record.run), store.earlier(record.run, 75), RULES, lineage
        )
        store.record_verdicts(record.run, verdicts)
    store.export(tmp_path / "out", "csv")
    nights = tmp_path / "out" / "nights.csv"
    if not known:
        rows = list(csv.DictReader(nights.read_text().splitlines()))
        with nights.open("w", newline="") as stream:
            kept = [name for name in rows[0] if name != "candidate"]
            writer = csv.DictWriter(stream, kept, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    assert replay(["--nights", str(nights), "--gate", str(gate)]) == 0
    rows = [x for x in csv.DictReader(capsys.readouterr().out.splitlines()) if x["metric"] == CPU]
    stored = [
        x.value for n in store.nights()[::-1] for x in store.verdicts(n.id) if x.metric == CPU
    ]
    assert [row["verdict"] for row in rows] == stored
    assert stored[-1] == "WATCH"
