"""Ten questions in ten looks: each answer is at one named place of the night's page, and true.

The nights are of the example: their pages were not written for them. The truth is computed from the
rows of the results database, not from what the pages are made of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest
from fastapi.testclient import TestClient

from nexmark.config import paths
from nexmark.example.nights import RUN_ID
from nexmark.example.story import ENGINES, NIGHTS
from nexmark.model import SUITE, Value, origin_of
from nexmark.store import Store, open_store
from nexmark.store.table_rows import BuildRow, NightRow
from nexmark.verdict.verdict import Verdict
from nexmark.web.web_app import Database, create_app
from tests import example_nights
from tests.unit.example.looks import Looks
from tests.unit.web.conftest import TestAccess
from tests.unit.web.pages import at, shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NEW, OLD = ENGINES


@dataclass(frozen=True)
class Told:
    """A night: its page, and the truth in the results database."""

    page: Looks
    store: Store
    night: NightRow

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdicts on the queries that decide."""
        return self.of_night(self.night)

    def of_night(self, night: NightRow) -> dict[str, Verdict]:
        rows = self.store.verdicts(night.id)
        return {row.query: row for row in rows if row.decides and row.query != SUITE}

    @property
    def red(self) -> Verdict | None:
        """The only red verdict, if there is one."""
        reds = [row for row in self.verdicts.values() if row.bad and row.acceptance is None]
        assert len(reds) <= 1
        return reds[0] if reds else None

    @property
    def judged(self) -> list[NightRow]:
        """The judged nights of the engine up to this one, the newest first."""
        nights = (one for one in self.store.nights() if one.dag_id == self.night.dag_id)
        upto = [one for one in nights if one.started <= self.night.started and self.of_night(one)]
        return sorted(upto, key=lambda one: one.started, reverse=True)

    def first_red(self, red: Verdict) -> tuple[NightRow, NightRow]:
        """The first night of the nights in a row that were red as this one, and the one before."""
        first = self.night
        for before in self.judged[1:]:
            verdict = self.of_night(before)[red.query]
            if not verdict.bad or (verdict.value == Value.INVALID) != (red.value == Value.INVALID):
                return first, before
            first = before
        raise AssertionError("it was always red")

    def build(self, build: str) -> BuildRow:
        (row,) = self.store.builds([build])
        return row


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with example_nights.example_home(tmp_path_factory) as entered:
        yield entered


@pytest.fixture(
    scope="module",
    params=[(NEW, NIGHTS - 1), (NEW, 24), (NEW, 16), (NEW, 11), (OLD, NIGHTS - 1)],
    ids=["red", "a broken host", "an acceptance that ran out", "accepted", "a creep"],
)
def told(home: Path, request: pytest.FixtureRequest) -> Iterator[Told]:
    engine, number = request.param
    url = paths.database_url()
    with (
        open_store(url, create=False) as store,
        TestClient(create_app(Database(url), TestAccess()), headers={"x-user": "ada"}) as browser,
    ):
        run_id = RUN_ID.format(engine.started(number))
        (night,) = (one for one in store.nights() if one.run_id == run_id)
        yield Told(Looks(shown(browser, at(night.id))), store, night)


def test_which_query(told: Told) -> None:
    """The column Verdict: what needs attention is first, and every word is the gate's."""
    rows = told.page.table("Queries")
    for row in rows:
        verdict = told.verdicts[row["Query"]]
        word = f"{verdict.value} (accepted)" if verdict.acceptance else verdict.value
        said = re.match(r"[A-Z]+(?: [A-Z]+)*(?: \(accepted\))?", row["Verdict"])
        assert said is not None
        assert said[0] == word, row["Query"]
    assert {row["Query"] for row in rows} == told.verdicts.keys()
    if told.red:
        assert rows[0]["Query"] == told.red.query


def test_since_when(told: Told) -> None:
    """The line Since: the first night that was red without a break; no line if nothing is red."""
    since = told.page.said("Since")
    if told.red is None:
        assert since == ""
    else:
        first, _ = told.first_red(told.red)
        assert re.findall(r"\(night (\S+)\): (\w+)", since) == [(first.id, told.red.query)]


def test_which_build(told: Told) -> None:
    """The line Since names the build by version and origin where the build was new that night.

    A creep has no first bad build: the line Watch has the build with which it began, and how many
    accepted builds brought it.
    """
    since, watched = told.page.said("Since"), told.page.said("Watch")
    if told.red:
        first, before = told.first_red(told.red)
        build = told.build(first.build_id)
        assert first.build_id != before.build_id
        assert f"build {build.version} {origin_of(build.source)} {build.id[:12]}" in since
    creeps = [row for row in told.verdicts.values() if "accepted builds" in row.reason]
    assert ("accepted builds" in watched) == bool(creeps)
    for row in creeps:
        oldest = told.judged[-1]
        first_baseline = told.build((oldest.baselines or {})[row.query])
        assert f"{row.query}: " in watched
        assert f"since {oldest.started:%Y-%m-%d} ({first_baseline.version} " in watched
        place = (told.night.engine, told.night.workload, told.night.cluster)
        accepted = [
            each for each in told.store.acceptances(*place, row.query) if not each.withdrawal
        ]
        assert f", {len(accepted)} accepted builds" in watched


def test_how_sure(told: Told) -> None:
    """The column of the metric: the ratio with its interval and what could have been seen."""
    for row in told.page.table("Queries"):
        verdict = told.verdicts[row["Query"]]
        assert verdict.ratio
        *ratios, mde = map(
            float, re.findall(r"\d+\.\d+", row["CPU of tasks, ratio and 95 % interval"])
        )
        known = [verdict.ratio, verdict.ratio, verdict.lo, verdict.hi]
        assert ratios == pytest.approx([one for one in known if one is not None], abs=0.00051)
        assert mde == pytest.approx(100 * (verdict.mde or 0), abs=0.051)


def test_who_accepted(told: Told) -> None:
    """The table Acks: everybody who accepted something here, and what covers tonight's verdict."""
    place = (told.night.engine, told.night.workload, told.night.cluster)
    accepted = told.store.acceptances(*place)
    said, covering = [], set()
    for row in told.page.table("Acks"):
        queries = re.findall(r"q\d+", row["queries"])
        said += [(query, row["who"]) for query in queries]
        covering |= set(queries) if "covers tonight" in row["queries"] else set()
    assert sorted(said) == sorted((row.query, row.who) for row in accepted)
    covered = {query for query, verdict in told.verdicts.items() if verdict.acceptance}
    assert covering == covered
    for row in accepted:
        if row.query in covered:
            words = f"{row.query} by {row.who} until {row.expires:%Y-%m-%d}: {row.reason}"
            assert words in told.page.said("Accepted")


def test_what_to_do(told: Told) -> None:
    """The line Next: about the red query, for its reason; nothing where nothing is red."""
    todo = told.page.said("Next")
    if told.red is None:
        assert todo == "nothing to do."
    elif told.red.value == Value.INVALID:
        assert f"{told.red.query}'s tasks" in todo
        assert "nexmark accept" not in todo, "nobody accepts what a host spoilt"
    else:
        assert f" {told.red.query};" in todo
        assert f"nexmark accept --run '{told.night.id}'" in todo


def test_what_did_it_cost(told: Told) -> None:
    """The fact Cost: every application that was timed, how long it took, and its CPU time."""
    rows = told.store.repetitions(told.night.id)
    pattern = r"(\d+) timed applications in (\d+):(\d+):(\d+), .*; ([\d.]+) CPU-(\w+)"
    said = re.fullmatch(pattern, told.page.said("Cost"))
    assert said is not None
    count, hours, minutes, seconds = map(int, said.groups()[:4])
    assert count == len(rows)
    took = max(row.end or 0 for row in rows) - min(row.start or math.inf for row in rows)
    assert 3600 * hours + 60 * minutes + seconds == pytest.approx(took, abs=1)
    unit = {"minutes": 60, "hours": 3600}[said[6]]
    cpu_s = sum(row.cpu_application_s or 0 for row in rows)
    assert float(said[5]) == pytest.approx(cpu_s / unit, abs=0.051)


def test_is_the_host_to_blame(told: Told) -> None:
    """The line Hosts: the grade, and for each host how far apart the canary is around queries."""
    hosts = told.page.named("Hosts").text
    assert f"Hosts: {told.night.grade} " in hosts
    apart = {}
    canaries = told.store.canaries(told.night.id)
    for name in {row.host for row in canaries}:
        drifts = []
        for group in {row.group for row in canaries}:
            before, after = (
                [
                    row.value
                    for row in canaries
                    if (row.host, row.group, row.metric, row.moment)
                    == (name, group, "cpu_s", moment)
                    and row.value is not None
                ]
                for moment in ("before", "after")
            )
            if before and after:
                ratio = median(after) / median(before)
                drifts.append(max(ratio, 1 / ratio))
        apart[name] = max(drifts) - 1
    said = {name: float(size) for name, size in re.findall(r"(\w+) canary ([\d.]+) %", hosts)}
    assert said.keys() == apart.keys()
    worst = max(apart, key=apart.__getitem__)
    broken = told.night.grade == "broken"
    assert broken == (apart[worst] > 0.5)
    if broken:
        assert max(said, key=said.__getitem__) == worst
        assert said[worst] == pytest.approx(100 * apart[worst], abs=0.06)
        assert f"on {worst}: " in hosts
        assert told.red is not None
        assert f"on {worst}: " in told.red.reason


def test_is_the_gate_to_be_trusted(told: Told) -> None:
    """The section How far to trust it: how often the gate was right where the truth was known."""
    trust = told.page.below("How far to trust it")
    tests = told.store.self_tests(told.night.engine)
    alarms = {kind: [row for row in tests if row.kind == kind] for kind in ("aa", "slowdown")}
    counted = {
        kind: (sum(row.value == Value.REGRESSION for row in rows), len(rows))
        for kind, rows in alarms.items()
    }
    assert "{} of {} A/A pair sets alarmed".format(*counted["aa"]) in trust
    assert "{} of {} seeded slowdowns found".format(*counted["slowdown"]) in trust


def test_what_next(told: Told) -> None:
    """The section with the command: it measures the red query again, on the same two builds."""
    command = told.page.below("To measure what is red again")
    if told.red is None:
        assert command == ""
    else:
        new = told.build(told.night.build_id)
        old = told.build((told.night.baselines or {})[told.red.query])
        words = command.split()
        options = dict(zip(words[2::2], words[3::2], strict=True))
        assert words[:2] == ["nexmark", "build"]
        assert (options["--build"], options["--against"]) == (new.source, old.source)
        assert options["--queries"] == told.red.query
        assert options["--engine"] == told.night.engine
        assert options["--workload"] == told.night.workload
