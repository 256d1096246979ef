"""Many nights at a time, on both databases."""

from __future__ import annotations

import random
from dataclasses import replace

from sqlalchemy import event

from nexmark.model import Value
from nexmark.store import Store, history
from nexmark.store.query_history import trail
from nexmark.store.table_rows import NightRow
from tests.unit.store.night_builder import OK, judged
from tests.unit.web import web_nights
from tests.unit.web.web_nights import DAG, NEW, OLD


def test_only_nights_of_the_dags_that_were_asked_for_are_told_of(store: Store) -> None:
    web_nights.record(store, 1)
    assert history.dag_ids(store) == [DAG]
    assert history.count_nights(store, [DAG]) == 2  # with the one that was accepted
    for dags in ([], ["other"]):
        assert history.nights(store, dags, 9) == []
        assert history.count_nights(store, dags) == 0
        assert history.builds(store, dags) == []


def test_nights_come_newest_first_and_know_their_neighbours(store: Store) -> None:
    first, second, third = (web_nights.record(store, number) for number in (1, 2, 3))
    assert [x.id for x in history.nights(store, [DAG], 2)] == [third, second]
    assert [x.id for x in history.nights(store, [DAG], 1, offset=2)] == [first]
    assert next(x.id for x in history.nights(store, [DAG], 9, build=OLD.id)).endswith(
        "accepted-one"
    )
    assert history.neighbours(store, store.night(second)) == (first, third)
    assert history.neighbours(store, store.night(third)) == (second, None)


def test_red_is_counted_as_a_verdict_is_red(store: Store) -> None:
    run = web_nights.record(store, 1, web_nights.ALL_VALUES)
    quiet = web_nights.record(store, 2)
    found = history.tallies(store, [store.night(run), store.night(quiet)])
    assert found[run].red == sum(row.red for row in store.verdicts(run)) > 0
    assert (found[quiet].red, found[quiet].values) == (0, {"OK": 2})
    assert history.tallies(store, []) == {}


def test_a_night_is_judged_by_a_verdict_that_decides(store: Store) -> None:
    """A night that has begun is not, nor one whose verdicts only inform."""
    run, informed = (web_nights.record(store, number) for number in (1, 2))
    begun = web_nights.paired_night(3)
    store.record_night(begun)
    store.record_verdicts(informed, [replace(x, decides=False) for x in store.verdicts(informed)])
    nights = [store.night(name) for name in (run, informed, begun.run)]
    assert history.judged_nights(store, nights) == {run} == history.tallies(store, nights).keys()
    assert history.judged_nights(store, nights[1:]) == set()


def test_a_red_verdict_that_is_accepted_is_known_and_not_red(store: Store) -> None:
    run = web_nights.record(store, 1, {"q2": Value.REGRESSION, "q0": Value.OK})
    store.accept(run, "ada", "meant", ["q2"])
    (ack,) = store.acceptances()
    store.record_verdicts(
        run,
        [replace(x, acceptance=ack.id if x.query == "q2" else None) for x in store.verdicts(run)],
    )
    tally = history.tallies(store, [store.night(run)])[run]
    assert (tally.red, tally.known) == (0, 1)


def test_the_history_of_a_query_is_of_comparable_nights(store: Store) -> None:
    first = web_nights.record(store, 1)
    web_nights.record(store, 2, workload_spec={"events": 7})
    run = web_nights.record(store, 3)
    tried = web_nights.record(store, 4, teaches=False)
    last = web_nights.record(store, 5)
    later = trail(store, store.night(last), "q0", "cpu_s_per_mevent", 9)
    assert [x.verdict.night for x in later] == [first, run, last]
    own = trail(store, store.night(tried), "q0", "cpu_s_per_mevent", 9)
    assert [x.verdict.night for x in own] == [first, run, tried]
    points = trail(store, store.night(run), "q0", "cpu_s_per_mevent", 9)
    assert [(x.verdict.night, x.baseline) for x in points] == [(first, OLD.id), (run, OLD.id)]
    assert [x.verdict.night for x in trail(store, store.night(run), "q0", "wall_s", 1)] == [run]


def test_nights_that_were_judged_again_take_one_place_each(store: Store) -> None:
    runs = [web_nights.record(store, number) for number in range(1, 5)]
    for version in (7, 8):
        for run in runs:
            again = [replace(x, gate_version=version) for x in store.verdicts(run)]
            store.record_verdicts(run, again)
    points = trail(store, store.night(runs[-1]), "q0", "cpu_s_per_mevent", 3)
    assert [x.verdict.night for x in points] == runs[1:]


def test_a_verdict_that_the_newest_gate_did_not_give_is_not_shown(store: Store) -> None:
    run = web_nights.record(store, 1)
    (q5,) = (x for x in store.verdicts(run) if x.query == "q5" and x.decides)
    store.record_verdicts(run, [replace(q5, gate_version=7)])
    assert trail(store, store.night(run), "q0", "cpu_s_per_mevent", 9) == []


def test_a_run_is_found_without_reading_the_specs_of_all(store: Store) -> None:
    runs = [web_nights.record(store, number) for number in (1, 2, 3)]
    loaded: list[str] = []

    def note(night: NightRow, _: object) -> None:
        loaded.append(night.id)

    event.listen(NightRow, "load", note)
    try:
        assert store.find_run(runs[1]).id == runs[1]
    finally:
        event.remove(NightRow, "load", note)
    assert loaded == [runs[1]]


def test_builds_hosts_and_figures(store: Store) -> None:
    runs = [web_nights.record(store, number) for number in (1, 2)]
    new, old = history.builds(store, [DAG])
    assert (new.id, new.nights, old.id, old.nights) == (NEW.id, 2, OLD.id, 3)
    figures = history.figures(store, runs, ["cpu_s_per_mevent"])
    assert len(figures) == 4
    assert {x.baseline_build for x in figures} == {OLD.id}
    assert all(x.candidate for x in figures)


def test_repetitions_without_what_is_not_shown(store: Store) -> None:
    run = web_nights.record(store, 1)
    rows = store.repetitions(run, ["q5"])
    assert len(rows) == 6
    assert all(len(row.batch_list or ()) == 8 for row in rows)
    assert len(store.plans({row.plan_id for row in rows if row.plan_id})) == 2
    assert "batch_list" not in vars(store.repetitions(run, leave_out=("batch_list",))[0])
    assert store.repetitions(run, []) == []


def test_reds_come_with_the_verdict_that_ended_them(store: Store) -> None:
    red, green = {"q0": Value.OK, "q5": Value.REGRESSION}, {"q0": Value.OK, "q5": Value.OK}
    runs = [web_nights.record(store, n, red if n in (2, 3) else green) for n in range(1, 6)]
    nights = history.nights(store, [DAG], 9)
    found = history.reds(store, nights)
    assert [(x.night, x.query, x.bad) for x in found] == [
        (runs[1], "q5", True),
        (runs[2], "q5", True),
        (runs[3], "q5", False),
    ]
    assert len(history.judged(store, nights)) == 10
    again = [replace(x, gate_version=9, value=Value.OK) for x in store.verdicts(runs[1])]
    store.record_verdicts(runs[1], again)
    assert [x.night for x in history.reds(store, nights)] == runs[2:4]


def test_reds_are_what_one_finds_by_reading_every_verdict(store: Store) -> None:
    """In nights in turns of two workloads, some with fewer queries, some judged by two gates."""
    chance = random.Random(7)
    values = (Value.OK, Value.OK, Value.REGRESSION, Value.SUSPECT, Value.INVALID, Value.MISSING)
    for number in range(1, 31):
        given = [
            replace(OK, query=query, value=chance.choice(values), ratio=chance.choice((0.9, 1.2)))
            for query in chance.sample(("q0", "q5", "q8"), chance.randint(1, 3))
        ]
        run = judged(store, number, *given, workload=chance.choice(("small", "big")))
        if chance.random() < 0.3:
            of_newer = [replace(each, value=chance.choice(values)) for each in given[:2]]
            store.record_verdicts(run, [replace(each, gate_version=3) for each in of_newer])
    nights = history.nights(store, [DAG], 25)
    last = dict[tuple[str, ...], bool]()
    expected = []
    for verdict in history.judged(store, nights):
        if verdict.bad or last.get(verdict.series):
            expected.append(verdict)
        last[verdict.series] = verdict.bad
    assert 20 < len(expected) < len(history.judged(store, nights))
    assert history.reds(store, nights) == expected
