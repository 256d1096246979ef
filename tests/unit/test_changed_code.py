"""What `make mutants` changes, what it leaves alone, and that a change reaches the tests."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from nexmark.config.paths import repository
from tests.changed_code.__main__ import LEFT, _quickest
from tests.changed_code.asking import exchange
from tests.changed_code.changes import Change, changes


@pytest.mark.parametrize(
    ("source", "now"),
    [
        ("def f(a, b):\n    return a < b\n", {"return a <= b"}),
        ("def f(a, b):\n    return a and b\n", {"return a or b"}),
        ("def f(a):\n    return a + 1\n", {"return a - 1", "return a + 2"}),
        ("def f(a):\n    return g(a, c=a)\n", {"return g(c=a)", "return g(a)"}),
        ("def f(a):\n    if a:\n        return g\n", {"if not (a):"}),
        ("def f(a):\n    return not a\n", {"return a"}),
        ("def f(a):\n    return 'x' if a else a\n", {"'XXxXX'", "(a) and False", "(a) or True"}),
        ("BOUND = 3\n", {"BOUND = 4"}),
        ("class A:\n    @property\n    def b(self):\n        return True\n", {"return False"}),
    ],
)
def test_one_thing_at_a_time_is_another(source: str, now: set[str]) -> None:
    found = [change.now for change in changes("a.py", source)]
    assert len(found) == len(now)
    assert all(any(part in text for text in found) for part in now)


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring, 1 + 1."""\nfrom a import b\n__all__ = ["b"]\n',
        "def f(a: int | None = None) -> None:\n    '''Text.'''\n",
        "@cache(maxsize=3)\ndef f(): ...\n",
        "def f(a):\n    raise ValueError('a message for a person')\n",
        "def f(a):\n    return isinstance(a, int)\n",
    ],
)
def test_what_is_no_behaviour_is_left_alone(source: str) -> None:
    assert [change.now for change in changes("a.py", source)] == []


def test_a_key_is_of_the_function_and_not_of_its_line() -> None:
    """So that an answer holds while only the code around it changes."""
    source = "def f(a):\n    return a < 2\n"
    keys = [change.key for change in changes("a.py", source)]
    assert keys == [change.key for change in changes("a.py", f"import b\n\n\n{source}")]
    other = source.replace("return", "a += 1\n    return")
    assert not set(keys) & {change.key for change in changes("a.py", other)}


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A file with a property, two lambdas on one line and a function within one."""
    path = tmp_path / "some.py"
    path.write_text(
        "class A:\n    @property\n    def b(self):\n        return 1\n"
        "ways = [lambda: 10, lambda: 20]\n"
        "def outer():\n    def inner():\n        return 5\n    return inner()\n"
    )
    return path


def _exchanged(path: Path) -> Iterator[tuple[str, tuple[object, ...]]]:
    for change in changes(str(path), path.read_text()):
        if change.swapped:
            yield change.now, _after(path, change)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("some", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def _after(path: Path, change: Change) -> tuple[object, ...]:
    loaded = _loaded(path)
    functions = [loaded.A.b.fget, loaded.outer, *loaded.ways]
    assert exchange(functions, change, str(path))
    return loaded.A().b, loaded.outer(), *(way() for way in loaded.ways)


def test_a_changed_function_runs_wherever_it_was_imported(module: Path) -> None:
    assert dict(_exchanged(module)) == {"return 2": (2, 5, 10, 20), "return 6": (1, 6, 10, 20)}


def test_what_a_function_remembers_from_before_the_change_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("from functools import cache\n\n\n@cache\ndef f():\n    return 1\n")
    loaded = _loaded(path)
    assert loaded.f() == 1
    (change,) = changes(str(path), path.read_text())
    assert exchange([loaded.f.__wrapped__], change, str(path), [loaded.f])
    assert loaded.f() == 2


def test_what_no_test_needs_to_notice_is_a_line_that_is_there_and_has_a_reason() -> None:
    for file, entries in (yaml.safe_load(LEFT.read_text()) or {}).items():
        text = " ".join((repository() / file).read_text().split())
        for entry in entries:
            assert " ".join(entry["was"].split()) in text, f"{file}: {entry['was']}"
            assert len(entry["why"].split()) > 2, f"{file}: {entry['was']}: why?"


def test_a_change_is_asked_of_the_quickest_tests_and_of_ten_seconds_of_them() -> None:
    """Six hundred cases of one test see no more than the first hundred."""
    tests = {f"t{number}": 0.3 for number in range(100)} | {"quick": 0.01}
    asked = _quickest(tests)
    assert next(iter(asked)) == "quick"
    assert 9 < sum(asked.values()) <= 10


def test_many_cases_of_one_test_leave_time_for_every_other_test() -> None:
    cases = {f"a.py::often[{number}]": 0.1 for number in range(200)}
    others = {"a.py::once": 0.5, "b.py::often[1]": 0.9}
    assert list(_quickest(cases | others))[:3] == ["a.py::often[0]", *others]
    assert sum(test in cases for test in _quickest(cases | others)) > 80
