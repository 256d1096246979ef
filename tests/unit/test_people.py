"""Who did something is a name that nobody can choose."""

from __future__ import annotations

import pytest

from nexmark.people import process_user, signed
from nexmark.tasks.judging import accepting_user


def test_the_name_of_the_process_is_none_of_its_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = process_user()
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "grace")
    assert process_user() == before


def test_a_name_that_is_given_stands_behind_the_real_one() -> None:
    assert signed("root", "ada") == "root (for ada)"
    assert signed("root", "root") == signed("root", None) == signed("root", " ") == "root"


@pytest.mark.parametrize("given", ["", None, "ada", "admin"])
def test_under_a_scheduler_the_user_of_airflow_accepts_whatever_name_is_given(
    given: str | None,
) -> None:
    assert accepting_user("eve", given).split()[0] == "eve"


def test_without_a_scheduler_the_user_of_the_process_accepts() -> None:
    assert accepting_user("dag_test", "ada") == f"{process_user()} (for ada)"
    assert accepting_user(None, "") == process_user()
