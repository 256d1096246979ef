"""Checks the outputs of verification runs against the reference, also while others still run.

    <run directory>/<query>/verify/verification.json    of a query that was checked early

A night's verification runs leave a core idle now and then, so the task that waits for them checks
each query as soon as it is done. The task `expectations` of the query then takes what was found.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.night.night_progress import say
from nexmark.night.plan import Night
from nexmark.night.submission import VERIFY, verify_sink
from nexmark.night.verification import DONE, Verification, outcomes

if TYPE_CHECKING:
    from nexmark.expectations.suites import ValidationOutcome

_POLL_S = 0.5
_LOWEST = 19


def verify(night: Night, query: str) -> Verification:
    """Return the expectations' outcome on both outputs of the verification run."""
    from nexmark.expectations.suites import validate, validate_boundary

    docs, sink = night.directory / "data_docs", verify_sink(query)
    generated = _verification(
        lambda: validate(query, night.verified_dir(query), night.events_dir, docs, sink)
    )
    return generated.with_boundary(
        _verification(lambda: validate_boundary(query, night.boundary_dir(query), docs, sink))
    )


def result_line(query: str, verification: Verification) -> str:
    """One line on the outcome."""
    if not verification.success:
        return f"{query} is wrong: {' | '.join(verification.failures)}"
    rows, more = (verification.statistics.get(name) for name in ("rows", "boundary_rows"))
    return (
        f"{query} verify: {rows} rows, and {more} over the boundary events, equal the reference, "
        f"{verification.evaluated} expectations"
    )


@contextmanager
def checked_early(night: Night) -> Iterator[None]:
    """Check each query that is done within the context, and all of them if it ends well."""
    over, given_up = threading.Event(), threading.Event()
    thread = threading.Thread(target=_check_all, args=(night, over, given_up), daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        given_up.set()
        raise
    over.set()
    thread.join()


def take(night: Night, query: str) -> Verification | None:
    """The outcome that was found early, None without one; the next call finds none.

    So a task that is cleared in Airflow checks the query by itself.
    """
    found = Verification.read(_place(night, query))
    if found is not None:
        Verification.remove(_place(night, query))
    return found


def _place(night: Night, query: str) -> Path:
    """Where an early outcome is: every try of the run empties it."""
    return night.query_dir(query) / VERIFY


def _check_all(night: Night, over: threading.Event, given_up: threading.Event) -> None:
    """Check what is done until it is `over`, then the rest; at most one more once `given_up`.

    It takes only what CPU time the runs leave.
    """
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)
    left = [query for query in night.queries if Verification.read(_place(night, query)) is None]
    while left and not given_up.is_set():
        last = over.is_set()
        states = outcomes(night.directory)
        done = [query for query in left if states.get(query) == DONE]
        for query in done[:1]:
            verification = verify(night, query)
            verification.write(_place(night, query))
            say(result_line(query, verification))
            left.remove(query)
        if not done:
            if last:
                return
            over.wait(_POLL_S)


def _verification(check: "Callable[[], ValidationOutcome]") -> Verification:
    """The outcome of a check; wrong if it cannot be made."""
    from nexmark.expectations.contract import ExpectationsError

    try:
        outcome = check()
    except ExpectationsError as error:
        return Verification(success=False, failures=(str(error),))
    return Verification(
        success=outcome.success,
        failures=outcome.failures,
        evaluated=outcome.expectations_evaluated,
        statistics=outcome.statistics,
    )
