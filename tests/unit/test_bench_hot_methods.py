"""Where the CPU time of a query goes: own time of methods, and time of all that they call."""

from __future__ import annotations

from bench.hot_methods import TOP, lines


def test_a_method_has_its_own_time_and_once_the_time_of_what_it_calls() -> None:
    counts = {
        ("thread", "a.B.run", "a.C.put"): 60,
        ("thread", "a.B.run", "a.C.put", "a.D.copy", "a.C.put"): 30,  # a recursion counts once
        ("thread", "a.B.run"): 10,
    }
    head, *rows = lines(counts)
    assert head.split()[:2] == ["100", "samples"]
    assert [row.split() for row in rows] == [
        ["90.0%", "90.0%", "C.put"],
        ["10.0%", "100.0%", "B.run"],
    ]


def test_a_list_is_short() -> None:
    counts = {("thread", f"a.B.m{number}"): number + 1 for number in range(5 * TOP)}
    assert len(list(lines(counts))) == 1 + TOP
