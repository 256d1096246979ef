"""`nexmark ui --example`: what its nights tell, that they are marked, and that they are apart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.config import SIGNOFF_DAG_ID, paths
from nexmark.config.load import load_gate
from nexmark.evidence.alarms import acks_of
from nexmark.evidence.creep import lineage_of
from nexmark.evidence.gate_health import gate_health
from nexmark.evidence.night_evidence import night_evidence
from nexmark.evidence.night_list import NOISE, NOT_JUDGED, OPEN, RED, lines_of, overview
from nexmark.evidence.query_evidence import query_evidence
from nexmark.evidence.signoffs import signoff_page, verify
from nexmark.example import example_home
from nexmark.example.example_home import enter_example_home
from nexmark.example.nights import RUN_ID
from nexmark.example.story import ENGINES, NIGHTS
from nexmark.model import CPU_METRICS, SUITE, Value
from nexmark.store import Store, history, open_store
from nexmark.store.accepting import EXPIRED, WITHDRAWN
from nexmark.store.table_rows import NightRow
from nexmark.verdict.nightly import judge_night
from nexmark.verdict.verdict import Verdict
from tests import example_nights

NEW, OLD = ENGINES
SMALL_MB = 20


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of the example nights, below the home of a person with databases elsewhere."""
    with example_nights.example_home(tmp_path_factory) as entered:
        yield entered


@pytest.fixture(scope="module")
def store(home: Path) -> Iterator[Store]:
    with open_store(paths.database_url(), create=False) as opened:
        yield opened


def night_of(store: Store, number: int, engine: object = NEW) -> NightRow:
    started = engine.started(number)  # type: ignore[attr-defined]
    (night,) = (one for one in store.nights() if one.run_id == RUN_ID.format(started))
    return night


def verdict_on(store: Store, night: NightRow, query: str) -> Verdict:
    (one,) = (each for each in store.verdicts(night.id) if each.query == query and each.decides)
    return one


def test_there_are_sixty_nights_of_two_engines_and_a_sign_off(store: Store) -> None:
    nights = store.nights()
    assert len([one for one in nights if one.teaches]) == NIGHTS * len(ENGINES) == 60
    assert {one.engine for one in nights} == {NEW.name, OLD.name}
    assert [one.dag_id for one in nights if not one.teaches] == [SIGNOFF_DAG_ID]
    assert all(one.run_id.startswith("example__") for one in nights)


def test_the_newest_night_is_red_and_says_which_operator_it_comes_from(store: Store) -> None:
    night = night_of(store, NIGHTS - 1)
    evidence = night_evidence(store, night)
    assert evidence.colour == RED
    assert [line.row.query for line in evidence.lines if line.row.red] == ["q5"]
    query = query_evidence(store, night, "q5")
    assert query.verdict is not None
    assert query.verdict.value == Value.REGRESSION
    assert query.attribution is not None
    assert query.attribution.parts[0].name == "StateStoreSave"
    assert query.plans.changed
    assert any("+" in line[:1] and "Sort" in line for line in query.plans.diff)
    assert "4.3.1" in query.since


def test_a_suspect_of_one_night_was_noise(store: Store) -> None:
    suspect = verdict_on(store, night_of(store, 6), "q8")
    assert suspect.value == Value.SUSPECT
    issues = overview(store, history.dag_ids(store)).issues
    (issue,) = (one for one in issues if one.query == "q8")
    assert issue.outcome == NOISE


def test_an_acceptance_covers_its_night_and_runs_out(store: Store) -> None:
    assert verdict_on(store, night_of(store, 10), "q17").value == Value.REGRESSION
    accepted = verdict_on(store, night_of(store, 11), "q17")
    assert accepted.value == Value.REGRESSION
    assert accepted.acceptance is not None
    assert [verdict_on(store, night_of(store, n), "q17").red for n in (13, 15)] == [False] * 2
    assert [verdict_on(store, night_of(store, n), "q17").red for n in (16, 19)] == [True] * 2
    assert not verdict_on(store, night_of(store, 20), "q17").red
    states = {ack.row.who: ack.state for ack in acks_of(store, history.dag_ids(store))}
    assert states["ada"] == EXPIRED
    assert states["linus"] == WITHDRAWN


def test_a_host_that_broke_makes_its_query_invalid(store: Store) -> None:
    night = night_of(store, 24)
    assert night.grade == "broken"
    verdict = verdict_on(store, night, "q7")
    assert verdict.value == Value.INVALID
    assert "nexmark02" in verdict.reason


def test_small_losses_that_were_accepted_add_up_to_a_creep(store: Store) -> None:
    creep = verdict_on(store, night_of(store, NIGHTS - 1, OLD), "q7")
    assert creep.value == Value.WATCH
    assert "accepted" in creep.reason
    assert "since 2026-" in creep.reason, "a day, not the name of a run"
    assert "spark-3.5.10-2026" in creep.reason, "the build by its origin"
    assert creep.ratio is not None
    assert creep.ratio < 1.03


def test_a_gain_a_wrong_result_and_a_night_without_a_verdict_are_told(store: Store) -> None:
    assert verdict_on(store, night_of(store, 18, OLD), "q20").value == Value.FASTER
    wrong = verdict_on(store, night_of(store, 15, OLD), "q3")
    assert wrong.value == Value.INVALID
    assert "differ from the reference" in wrong.reason
    (line,) = lines_of(store, [night_of(store, 19, OLD)])
    assert line.colour == NOT_JUDGED


def test_what_nothing_happened_to_is_not_red(store: Store) -> None:
    """All reds are of the story: the noise alone raises no alarm."""
    issues = overview(store, history.dag_ids(store)).issues
    expected = {(NEW.name, query) for query in ("q5", "q7", "q8", "q17")} | {(OLD.name, "q3")}
    assert {(one.last.engine, one.query) for one in issues if one.query != SUITE} == expected
    (opened,) = (one for one in issues if one.outcome == OPEN)
    assert opened.query == "q5"


def test_the_sign_off_is_sealed_and_signed(store: Store) -> None:
    (night,) = (one for one in store.nights() if one.dag_id == SIGNOFF_DAG_ID)
    signoff, bundles = signoff_page(store, night)
    (decision,) = signoff.decisions
    assert (decision.who, decision.signed_off) == ("grace", True)
    assert bundles[0].problems == ()
    (copy,) = (paths.home() / "signoffs").iterdir()
    assert verify(copy) == []


def test_the_gate_was_tested_every_night_and_was_right(store: Store) -> None:
    health = gate_health(store, history.dag_ids(store))
    assert all(rates.false_alarms.hits == 0 for _, rates in health.engines)
    assert all((rates.recall.rate or 0) > 0.9 for _, rates in health.engines)


@pytest.mark.parametrize("number", [6, 11, 16, 24, 29])
def test_the_verdicts_are_what_the_gate_says_of_the_rows(store: Store, number: int) -> None:
    for engine in ENGINES:
        night = night_of(store, number, engine)
        rules = load_gate()
        again = judge_night(
            store.paired_night(night.id),
            store.earlier(night.id, rules.remembered),
            rules,
            lineage_of(store, store.night(night.id), rules.metric),
        )
        values = {one.key: one.value for one in store.verdicts(night.id)}
        judged = {one.key: one.value for one in again}
        assert {key: judged[key] for key in values if key.metric in CPU_METRICS} == {
            key: value for key, value in values.items() if key.metric in CPU_METRICS
        }


def test_every_page_and_every_file_of_evidence_is_marked(home: Path) -> None:
    site = home.parent / example_nights.SITE
    pages = [*site.rglob("*.html"), *home.rglob("evidence.html")]
    assert len(pages) > 80
    unmarked = [path for path in pages if "These nights were simulated" not in path.read_text()]
    assert unmarked == []


def test_the_home_is_small_and_apart(store: Store, home: Path) -> None:
    files = [path for path in home.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < SMALL_MB * 1e6
    assert home == home.parent / "example"
    assert {path.name for path in home.parent.iterdir()} == {"example", example_nights.SITE}
    assert os.environ.get("NEXMARK_DB") is None
    assert os.environ.get("NEXMARK_AIRFLOW_DB") is None


def test_it_is_made_once_and_again_for_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    made: list[Store] = []
    monkeypatch.setattr(example_home, "make_nights", lambda store, *_: made.append(store))
    home = enter_example_home(print)
    assert enter_example_home(pytest.fail) == home == tmp_path / "example"
    assert len(made) == 1
    (home / "runs" / "old").mkdir(parents=True)
    monkeypatch.setattr(example_home, "_version", lambda: "another one")
    assert enter_example_home(print) == home
    assert len(made) == 2
    assert not (home / "runs").exists()


def test_a_home_that_was_not_finished_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.setattr(example_home, "make_nights", interrupted)
    with pytest.raises(KeyboardInterrupt):
        enter_example_home(print)
    assert not (tmp_path / "example" / "results.db").exists()
    (tmp_path / "example" / ".results.db-wal").write_text("the log of the database before")
    monkeypatch.setattr(example_home, "make_nights", lambda *_: None)
    assert enter_example_home(print) == tmp_path / "example"
    assert (tmp_path / "example" / "results.db").exists()
    assert not (tmp_path / "example" / ".results.db-wal").exists()
