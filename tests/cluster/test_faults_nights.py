"""Faults in mid-query: that query is right or INVALID with the reason, and the others go on.

Three nights that follow each other, since each has to clean up after the other:

1. is killed whole in mid-query;
2. begins with the reap of that; each of its queries meets a fault, and the last host that is lost
   never comes back (`make test-cluster FAULTS=all` alone has this night);
3. begins with the reap of those; a disk is full in mid-query, and /tmp of a host all the time; it
   also runs a job over files of a person's own, and ends green.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from nexmark.config import KNOWN_QUERIES
from nexmark.engines import Build
from tests.cluster.nights import WAIT_S, FollowedNight, Outcome, kill_process
from tests.cluster.testbed import Testbed
from tests.nights.files_job import FILES, ROWS, write_job
from tests.nights.files_job import JOB as OWN_FILES
from tests.nights.orders_job import write_jobs
from tests.site import ENGINE, Site, run_of
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3000)]

WORKER, LOST = "nexmark02", "nexmark03"
EXECUTOR = r"CoarseGrainedExecutorBackend"
WORKER_DAEMON = r"deploy\.worker\.Worker"
SAMPLER = r"cpu_sampler\.py"
Record = Callable[[str, object], None]


@dataclass(frozen=True)
class Fault:
    """What is done while `query` runs, and what may come of it: `statuses` and `reason`.

    `at_once`: as soon as its executors are started, before they have a task. `dropped`: why its
    first measurement has to be dropped and the repetition measured again. `mend` is done when the
    query has ended.
    """

    query: str
    name: str
    inject: Callable[[FollowedNight, Testbed], object]
    statuses: tuple[str, ...]
    reason: str = ""
    at_once: bool = False
    dropped: str = ""
    mend: Callable[[FollowedNight, Testbed], object] | None = None


def kill_executor(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, EXECUTOR)


def kill_worker(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, WORKER_DAEMON)


def kill_driver(night: FollowedNight, testbed: Testbed) -> None:
    kill_process(night.driver("q3"))


def kill_sampler(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, SAMPLER)


def freeze_executor(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, EXECUTOR, signal.SIGSTOP)


def stall_hosts(night: FollowedNight, testbed: Testbed) -> None:
    """The executor of one host stands still, then executor and sampler of the other one."""
    everything = rf"{EXECUTOR}|{SAMPLER}"
    assert testbed.kill(WORKER, EXECUTOR, signal.SIGSTOP)
    time.sleep(2)  # by now it has a task
    assert testbed.kill(LOST, everything, signal.SIGSTOP)
    time.sleep(6)
    for host in (LOST, WORKER):
        testbed.kill(host, everything, signal.SIGCONT)


def stop_worker(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, WORKER_DAEMON, signal.SIGSTOP)


def continue_worker(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, WORKER_DAEMON, signal.SIGCONT)


def move_clock(night: FollowedNight, testbed: Testbed) -> None:
    testbed.set_clock(WORKER, 5)
    time.sleep(3)  # readings of the sampler later
    testbed.set_clock(WORKER, 0)


def stop_sampler(night: FollowedNight, testbed: Testbed) -> None:
    assert testbed.kill(WORKER, SAMPLER, signal.SIGSTOP)


def kill_sshd(night: FollowedNight, testbed: Testbed) -> None:
    testbed.restart_sshd(WORKER)


def pull_the_cable_for_10_s(night: FollowedNight, testbed: Testbed) -> None:
    testbed.link_down(WORKER)
    time.sleep(10)
    testbed.link_up(WORKER)


def pull_the_cable(night: FollowedNight, testbed: Testbed) -> None:
    testbed.link_down(LOST)


#: In the order in which a night runs their queries; a minute or two each.
FAULTS = (
    Fault("q0", "executor killed", kill_executor, ("invalid",), "2 executors were asked for"),
    Fault("q1", "link down for 10 s", pull_the_cable_for_10_s, ("ok", "invalid"), "executor"),
    Fault("q2", "worker killed", kill_worker, ("invalid",), "executor"),
    Fault("q3", "driver killed", kill_driver, ("ok",)),
    Fault("q10", "worker stopped", stop_worker, ("ok",), mend=continue_worker),
    Fault("q11", "clock of a host jumps", move_clock, ("invalid",), f"clock of host {WORKER} was"),
    Fault("q12", "sampler stopped", stop_sampler, ("invalid",), f"samples of host {WORKER} end"),
    Fault(
        *("q13", "executor frozen before its first task", freeze_executor, ("ok",)),
        at_once=True,
        dropped=rf"an executor on host {WORKER} ran 0 of \d+ tasks",
    ),
    Fault("q14", "sampler killed", kill_sampler, ("invalid",), f"samples of host {WORKER} end"),
    Fault(
        *("q18", "hosts stalled for 6 s", stall_hosts, ("ok",)),
        dropped=rf"on host {WORKER} used no CPU for .*host {LOST} gave no sample for",
    ),
    Fault("q21", "sshd killed", kill_sshd, ("ok", "invalid"), f"host {WORKER}"),
    Fault("q22", "host lost for good", pull_the_cable, ("invalid",), f"host {LOST}"),
)
AFTER_THE_LOSS = "q23"
ALL = bool(os.environ.get("NEXMARK_ALL_FAULTS"))
"""Whether there is the second night."""


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


def meet(fault: Fault, night: FollowedNight, testbed: Testbed) -> float:
    """Let a query meet its fault; the seconds until it is recorded."""
    if fault.at_once:
        started = partial(night.has_executor, testbed, WORKER, fault.query)
        night.wait(started, f"{fault.query} has no executor")
    else:
        night.wait_running(f"{fault.query}-rep-1")
    begin = time.monotonic()
    fault.inject(night, testbed)
    night.wait_line(rf"\] {fault.query} +repetition 1/1[ :]")
    if fault.mend:
        fault.mend(night, testbed)
    return time.monotonic() - begin


@pytest.fixture(scope="module")
def faulty(site: Site, session_testbed: Testbed, killed: FollowedNight) -> Faulty:
    queries = [fault.query for fault in FAULTS]
    seconds = {}
    try:
        with (
            session_testbed.clock_that_jumps(WORKER),
            FollowedNight(site, session_testbed, *queries, AFTER_THE_LOSS) as night,
        ):
            for fault in FAULTS:
                seconds[fault.query] = meet(fault, night, session_testbed)
            code = night.end()
    finally:
        session_testbed.link_up(LOST)
        session_testbed.link_up(WORKER)
    return Faulty(night, seconds, night.outcomes(), code)


@pytest.fixture(scope="module")
def earlier(
    request: pytest.FixtureRequest, session_testbed: Testbed, killed: FollowedNight
) -> None:
    """The nights before the last one.

    The small disk of the last one would hide from its reap what the killed one has left below it.
    """
    if ALL:
        request.getfixturevalue("faulty")
        return
    wait_for(partial(is_idle, session_testbed, WORKER), within_s=WAIT_S)
    session_testbed.run(
        WORKER, "find", session_testbed.cluster.local_dir, "-mindepth", "1", "-delete"
    )


def is_idle(testbed: Testbed, host: str) -> bool:
    """Whether nothing of a night runs on a host."""
    return all("sshd" in process.command for process in testbed.processes(host))


@pytest.fixture(scope="module")
def last(
    site: Site,
    session_testbed: Testbed,
    earlier: None,
    tmp_path_factory: pytest.TempPathFactory,
    engine_build: Callable[[str], Build],
) -> FollowedNight:
    """The night after the others; the disk is full while q5 runs, and is not when it is retried."""
    files = tmp_path_factory.mktemp("files")
    write_jobs(site.conf, files, engine_build(ENGINE), "secret")  # with the JAR of the job
    write_job(site.conf, files / "spending")
    session_testbed.up()
    local = session_testbed.cluster.local_dir
    with (
        session_testbed.small_disk(WORKER, "3g", local),
        session_testbed.full_disk(LOST, "/tmp"),
        FollowedNight(site, session_testbed, "q5", OWN_FILES) as night,
    ):
        night.wait_running("q5-rep-1")
        session_testbed.fill_disk(WORKER, local)
        night.wait_line(r"^q5\.repetition\[0\]: failed, is tried again|repetition 1/1[ :]")
        session_testbed.grow_disk(WORKER, local, "3g")
        night.end()
    return night


@pytest.mark.fault("the night's process killed", outcome="its reaper ends what is left")
@pytest.mark.usefixtures("last")
def test_a_killed_night_is_cleaned_up_by_its_reaper(killed: FollowedNight, site: Site) -> None:
    assert killed.process.returncode == -9
    log = (site.home / "logs" / "reaper.log").read_text()
    for left in ("Master --host", "/worker spark://"):  # the driver may have ended by then
        assert re.search(rf"ended nexmark0\d: .*{left}", log)


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, marks=pytest.mark.fault(f.name), id=f"{f.query}-{f.name}") for f in FAULTS],
)
@pytest.mark.long
@pytest.mark.usefixtures("last")
def test_a_query_under_a_fault_is_right_or_told(
    faulty: Faulty, fault: Fault, record_property: Record
) -> None:
    found = faulty.outcomes[fault.query]
    again = faulty.night.line(rf"^{fault.query} rep-1: .*; it is measured again") or ""
    record_property("outcome", f"{'measured again: ' * bool(again)}{told(found)}")
    record_property("seconds", f"{faulty.seconds[fault.query]:.1f}")
    assert re.search(fault.dropped, again), again
    assert found.status in fault.statuses, found
    if found.status == "ok":
        assert found.digest  # it matches the verified rows, otherwise the query would be INVALID
        assert found.verdict == "NO BASELINE"
    else:
        assert fault.reason in (found.reason or "")
        assert found.verdict == "INVALID"


@pytest.mark.fault("a query after the loss of a host")
@pytest.mark.long
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


@pytest.mark.fault("/tmp of a host full")
def test_a_host_without_room_in_tmp(last: FollowedNight, record_property: Record) -> None:
    found = last.outcomes()["q5"]
    record_property("outcome", told(found))
    assert found.status == "ok", found


def test_a_job_over_own_files_is_proven_on_hosts(last: FollowedNight, site: Site) -> None:
    """Its files are laid out here, and every host reads them."""
    assert last.outcomes()[OWN_FILES].status == "ok"
    with site.store() as store:
        (row,) = store.repetitions(run_of(last.text), [OWN_FILES])
    assert row.events == FILES * ROWS
    assert last.line(rf"{OWN_FILES} verify: {row.output_rows} rows equal the reference")


@pytest.mark.fault("the night after", outcome="green")
def test_the_night_after_is_green(last: FollowedNight) -> None:
    assert last.process.returncode == 0, last.text
    if ALL:
        assert last.line(r"^reap: ended what an earlier night left: .*") is not None


def test_a_night_on_three_hosts_is_measured_on_both_workers(
    site: Site, last: FollowedNight
) -> None:
    with site.store() as store:
        rows = store.repetitions(run_of(last.text))
        assert [row.query for row in rows] == ["q5", OWN_FILES]
        for row in rows:
            series = {each.host: each for each in store.sample_series(row.id)}
            assert {"nexmark01", "nexmark02", "nexmark03"} < set(series)
            assert row.cpu_executors_s
            assert row.cpu_driver_s


def test_what_the_harness_costs_is_reported_and_small(last: FollowedNight) -> None:
    line = last.line(r"harness: .* [0-9.]+ s per timed repetition")
    assert line, last.text
    (seconds,) = re.findall(r"([0-9.]+) s per timed repetition", line)
    assert float(seconds) < 90  # 30 s at rest; tests run beside other load


def test_no_secret_is_in_a_log_or_an_xcom(site: Site, last: FollowedNight) -> None:
    """`spark.authenticate.secret` is 64 hexadecimal digits; its name may be there, it may not."""
    files = [
        path
        for pattern in ("runs/**/*", "logs/*", "airflow/logs/**/*", "airflow/airflow.db")
        for path in site.home.glob(pattern)
        if path.is_file()
    ]
    assert len(files) > 20
    secret = re.compile(rb"authenticate\.secret['\"=: ]+[0-9a-f]{64}")
    assert [path for path in files if secret.search(path.read_bytes())] == []
    assert list((site.home / "clusters" / "namespaces").rglob("secret")) == []


def told(outcome: Outcome) -> str:
    """The outcome of a query, for the matrix."""
    if outcome.status == "ok":
        return "right, measured"
    return f"{outcome.verdict}: {outcome.reason}"[:100]
