"""Faults in mid-query: that query is right or INVALID with the reason, and the others go on.

Three nights that follow each other, since each has to clean up after the other:

1. is killed whole in mid-query;
2. begins with the reap of that; each of its queries meets a fault, and the last host that is lost
   never comes back;
3. begins with the reap of that; a disk is full in mid-query; it ends green.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from nexmark.config import KNOWN_QUERIES
from tests.cluster.nights import FollowedNight, Outcome, kill_process
from tests.cluster.testbed import Testbed
from tests.site import Site

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WORKER, LOST = "nexmark02", "nexmark03"
EXECUTOR = r"CoarseGrainedExecutorBackend"
Record = Callable[[str, object], None]


@dataclass(frozen=True)
class Fault:
    """What is done while `query` runs, and what may come of it: `statuses` and `reason`."""

    query: str
    name: str
    inject: Callable[[FollowedNight, Testbed], object]
    statuses: tuple[str, ...]
    reason: str = ""


def kill_executor(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, EXECUTOR)


def kill_worker(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, r"deploy\.worker\.Worker")


def kill_driver(night: FollowedNight, testbed: Testbed) -> None:
    kill_process(night.driver("q3"))


def kill_sampler(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, r"cpu_sampler\.py")


def kill_sshd(night: FollowedNight, testbed: Testbed) -> None:
    testbed.restart_sshd(WORKER)


def pull_the_cable_for_10_s(night: FollowedNight, testbed: Testbed) -> None:
    testbed.link_down(WORKER)
    time.sleep(10)
    testbed.link_up(WORKER)


def pull_the_cable(night: FollowedNight, testbed: Testbed) -> None:
    testbed.link_down(LOST)


FAULTS = (
    Fault("q0", "executor killed", kill_executor, ("invalid",), "2 executors were asked for"),
    Fault("q1", "link down for 10 s", pull_the_cable_for_10_s, ("ok", "invalid"), "executor"),
    Fault("q2", "worker killed", kill_worker, ("invalid",), "executor"),
    Fault("q3", "driver killed", kill_driver, ("ok",)),
    Fault("q14", "sampler killed", kill_sampler, ("invalid",), f"samples of host {WORKER} end"),
    Fault("q21", "sshd killed", kill_sshd, ("ok", "invalid"), f"host {WORKER}"),
    Fault("q22", "host lost for good", pull_the_cable, ("invalid",), f"host {LOST}"),
)
AFTER_THE_LOSS = "q23"


@pytest.fixture(scope="module")
def killed(site: Site, session_testbed: Testbed) -> FollowedNight:
    """A night that is killed while its first query runs, the verification run of q0."""
    with FollowedNight(site, session_testbed, "q0") as night:
        night.wait_running("q0-verify", batches=1)
    return night


@dataclass
class Faulty:
    """The second night: seconds from a fault to the record of its query, by query."""

    night: FollowedNight
    seconds: dict[str, float]
    outcomes: dict[str, Outcome]
    code: int


@pytest.fixture(scope="module")
def faulty(site: Site, session_testbed: Testbed, killed: FollowedNight) -> Faulty:
    queries = [fault.query for fault in FAULTS]
    seconds = {}
    try:
        with FollowedNight(site, session_testbed, *queries, AFTER_THE_LOSS) as night:
            for fault in FAULTS:
                night.wait_running(f"{fault.query}-rep-1")
                begin = time.monotonic()
                fault.inject(night, session_testbed)
                night.wait_line(rf"\] {fault.query} +repetition 1/1: ")
                seconds[fault.query] = time.monotonic() - begin
            code = night.end()
    finally:
        session_testbed.link_up(LOST)
        session_testbed.link_up(WORKER)
    return Faulty(night, seconds, night.outcomes(), code)


@pytest.fixture(scope="module")
def last(site: Site, session_testbed: Testbed, faulty: Faulty) -> Iterator[FollowedNight]:
    """The night after the loss; the disk is full while q5 runs, and is not when it is retried."""
    session_testbed.up()
    local = session_testbed.cluster.local_dir
    with (
        session_testbed.small_disk(WORKER, "3g", local),
        FollowedNight(site, session_testbed, "q5") as night,
    ):
        night.wait_running("q5-rep-1")
        session_testbed.fill_disk(WORKER, local)
        night.wait_line(r"^q5\.repetition\[0\]: failed, is tried again|repetition 1/1: ")
        session_testbed.grow_disk(WORKER, local, "3g")
        night.end()
        yield night


@pytest.mark.fault("the night's process killed", outcome="the next night's reap ends what is left")
@pytest.mark.usefixtures("last")
def test_a_killed_night_is_cleaned_up_by_the_next(killed: FollowedNight, faulty: Faulty) -> None:
    assert killed.process.returncode == -9
    for left in ("Master --host", "/worker spark://"):  # the driver may have ended by then
        assert faulty.night.line(rf"^reap: ended what an earlier night left: .*{left}")


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, marks=pytest.mark.fault(f.name), id=f"{f.query}-{f.name}") for f in FAULTS],
)
@pytest.mark.usefixtures("last")
def test_a_query_under_a_fault_is_right_or_told(
    faulty: Faulty, fault: Fault, record_property: Record
) -> None:
    found = faulty.outcomes[fault.query]
    record_property("outcome", told(found))
    record_property("seconds", f"{faulty.seconds[fault.query]:.1f}")
    assert found.status in fault.statuses, found
    if found.status == "ok":
        assert found.digest  # that of the very rows that were verified, else it were INVALID
        assert found.verdict == "CALIBRATING"
    else:
        assert fault.reason in (found.reason or "")
        assert found.verdict == "INVALID"


@pytest.mark.fault("a query after the loss of a host")
@pytest.mark.usefixtures("last")
def test_without_a_host_the_next_query_is_missing_and_the_night_ends(
    faulty: Faulty, record_property: Record
) -> None:
    found = faulty.outcomes[AFTER_THE_LOSS]
    record_property("outcome", told(found))
    assert found.status == "failed"
    assert f"host {LOST}: " in (found.reason or "")
    assert found.verdict == "MISSING"
    assert faulty.code == 1
    verdicts = {query: each.verdict for query, each in faulty.outcomes.items()}
    invalid = [query for query in KNOWN_QUERIES if verdicts.get(query) == "INVALID"]
    line = f"NIGHT FAILED: {len(invalid)} invalid ({', '.join(invalid)}); 1 missing (q23)"
    assert faulty.night.line(re.escape(line))
    assert "No such file" not in faulty.night.text  # the samples of the others are fetched once


@pytest.mark.fault("disk of a host full in mid-query")
def test_a_disk_that_is_full_for_a_while(last: FollowedNight, record_property: Record) -> None:
    found = last.outcomes()["q5"]
    failed = last.line(r"^q5\.repetition\[0\]: failed, is tried again") or ""
    record_property("outcome", f"{'retried, ' if failed else ''}{told(found)}")
    assert found.status == "ok", found
    assert "No space left" in failed or not failed


@pytest.mark.fault("the night after", outcome="reaps what the lost host had; green")
def test_the_night_after_is_green(last: FollowedNight) -> None:
    assert last.process.returncode == 0, last.text
    assert last.line(r"^reap: ended what an earlier night left: .*") is not None


def told(outcome: Outcome) -> str:
    """The outcome of a query, for the matrix."""
    if outcome.status == "ok":
        return "right, measured"
    return f"{outcome.verdict}: {outcome.reason}"[:100]
