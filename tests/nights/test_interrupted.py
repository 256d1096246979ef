"""Nights that do not run to their end: refused before anything starts, interrupted, killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from nexmark_jobs.host.processes import marked, owned, owner_mark
from tests.site import DAG_ID, Site
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine", "spark-4.3"], "engine: unknown engine 'spark-4.3'; did you mean"),
        (["--queries", "q0,q77"], "queries: unknown query 'q77'; did you mean 'q7'?"),
        (["--workload", "tinny"], "workload: unknown workload 'tinny'; did you mean 'tiny'?"),
        (["--candidate", "latest"], "build 'latest': not known; write pypi:"),
        (["--candidate", "directory:/none"], "/none does not exist; correct the path"),
        (["--repetitions", "0"], "'0' is not a whole number from 1 to 100; correct it"),
    ],
)
def test_the_command_refuses_at_once_and_in_one_line(
    site: Site, options: list[str], says: str
) -> None:
    started = time.monotonic()
    night = site.night(*options)
    assert time.monotonic() - started < 20
    assert night.returncode == 2
    assert night.stdout == ""
    assert night.stderr.count("\n") == 1
    assert says in night.stderr


def test_ctrl_c_ends_everything_and_a_second_night_has_to_wait(site: Site) -> None:
    night = subprocess.Popen(
        site.command("--queries", "q0", "--repetitions", "30"),  # longer than the second one needs
        env=site.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert night.stdout is not None
    for line in night.stdout:
        if line.startswith("cluster local is up"):
            break
    # master, worker and the driver of dump_events
    wait_for(lambda: len(site.leftovers()) >= 3, within_s=60)
    second = site.night("--queries", "q0")
    assert second.returncode == 2
    assert f"cluster local: in use by {DAG_ID} run " in second.stderr
    night.send_signal(signal.SIGINT)
    rest = night.stdout.read()
    assert night.wait(timeout=60) == 130
    assert "interrupted: ending the night" in rest
    assert site.leftovers() == []


def test_of_two_nights_at_once_one_is_refused_and_the_other_leaves_nothing_when_killed(
    site: Site,
) -> None:
    nights = [
        subprocess.Popen(
            site.command("--queries", "q0", "--repetitions", "30"),
            env=site.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        wait_for(lambda: any(night.poll() is not None for night in nights), within_s=60)
        wait_for(lambda: len(site.leftovers()) >= 3, within_s=180)
        refused, goes_on = sorted(nights, key=lambda night: night.poll() is None)
        assert refused.wait() == 2
        assert refused.stderr is not None
        assert refused.stderr.read() == (
            f"cluster local: in use by {DAG_ID} (process {goes_on.pid}); "
            "wait until it has ended, or end it\n"
        )
        assert goes_on.poll() is None
        goes_on.kill()
        wait_for(lambda: not marked(f"{site.home}|"), within_s=60)  # its reaper, too
    finally:
        for night in nights:
            night.kill()
            night.communicate()


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_benchmark_that_is_ended_ends_the_master_that_it_just_starts(
    site: Site, number: signal.Signals, code: int
) -> None:
    """It runs nights as processes: killed with it, these could not end what they had started."""
    benchmark = subprocess.Popen(
        [
            *(sys.executable, "-m", "bench.detection", "--fresh", "--cause", "sort"),
            *("--workload", "tiny", "--pairs", "3", "--nights", "3"),
        ],
        env=site.environment,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    nights = replace(site, home=site.home / "detection" / "home")
    mark = owner_mark(nights.home, "local-baseline")
    try:
        wait_for(lambda: bool(owned(mark)) or benchmark.poll() is not None, within_s=400)
        os.killpg(benchmark.pid, number)  # as a terminal does
        said = benchmark.communicate(timeout=60)[0]
        assert benchmark.returncode == code, said
        if number == signal.SIGINT:
            assert "interrupted: the same command goes on where it was" in said
        else:
            wait_for(lambda: not nights.leftovers(), within_s=60)
        assert nights.leftovers() == []
    finally:
        nights.stop()
