"""How a repetition of an application of a person's own may fail, and what the line says."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nexmark.config.application_models import JobApplication
from nexmark.measure.log_follower import LogFollower
from nexmark.measure.streaming_log import StreamingLog, StreamingLogError
from nexmark.night import followed_application
from nexmark.night.followed_application import Driver as RealDriver
from nexmark.night.followed_application import Following, is_done

STREAM = "org.apache.spark.sql.streaming.StreamingQueryListener$"
RUN = "29e3535a-f861-401e-b34e-46fb2742e2b0"
STARTED = {"Event": "SparkListenerApplicationStart", "App ID": "app-1"}
ENDED = {"Event": "SparkListenerApplicationEnd"}
QUERY = {"Event": f"{STREAM}QueryStartedEvent", "runId": RUN, "id": RUN, "timestamp": "now"}
WORKER = (Path(__file__).parents[2] / "data/worker_errors/spark-4.3.0-noop.txt").read_text()


class Log(LogFollower):
    """An event log that has these events, one with each call."""

    def __init__(self, log: StreamingLog, *events: Mapping[str, Any]) -> None:
        super().__init__(Path("/none"), log.handlers)
        self.left = list(events)

    def read(self) -> None:
        """Handle the next event."""
        if self.left:
            event = self.left.pop(0)
            self.handlers[event["Event"]](event)


@dataclass
class Driver:
    """A driver; `asked` are the signals that it was sent."""

    asked: list[str] = field(default_factory=list)

    def stop(self) -> None:
        self.asked.append("SIGTERM")

    def kill(self) -> None:
        self.asked.append("SIGKILL")


def following(*events: Mapping[str, Any], ends: str = "itself") -> tuple[Following, Driver]:
    log, driver = StreamingLog(), Driver()
    application = JobApplication(main="orders.py", ends=ends)
    given: Any = driver
    made = Following(
        "orders rep-1",
        ends,
        partial(is_done, application),
        log,
        Log(log, *events),
        given,
        print,
        print,
    )
    return made, driver


def wait_for(signal: str, driver: Driver) -> None:
    """Wait until a driver is sent a signal; fail after ten seconds."""
    deadline = time.monotonic() + 10
    while signal not in driver.asked:
        assert time.monotonic() < deadline, f"no {signal}"
        time.sleep(0.01)


def checked(made: Following) -> str:
    """Return what a repetition that has ended says of its failure."""
    while made.reader.left:  # type: ignore[attr-defined]
        made.reader.read()
    with pytest.raises(StreamingLogError) as error:
        made.check()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_an_application_that_ends_as_it_should_has_no_failure() -> None:
    made, driver = following(STARTED, ENDED)
    with made.beside():
        made.reader.read()
    made.check()
    assert driver.asked == ["SIGKILL"]  # nothing of it is left behind


def test_one_that_wrote_no_event_log_is_told_what_makes_one() -> None:
    made, _ = following()
    said = "orders rep-1: wrote no event log; leave spark.eventLog and spark.master to spark-submit"
    assert checked(made).startswith(said)


def test_one_that_did_not_stop_its_context_has_no_whole_log() -> None:
    made, _ = following(STARTED)
    assert "ended and did not stop Spark, so its event log is not whole" in checked(made)


@pytest.mark.parametrize(
    ("exception", "said"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero.\n\tat a.B.c(B.scala:1)", "[DIVIDE_BY_ZERO] Division"),
        (WORKER, "ZeroDivisionError: integer division or modulo by zero (mine.py:6)"),
    ],
)
def test_a_stream_that_failed_is_named_by_its_cause(exception: str, said: str) -> None:
    """The application itself may end well, as one does that does not wait for its streams."""
    ended = {"Event": f"{STREAM}QueryTerminatedEvent", "runId": RUN, "exception": exception}
    made, _ = following(STARTED, QUERY, ended, ENDED)
    assert checked(made).startswith(f"orders rep-1: a streaming query failed: {said}")


def test_a_stream_that_was_stopped_did_not_fail() -> None:
    ended = {"Event": f"{STREAM}QueryTerminatedEvent", "runId": RUN, "exception": "interrupted"}
    made, driver = following(STARTED, QUERY, ended, ENDED, ends="after 1 batch")
    with made.beside():
        assert made.stopped.wait(10)
    made.reader.read()
    made.check()
    assert driver.asked == ["SIGTERM", "SIGKILL"]


def test_one_that_ignores_sigterm_is_killed_and_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_application, "_GRACE_S", 0.1)
    ended = {"Event": f"{STREAM}QueryTerminatedEvent", "runId": RUN}
    made, driver = following(STARTED, QUERY, ended, ends="after 1 batch")
    with made.beside():
        assert made.stopped.wait(10)
        wait_for("SIGKILL", driver)  # nothing else ends it
    assert driver.asked[:2] == ["SIGTERM", "SIGKILL"]
    assert "did not end within 0 s of SIGTERM, so its event log is not whole" in checked(made)


def test_what_stops_the_following_ends_the_application(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would run on until its task is over, and nobody would say why."""
    made, driver = following(STARTED)

    def broken() -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(made.reader, "read", broken)
    with made.beside():
        wait_for("SIGKILL", driver)
    with pytest.raises(OSError, match="the disk is gone"):
        made.check()


def test_only_processes_of_this_repetition_are_signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    signals: list[tuple[int, int]] = []

    def with_word(mark: str, word: str) -> list[Any]:
        asked.append((mark, word))
        return [SimpleNamespace(pid=len(asked))]

    monkeypatch.setattr(followed_application, "with_word", with_word)
    monkeypatch.setattr(
        followed_application.os, "kill", lambda pid, number: signals.append((pid, number))
    )
    driver = RealDriver("mark", ("label=a", "orders.py"))
    driver.stop()
    driver.kill()
    assert asked == [("mark", "label=a"), ("mark", "label=a"), ("mark", "orders.py")]
    assert signals == [(1, 15), (2, 9), (3, 9)]
