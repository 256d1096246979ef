"""`make mutants`: does a test notice that one operator, bound or constant of the gate is another?

    make mutants                                          all: hours of one processor
    make mutants ONLY=plugins/nexmark/verdict/noise.py    one file, or all files below a directory

Every change of ``FILES`` is made, one at a time, and the tests in ``TESTS`` that run the changed
function are run. Ctrl-C stops it; it goes on where it stopped. What was noticed is not asked again
until that function changes, what was not noticed when its tests change. Changes that no test needs
to notice are in ``left.yaml``, each with its reason. Exit code 1 below 95 %, or where an entry of
``left.yaml`` is no change any more.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.changed_code.asking import (
    HEAVY,
    LONGEST_S,
    Question,
    ask_imported,
    ask_swapped,
    measure,
)
from tests.changed_code.changes import Change, changes, function_ranges

#: What decides over a night: the gate, what it reads, and what proves a result right. The rest of
#: the store (connections, migrations, export) is tested with whole databases.
FILES = (
    "plugins/nexmark/verdict/*.py",
    "plugins/nexmark/measure/*.py",
    "plugins/nexmark/expectations/*.py",
    *(
        f"plugins/nexmark/store/{name}.py"
        for name in ("accepting", "gate_rows", "history", "query_history", "reading", "records")
    ),
)
#: The tests of a room, by its name: they alone are asked about its files.
TESTS = {
    "verdict": "tests/unit/verdict",
    "measure": "tests/unit/measure",
    "expectations": "tests/expectations",
    "store": "tests/unit/store",
}
#: Seconds of tests that a change is asked about.
ASKED_S = 10.0
LEFT = Path(__file__).with_name("left.yaml")
DIRECTORY = Path(".nexmark/mutants")
RESULTS = DIRECTORY / "results.jsonl"
FEWEST = 95.0
"""Percent that must be noticed."""


def main() -> int:
    """Ask what is not answered yet, print the table."""
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("only", nargs="*", help="files or directories of the package")
    parser.add_argument("--show", action="store_true", help="print the noticed ones, too")
    given = parser.parse_args()
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    sources = _sources(given.only)
    if not sources:
        print(f"make mutants: ONLY={' '.join(given.only)}: none of {' '.join(FILES)}")
        return 2
    rooms = {Path(path).parent.name for path in sources}
    for name in " ".join(HEAVY[room] for room in rooms).split():
        importlib.import_module(name)
    tests = _tests_of_functions(rooms)
    asked = [x for path, text in sources.items() for x in changes(path, text)]
    questions = [Question(x, _asked(x, tests)) for x in asked]
    try:
        _ask(questions)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here")
        return 130
    return _table(questions, shown=given.show)


def _sources(only: Sequence[str] = ()) -> dict[str, str]:
    found = sorted({str(path) for pattern in FILES for path in Path().glob(pattern)})
    chosen = [x for x in found if not only or any(Path(x).is_relative_to(y) for y in only)]
    return {path: Path(path).read_text(encoding="utf-8") for path in chosen}


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


@cache
def _test_files(rooms: Iterable[str] = tuple(TESTS)) -> dict[str, str]:
    """The files with tests, each with a hash of its text and of what its directory shares."""
    found = {}
    for directory in (Path(TESTS[room]) for room in rooms):
        shared = [x.read_text() for x in sorted(directory.glob("*.py")) if not _is_test(x)]
        for path in sorted(filter(_is_test, directory.glob("*.py"))):
            found[str(path)] = _hash(path.read_text(), *shared)
    return found


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_")


def _tests_of_functions(rooms: Set[str]) -> dict[str, dict[str, float]]:
    """The tests that run each "file:function", with their seconds.

    A test file is run again after a change of it, or of a function that it does not know.
    """
    note = DIRECTORY / "tests.json"
    known = json.loads(note.read_text()) if note.exists() else {}
    ranges = {path: function_ranges(text) for path, text in _sources().items()}
    functions = {f"{path}:{name}" for path, names in ranges.items() for name in names}
    new = functions - set(known.get("functions", ()))
    touched = {x.partition(":")[0] for x in new}
    files, kept, stale = _test_files(tuple(sorted(rooms))), known.get("files", {}), []
    for file, text in files.items():
        old = kept.get(file)
        ran = (
            {x.partition(":")[0] for _, names in old["tests"].values() for x in names}
            if old
            else ()
        )
        if old is None or old["hash"] != text or touched & set(ran):
            stale.append(file)
    if stale:
        print(f"which tests run what: {len(stale)} of {len(files)} test files", flush=True)
        out = DIRECTORY / "measured.json"
        slow = {file: _slow(kept[file]["tests"]) for file in stale if file in kept}
        slow = {file: own for file, own in slow.items() if kept[file]["hash"] == files[file]}
        measure(stale, ranges, out, [test for own in slow.values() for test in own])
        measured = json.loads(out.read_text())
        failed = {x.partition("::")[0] for x in measured["failed"]}
        for file in stale:
            own = {x: ran for x, ran in measured["ran"].items() if x.partition("::")[0] == file}
            own |= slow.get(file, {})
            kept[file] = {"hash": "" if file in failed else files[file], "tests": own}
        kept = {file: kept[file] for file in _test_files() if file in kept}
        note.write_text(json.dumps({"functions": sorted(functions), "files": kept}))
        if failed:
            print("tests fail without any change:", *measured["failed"], sep="\n  ")
            raise SystemExit(2)
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for test_file, file in kept.items():
        for test, (seconds, names) in file["tests"].items():
            for name in names if seconds <= LONGEST_S else ():
                if test_file.startswith(TESTS[Path(name.partition(":")[0]).parent.name]):
                    found[name][test] = seconds
    return found


def _slow(tests: Mapping[str, tuple[float, list[str]]]) -> dict[str, tuple[float, list[str]]]:
    """The tests that take far too long to be asked: nobody needs to know again what they run."""
    return {test: ran for test, ran in tests.items() if ran[0] > 3 * LONGEST_S}


def _paths(tests: Mapping[str, tuple[float, list[str]]]) -> set[str]:
    """The files that have a function which is run."""
    return {name.partition(":")[0] for _, names in tests.values() for name in names}


def _asked(change: Change, tests: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The tests of a changed function; outside of functions, of the file and of its users."""
    if change.function and change.swapped:
        return _quickest(tests.get(f"{change.path}:{change.function}", {}))
    module = change.path.removeprefix("plugins/").removesuffix(".py").replace("/", ".")
    users = {path for path, text in _all().items() if f"{module} import" in text}
    found: dict[str, float] = {}
    for name, ran in tests.items():
        if name.partition(":")[0] in {change.path, *users}:
            found |= ran
    return _quickest(found)


def _quickest(tests: Mapping[str, float]) -> dict[str, float]:
    """Tests that take ``ASKED_S`` in all: the quickest case of each test, then the next ones.

    Hundreds of cases of one test see no more, and would leave no time for other tests.
    """
    quickest = sorted(tests, key=lambda x: (tests[x], x))
    cases: Counter[str] = Counter()
    rounds: dict[str, int] = {}
    for test in quickest:
        name = test.partition("[")[0]
        rounds[test] = cases[name]
        cases[name] += 1
    took, found = 0.0, {}
    for test in sorted(quickest, key=lambda x: rounds[x]):
        took += tests[test]
        if took <= ASKED_S:
            found[test] = tests[test]
    return found


@cache
def _all() -> dict[str, str]:
    return _sources()


def _state(question: Question) -> str:
    """A hash of the tests of a question: not noticed is asked again when it differs."""
    files = _test_files()
    tests = sorted(question.tests)
    return _hash(*tests, *(files[x] for x in sorted({t.partition("::")[0] for t in tests})))


def _answers() -> dict[str, dict[str, str]]:
    """By the change's key: the test that noticed it, "" if none, and the state of the tests."""
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text().splitlines()
    return {row["key"]: row for row in map(json.loads, lines)}


def _open(questions: Sequence[Question]) -> Iterator[Question]:
    answers, left = _answers(), _left()
    states: dict[tuple[str, ...], str] = {}
    for question in questions:
        if _why(question.change, left):
            continue
        row = answers.get(question.change.key)
        tests = tuple(sorted(question.tests))
        if tests not in states:
            states[tests] = _state(question)
        if row is None or (not row["noticed"] and row["tests"] != states[tests]):
            yield question


def _ask(questions: Sequence[Question]) -> None:
    waiting = list(_open(questions))
    done, start = len(questions) - len(waiting), time.monotonic()
    print(f"{len(questions)} changes, {len(waiting)} to ask about", flush=True)
    counter = iter(range(1, len(waiting) + 1))

    def answer(change: Change, noticed: str) -> None:
        nonlocal done
        row = {"key": change.key, "noticed": noticed, "tests": states[change.key]}
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        number = next(counter, 0)
        if not noticed:
            print(f"not noticed: {change.path}:{change.line} {change.now}", flush=True)
        if number % 50 == 0:
            rate = (time.monotonic() - start) / number
            print(f"  {number} of {len(waiting)}, {rate:.2f} s each", flush=True)

    states = {x.change.key: _state(x) for x in waiting}
    for question in [x for x in waiting if not x.tests]:
        answer(question.change, "")
    swapped = [x for x in waiting if x.change.swapped and x.tests]
    if swapped:
        files = sorted({t.partition("::")[0] for x in swapped for t in x.tests})
        code = ask_swapped(files, swapped, answer, DIRECTORY)
        if code == pytest.ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise SystemExit(f"make mutants: the process of the tests ended with {code}")
    for question in _open(waiting):
        if question.tests:
            answer(question.change, ask_imported(question, DIRECTORY))


_Entries = dict[tuple[str, str, str], tuple[str, str]]


def _left() -> _Entries:
    """(file, line before, line after) -> why no test needs to notice it, and in which function.

    The function is "" where the lines say enough.
    """
    entries = yaml.safe_load(LEFT.read_text(encoding="utf-8")) or {}
    return {
        (file, entry["was"], now): (entry["why"], entry.get("in", ""))
        for file, listed in entries.items()
        for entry in listed
        for now in ([entry["now"]] if isinstance(entry["now"], str) else entry["now"])
    }


def _why(change: Change, left: _Entries) -> str:
    """Why no test needs to notice a change; "" where one has to."""
    why, function = left.get(change.name, ("", ""))
    return why if function in ("", change.function) else ""


def _table(questions: Sequence[Question], shown: bool) -> int:
    answers, left = _answers(), _left()
    rows: dict[str, list[int]] = {}
    used = set()
    for question in questions:
        change = question.change
        row = rows.setdefault(change.path, [0, 0, 0, 0])
        why = _why(change, left)
        if why:
            used.add(change.name)
        noticed = "" if why else answers[change.key]["noticed"]
        place = 1 if noticed else 2 if why else 3
        row[0] += 1
        row[place] += 1
        if place == 3 or shown:
            word = noticed or why or "NOT NOTICED"
            print(f"{change.path}:{change.line} {word}\n  - {change.was}\n  + {change.now}")
    print(f"\n{'file':48} {'changes':>8} {'noticed':>8} {'reasoned':>8} {'not':>6} {'%':>7}")
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    for path, row in [*rows.items(), ("all", total)]:
        print(f"{path:48} {row[0]:8} {row[1]:8} {row[2]:8} {row[3]:6} {_percent(row):7.1f}")
    files = {x.change.path for x in questions}
    stale = sorted(x for x in left if x[0] in files and x not in used)
    for path, was, now in stale:
        print(f"{LEFT.name}: {path}: no change from '{was}' to '{now}' any more: delete the entry")
    return int(bool(stale) or _percent(total) < FEWEST)


def _percent(row: Sequence[int]) -> float:
    return 100 * row[1] / max(row[1] + row[3], 1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        for name in ("tmp", "shared", "imported", "measured"):
            shutil.rmtree(DIRECTORY / name, ignore_errors=True)
