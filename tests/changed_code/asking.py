"""Asks the tests about changed code, in one process that has imported everything once.

For each change the process forks. The child exchanges the code of the functions of the changed
file in place, and runs the tests that run the changed function until one fails. For a change
outside of functions a process imports everything again, with the changed file.
"""

from __future__ import annotations

import gc
import importlib.machinery
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import _lru_cache_wrapper, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

from tests.changed_code.changes import Change

#: pytest in a process of its own: what a child prints goes nowhere, and a child keeps its own time.
ARGUMENTS = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminalreporter")
ARGUMENTS += ("--timeout=0", "-p", "no:faulthandler", "--no-header", "--durations=0")
#: PostgreSQL and Spark take too long for thousands of changes.
CHOSEN = ("-m", "not spark and not slow and not long and not extended", "-k", "not postgresql")
#: Imported before a process for one change is forked, by room: none of ours, and no more than its
#: tests import, for a larger process takes longer to fork.
HEAVY = {
    "verdict": "numpy scipy.stats scipy.special yaml pydantic hypothesis rich.table",
    "measure": "numpy scipy.stats yaml pydantic hypothesis zstandard",
    "store": "numpy scipy.stats yaml pydantic sqlalchemy.orm alembic.command typer",
    "expectations": "yaml pydantic duckdb great_expectations pyarrow.parquet typer",
}
#: Of the tests that run a changed function, those that take longer are not asked.
LONGEST_S = 1.0
#: A child may take this many seconds of processor time beyond some times what its tests need.
SPARE_S = 10.0
TIMES = 5.0
#: Exit codes of a child: it broke; the code of a function could not be exchanged.
FAULT, NOT_SWAPPED = 70, 72


@dataclass(frozen=True)
class Question:
    """A change, and the tests that may notice it, the quickest first, with their seconds."""

    change: Change
    tests: Mapping[str, float]


Answer = Callable[[Change, str], None]
"""Called with a change and the test that noticed it; "" when none did."""


def in_child(work: Callable[[], int], cpu_s: float | None = None) -> int:
    """Run `work` in a forked process; its exit code, below 0 the signal that ended it.

    With a limit of its processor time it is silent, and what it starts ends with it.
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = FAULT
        try:
            if cpu_s is not None:
                _limit(cpu_s)
            code = work()
        except BaseException as error:  # changed code may raise anything
            if cpu_s is None and not isinstance(error, KeyboardInterrupt):
                traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    try:
        _, status = os.waitpid(child, 0)
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM if cpu_s is None else signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        if cpu_s is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


def _limit(cpu_s: float) -> None:
    """A change may loop for ever, wait for ever, or fill the memory."""
    os.setpgid(0, 0)
    seconds = int(cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(10 * seconds)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30), used + (3 << 30)))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


class _Reports:
    """Notes the first failure."""

    def __init__(self) -> None:
        self.failed = ""

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


class _Collected(_Reports):
    """A pytest session that, instead of running its tests, answers questions."""

    def __init__(self, questions: Sequence[Question], answer: Answer, note: Path) -> None:
        super().__init__()
        self.questions, self.answer, self.note = questions, answer, note

    @pytest.hookimpl
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        _warm_up(session.items)
        functions: dict[str, list[FunctionType]] = {}
        caches = []
        gc.unfreeze()  # tests/conftest.py has frozen it, and frozen objects are not listed
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                functions.setdefault(thing.__code__.co_filename, []).append(thing)
            elif isinstance(thing, _lru_cache_wrapper) and _of_ours(thing.__wrapped__):
                caches.append(thing)
        gc.collect()
        gc.freeze()  # the children share this memory
        self._check_fork(items)
        killers: dict[str, Counter[str]] = {}
        for question in self.questions:
            change = question.change
            ranked = killers.setdefault(change.path, Counter())
            tests = sorted(question.tests, key=lambda x: (-ranked[x], question.tests[x]))
            chosen = [items[x] for x in tests if x in items]
            path = str(Path(change.path).absolute())
            swap = partial(exchange, functions.get(path, ()), change, path, caches)
            noticed = self._ask(chosen, SPARE_S + TIMES * sum(question.tests.values()), swap)
            if noticed is not None:
                ranked[noticed] += noticed in items
                self.answer(change, noticed)
        return True

    def _check_fork(self, items: Mapping[str, pytest.Item]) -> None:
        """Without a change the quickest test of each file and set of fixtures notices nothing."""
        seconds = {t: took for x in self.questions for t, took in x.tests.items() if t in items}
        kinds: dict[object, str] = {}
        for test in sorted(seconds, key=lambda x: -seconds[x]):
            fixtures = getattr(items[test], "fixturenames", ())
            kinds[items[test].path, *sorted(fixtures)] = test
        cpu_s = 3 * SPARE_S + TIMES * sum(seconds[test] for test in kinds.values())
        if broken := self._ask([items[test] for test in kinds.values()], cpu_s, lambda: True):
            print(f"make mutants: without any change, in a forked process: {broken}", flush=True)
            pytest.exit("", 3)  # no reporter prints a reason

    def _ask(
        self, items: Sequence[pytest.Item], cpu_s: float, swap: Callable[[], bool]
    ) -> str | None:
        """The test that noticed, "" where none did, None where the code cannot be exchanged."""
        self.note.write_text("")
        base = (self.note.parent / "tmp").absolute()  # tmp_path refuses a relative one

        def work() -> int:
            if not swap():
                return NOT_SWAPPED
            base.mkdir(exist_ok=True)
            for item in items:
                item.config._tmp_path_factory._basetemp = base  # type: ignore[attr-defined]
                runtestprotocol(item, nextitem=item.session, log=True)  # type: ignore[arg-type]
                if self.failed:
                    self.note.write_text(self.failed)
                    return 1
            return 0

        code = in_child(work, cpu_s)
        shutil.rmtree(base, ignore_errors=True)
        if code == NOT_SWAPPED:
            return None
        return "" if code == 0 else self.note.read_text() or f"ended with {code}"


def _calm_hypothesis() -> None:
    """An example that fails is enough: it is not made smaller, and not kept."""
    from hypothesis import Phase, settings

    settings.register_profile(
        "changed code", database=None, phases=(Phase.explicit, Phase.generate), derandomize=True
    )
    settings.load_profile("changed code")


def _warm_up(items: Sequence[pytest.Item]) -> None:
    """Make once what all tests share: the empty database.

    Not the events: DuckDB has threads, which a forked process has not.
    """
    wanted = {"empty_sqlite"}
    for item in items:
        shared = wanted & set(getattr(item, "fixturenames", ()))
        if shared:
            wanted -= shared
            runtestprotocol(item, nextitem=item.session, log=False)  # type: ignore[arg-type]


def _codes(code: CodeType) -> Generator[CodeType, None, None]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _codes(const)


def _of_ours(function: object) -> bool:
    """Whether it is of a room that is changed, or of its tests."""
    code = getattr(function, "__code__", None)
    parts = Path(code.co_filename).parts if code is not None else ()
    return bool({"tests", *HEAVY} & set(parts)) and "site-packages" not in parts


def exchange(
    functions: Sequence[FunctionType],
    change: Change,
    path: str,
    caches: Sequence[_lru_cache_wrapper[Any]] = (),
) -> bool:
    """Give the functions of the file the code of the changed file; False where that cannot be.

    What was remembered in ``caches`` is forgotten: it may be of the code before the change.
    """
    for cache in caches:
        cache.cache_clear()
    new: dict[str, list[CodeType]] = {}
    for code in _codes(compile(change.after, path, "exec", dont_inherit=True)):
        new.setdefault(code.co_qualname, []).append(code)
    old: dict[str, list[FunctionType]] = {}
    for function in functions:
        old.setdefault(function.__code__.co_qualname, []).append(function)
    try:
        for name, mine in old.items():
            lines = sorted({x.__code__.co_firstlineno for x in mine})
            codes = sorted(new[name], key=lambda x: x.co_firstlineno)
            if len(lines) == len(codes):  # not a lambda within another function
                for function, place in [(x, lines.index(x.__code__.co_firstlineno)) for x in mine]:
                    function.__code__ = codes[place]
    except (ValueError, KeyError):  # another number of free variables
        return False
    return True


def ask_swapped(
    files: Sequence[str], questions: Sequence[Question], answer: Answer, directory: Path
) -> int:
    """Answer questions on changes in functions: one session for all."""

    def work() -> int:
        _calm_hypothesis()
        plugin = _Collected(questions, answer, directory / "noticed")
        base = f"--basetemp={directory / 'shared'}"
        return int(pytest.main(["-s", *ARGUMENTS, *CHOSEN, base, *files], plugins=[plugin]))

    return in_child(work)


def ask_imported(question: Question, directory: Path) -> str:
    """Answer a question on a change outside of functions: everything is imported again."""
    path = str(Path(question.change.path).absolute())
    note = directory / "noticed"
    note.write_text("")

    class _Noting(_Reports):
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            super().pytest_runtest_logreport(report)
            if self.failed:
                note.write_text(self.failed)
                os._exit(1)

        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            items[:] = [item for item in items if item.nodeid in question.tests]
            items.sort(key=lambda item: question.tests[item.nodeid])

    def work() -> int:
        _calm_hypothesis()
        original = importlib.machinery.SourceFileLoader.get_code

        def get_code(self: importlib.machinery.SourceFileLoader, name: str) -> CodeType | None:
            if self.path == path:
                return compile(question.change.after, path, "exec", dont_inherit=True)
            return original(self, name)

        importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
        base = f"--basetemp={directory / 'imported'}"
        seconds: dict[str, float] = defaultdict(float)
        for test, took in question.tests.items():
            seconds[test.partition("::")[0]] += took
        # One file after the other, the quickest first: most changes are noticed there.
        codes = (
            int(pytest.main([*ARGUMENTS, *CHOSEN, base, file], plugins=[_Noting()]))
            for file in sorted(seconds, key=lambda x: seconds[x])
        )
        return next(filter(None, codes), 0)

    code = in_child(work, 3 * SPARE_S + TIMES * sum(question.tests.values()))
    shutil.rmtree(directory / "imported", ignore_errors=True)
    return "" if code == 0 else note.read_text() or f"ended with {code}"


def measure(
    files: Sequence[str],
    ranges: Mapping[str, Mapping[str, tuple[int, int]]],
    out: Path,
    left_out: Sequence[str],
) -> None:
    """Run tests once, but for those `left_out`, and write as JSON what they ran, and which failed.

    {"ran": {test: [seconds, functions]}, "failed": [test]}; nothing has been changed yet.
    """
    seconds: dict[str, float] = {}
    failed: list[str] = []
    paths = {str(Path(path).absolute()): path for path in ranges}
    measured = coverage.Coverage(data_file=None, include=[*paths], config_file=False)

    class _Timed:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
            measured.switch_context(item.nodeid)
            start = time.process_time()
            result = yield
            seconds[item.nodeid] = round(time.process_time() - start, 4)
            return result

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    def work() -> int:
        measured.start()
        base = f"--basetemp={out.parent / 'measured'}"
        less = [part for test in left_out for part in ("--deselect", test)]
        code = int(pytest.main([*ARGUMENTS, *CHOSEN, *less, base, *files], plugins=[_Timed()]))
        measured.stop()
        found = _functions_by_test(measured.get_data(), paths, ranges)
        ran = {test: [took, sorted(found.get(test, ()))] for test, took in seconds.items()}
        out.write_text(json.dumps({"ran": ran, "failed": failed}))
        return code

    out.unlink(missing_ok=True)
    in_child(work)
    if not out.exists():
        raise SystemExit("make mutants: the process of the tests broke")


def _functions_by_test(
    data: coverage.CoverageData,
    paths: Mapping[str, str],
    ranges: Mapping[str, Mapping[str, tuple[int, int]]],
) -> dict[str, set[str]]:
    """The "file:function"s that each test ran a line of."""
    found: dict[str, set[str]] = {}
    for path, name in paths.items():
        lines = data.contexts_by_lineno(path)
        for function, (first, last) in ranges[name].items():
            for test in {x for line in range(first, last + 1) for x in lines.get(line, ())}:
                found.setdefault(test, set()).add(f"{name}:{function}")
    return found
