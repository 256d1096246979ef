"""Acks: what is known does not alarm again, what is worse or wrong does; one issue per build."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from nexmark.model import SUITE, Value
from nexmark.verdict.acks import Ack, Group, acked, group_by_first_bad
from nexmark.verdict.verdict import Verdict
from tests.unit.verdict.gate_builder import CPU

NIGHT = datetime(2026, 11, 21, 2, tzinfo=UTC)
ACK = Ack("q5", CPU, "build-7", 1.10, NIGHT + timedelta(days=30), "ack-1")
REGRESSION = Verdict(
    night="n9",
    query="q5",
    metric=CPU,
    value=Value.REGRESSION,
    reason="slower",
    mode="paired",
    gate_version=1,
    ratio=1.09,
    lo=1.06,
    hi=1.12,
)
OK = replace(REGRESSION, value=Value.OK, ratio=1.0, lo=0.98, hi=1.02)
WRONG = replace(REGRESSION, value=Value.INVALID, ratio=None, lo=None, hi=None)
MISSING = replace(WRONG, value=Value.MISSING)
SUSPECT = replace(REGRESSION, value=Value.SUSPECT)


def known(verdict: Verdict, ack: Ack = ACK, build: str = "build-8") -> bool:
    return bool(acked([verdict], build, [ack], NIGHT))


def test_a_night_with_nothing_but_what_is_known_is_green() -> None:
    verdicts = [OK, replace(REGRESSION, query="q7")]
    found = acked(verdicts, "build-8", [replace(ACK, query="q7")], NIGHT)
    assert found == {("q7", CPU): replace(ACK, query="q7")}
    more = [*verdicts, replace(REGRESSION, query="q8")]
    assert [x.query for x in more if x.red and (x.query, x.metric) not in found] == ["q8"]


@pytest.mark.parametrize("change", [{"query": "q6"}, {"metric": "wall_s"}])
def test_an_ack_is_of_one_query_and_metric(change: dict[str, str]) -> None:
    assert known(REGRESSION)
    assert not known(REGRESSION, replace(ACK, **change))


def test_an_ack_ends_when_it_says() -> None:
    assert not known(REGRESSION, replace(ACK, expires=NIGHT))
    assert known(REGRESSION, replace(ACK, expires=NIGHT + timedelta(seconds=1)))
    assert known(REGRESSION, replace(ACK, expires=None))


@pytest.mark.parametrize(
    ("ratio", "lo", "expected"),
    [
        (1.05, 1.02, True),
        (1.12, 1.08, True),  # may be what was accepted
        (1.16, 1.10, True),
        (1.16, 1.101, False),
        (1.20, None, False),
        (1.09, None, True),
    ],
)
def test_a_worse_number_of_a_later_build_alarms_again(
    ratio: float, lo: float | None, expected: bool
) -> None:
    assert known(replace(REGRESSION, ratio=ratio, lo=lo)) is expected


def test_the_build_that_was_acked_stays_so_whatever_is_measured() -> None:
    worse = replace(REGRESSION, ratio=1.30, lo=1.25)
    assert known(worse, build="build-7")
    assert not known(worse, build="build-8")


def test_a_suspicion_of_what_is_known_is_known() -> None:
    assert known(SUSPECT)


@pytest.mark.parametrize("verdict", [WRONG, MISSING])
def test_no_size_makes_a_wrong_or_missing_result_right(verdict: Verdict) -> None:
    assert not known(verdict, build="build-7")
    without_size = replace(ACK, size=None)
    assert known(verdict, without_size, build="build-7")
    assert not known(verdict, without_size, build="build-8")


def test_a_wrong_result_with_numbers_is_wrong_all_the_same() -> None:
    assert not known(replace(REGRESSION, value=Value.INVALID), build="build-7")


def test_an_ack_without_size_accepts_no_slowdown() -> None:
    assert not known(REGRESSION, replace(ACK, size=None), build="build-7")


def test_what_is_not_red_is_not_acked() -> None:
    informs = replace(REGRESSION, decides=False)
    assert acked([OK, informs], "build-7", [ACK], NIGHT) == {}


def history(*values: str, query: str = "q5", build: str = "b") -> list[tuple[str, Verdict]]:
    """A night per letter: R(egression), S(uspect), W(rong), M(issing), O(K)."""
    kinds = {"R": REGRESSION, "S": SUSPECT, "W": WRONG, "M": MISSING, "O": OK}
    return [
        (f"{build}{i}", replace(kinds[value], night=f"n{i}", query=query))
        for i, value in enumerate(values)
    ]


def groups(*queries: str) -> list[Group]:
    """The groups of queries q0, q1, ..., each with a letter per night; '-': not run."""
    nights = [
        (
            f"b{i}",
            [
                history(*letters.replace("-", "O"), query=f"q{q}")[i][1]
                for q, letters in enumerate(queries)
                if letters[i] != "-"
            ],
        )
        for i in range(len(queries[0]))
    ]
    return group_by_first_bad(nights)


@pytest.mark.parametrize(
    ("letters", "build", "nights"),
    [
        ("ORRR", "b1", 3),
        ("RORR", "b2", 2),
        ("OOOR", "b3", 1),
        ("RRRR", "b0", 4),
        ("ORSR", "b1", 3),
        ("OSRR", "b1", 3),
        ("OR-R", "b1", 2),
        ("ORWR", "b1", 2),
        ("WWRR", "b2", 2),
        ("RRWW", "b2", 2),
        ("MWMM", "b0", 3),
    ],
)
def test_an_alarm_belongs_to_the_build_it_began_with(letters: str, build: str, nights: int) -> None:
    (group,) = groups(letters)
    (alarm,) = group.alarms
    assert (group.build, group.metric) == (build, CPU)
    assert (alarm.since, alarm.nights) == (build.replace("b", "n"), nights)
    assert alarm.verdict.night == f"n{len(letters) - 1}"


def test_what_began_with_one_build_is_one_group() -> None:
    found = groups("OORR", "ORRR", "OORR", "OOOO", "RRRO")
    assert [(group.build, [x.verdict.query for x in group.alarms]) for group in found] == [
        ("b1", ["q1"]),
        ("b2", ["q0", "q2"]),
    ]


def test_metrics_have_groups_of_their_own() -> None:
    other = replace(REGRESSION, metric="wall_s")
    found = group_by_first_bad([("b0", [REGRESSION, other])])
    assert [group.metric for group in found] == [CPU, "wall_s"]


def test_a_build_of_several_nights_is_one_build() -> None:
    """A night that was run again with the same build does not split its alarms."""
    night = [replace(REGRESSION, query="q1")]
    again = [*night, replace(REGRESSION, query="q2")]
    (group,) = group_by_first_bad([("b0", night), ("b0", again)])
    assert [alarm.verdict.query for alarm in group.alarms] == ["q1", "q2"]


def test_without_alarms_or_nights_there_are_no_groups() -> None:
    assert group_by_first_bad([]) == []
    assert group_by_first_bad([("b0", [OK, replace(OK, query=SUITE)])]) == []
