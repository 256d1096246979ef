"""Judge a recorded night, and choose the queries that its next round measures.

The numbers are compared in `nexmark.verdict`. This file reads them from the results database, and
writes the verdicts to it.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from nexmark.acceptance.known_verdicts import covered
from nexmark.model import LOOKS_CHANGED, SUITE, Arm, Mode
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say

if TYPE_CHECKING:
    from nexmark.store import Store
    from nexmark.verdict.verdict import Verdict


def judge_night(night: Night, store: "Store", at: datetime | None = None) -> None:
    """Judge a recorded night; write its verdicts last, after all else.

    A night by bounds is compared with the baselines that were accepted at the moment `at`; None is
    now.
    """
    if night.mode == Mode.BOUNDS:
        _record(night, store, _judge_by_bounds(night, store, at))
    else:
        _judge_by_gate(night, store)


def _record(night: Night, store: "Store", verdicts: "Sequence[Verdict]") -> None:
    """Record verdicts; a known red verdict with the number of the acceptance that covers it."""
    known = covered(store, night.name, verdicts)
    verdicts = [
        replace(verdict, acceptance=known.get(verdict.query)) if verdict.decides else verdict
        for verdict in verdicts
    ]
    store.record_verdicts(night.name, verdicts)
    acceptances = {row.id: row for row in store.acceptances()} if known else {}
    for query, number in known.items():
        row = acceptances[number]
        until = f" until {row.expires:%Y-%m-%d}" if row.expires else ""
        say(f"{query}: known, accepted by {row.who}{until} (acceptance {number}): {row.reason}")


def _judge_by_bounds(night: Night, store: "Store", at: datetime | None) -> "list[Verdict]":
    """Return the verdicts of a night whose medians are compared with the accepted run."""
    from nexmark.verdict.bounds import judge as judge_queries
    from nexmark.verdict.eligibility import source_bound

    measured = store.paired_night(night.name)
    place = (night.engine.name, night.workload.name, night.cluster.name)
    return judge_queries(
        night.queries,
        store.arms(night.name),
        store.baseline(*place, at=at),
        measured.invalid,
        night.gate,
        workload=night.workload.name,
        night=night.name,
        repetitions=night.workload.repetitions,
        missing=measured.missing,
        source_bound=source_bound(measured.measured, night.gate),
    )


def _judge_by_gate(night: Night, store: "Store") -> None:
    """Judge the pairs of the night and record its verdicts; judge the pairs of its self-test, too.

    The self-test says whether the gate finds a seeded slowdown, and finds none in an equal build.
    """
    from nexmark.evidence.creep import lineage_of
    from nexmark.store.table_rows import SelfTestRow
    from nexmark.verdict.baseline_chain import Lineage
    from nexmark.verdict.eligibility import grade
    from nexmark.verdict.nightly import judge_night as judge_pairs

    gate = night.gate
    earlier = store.earlier(night.name, gate.remembered)
    measured = store.paired_night(night.name)
    hosts = grade(measured.canary, gate)
    store.record_grade(night.name, hosts.steadiness.name.lower(), hosts.reason)
    for arm, query in night.self_test.items():
        tested = store.paired_night(night.name, arms=(arm, Arm.BASELINE), queries=[query])
        judged = judge_pairs(tested, earlier, gate, Lineage())  # only a candidate has a lineage
        (verdict,) = (one for one in judged if one.query == query and one.decides)
        slowed = arm == Arm.SLOWED
        row = SelfTestRow(
            kind="slowdown" if slowed else "aa",
            query=query,
            size=1 + gate.self_test if slowed else 1.0,
            value=verdict.value,
            ratio=verdict.ratio,
            lo=verdict.lo,
            hi=verdict.hi,
            gate_version=gate.version,
        )
        store.record_self_test(night.name, row)
    lineage = lineage_of(store, store.night(night.name), gate.metric)
    _record(night, store, judge_pairs(measured, earlier, gate, lineage))


def arms_going_on(night: Night, store: "Store", number: int) -> dict[str, list[str]]:
    """Return by query the arms that round `number`, from 2, measures beside the baseline.

    The most urgent query comes first.
    """
    from nexmark.verdict.nightly import going_on

    earlier = store.earlier(night.name, night.gate.remembered)
    arms: dict[str, list[str]] = {}
    for query in going_on(store.paired_night(night.name), earlier, night.gate, number):
        arms.setdefault(query, []).append(Arm.CANDIDATE)
    for arm, query in night.self_test.items():
        tested = store.paired_night(night.name, arms=(arm, Arm.BASELINE), queries=[query])
        if going_on(tested, earlier, night.gate, number):
            arms.setdefault(query, []).append(arm)
    return arms


def changed_queries(night: Night, store: "Store") -> list[str]:
    """Return the queries that the candidate has changed, or seems to have, after all rounds."""
    from nexmark.verdict.nightly import judge_night as judge_pairs

    earlier = store.earlier(night.name, night.gate.remembered)
    verdicts = judge_pairs(store.paired_night(night.name), earlier, night.gate)
    return [
        verdict.query
        for verdict in verdicts
        if verdict.decides and verdict.query != SUITE and verdict.value in LOOKS_CHANGED
    ]
