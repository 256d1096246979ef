"""Commands on hosts over SSH: what comes back, what is bounded, and what is refused."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nexmark.cluster.hosts.host import Host, on_all
from nexmark.cluster.hosts.ssh import HostError, HostUnreachable
from nexmark_jobs.host import facts, processes
from tests.cluster.testbed import Testbed

WORKER = "nexmark02"
Connect = Callable[..., Host]


@pytest.fixture
def connect(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """connect(NAME, key=value, ...): a host, by its connection with these fields and extras."""
    opened: list[Host] = []

    def to(name: str = WORKER, host: str | None = None, **extra: Any) -> Host:
        connection_id = testbed.cluster.hosts[name].connection
        content = testbed.connections[connection_id]
        merged = {k: v for k, v in {**content["extra"], **extra}.items() if v is not None}
        content = {**content, "host": host or content["host"], "extra": merged}
        monkeypatch.setenv(f"AIRFLOW_CONN_{connection_id.upper()}", json.dumps(content))
        opened.append(Host(name, connection_id, testbed.cluster.python))
        return opened[-1]

    yield to
    for host in opened:
        host.close()


def later(delay_s: float, function: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(delay_s, function)
    timer.start()
    return timer


def test_words_of_a_command_arrive_as_they_are(connect: Connect) -> None:
    words = ["a b", "'; rm -rf /; '", "$(id)", "`id`", "line\nline", "é", ""]
    output = connect().run(["printf", "<%s>", *words], timeout_s=10)
    assert output == "".join(f"<{word}>" for word in words)
    with pytest.raises(HostError, match="NUL"):
        connect().run(["echo", "a\0b"], timeout_s=10)


def test_input_of_any_length_arrives_whole(connect: Connect) -> None:
    chunks = (bytes([n % 256]) * 100_003 for n in range(200))
    assert connect().run(["wc", "-c"], timeout_s=30, stdin=chunks).strip() == "20000600"


def test_a_program_runs_on_the_host(connect: Connect) -> None:
    host = connect()
    mark = "test_hosts|cluster"
    request = {"command": ["sleep", "71"], "environment": {}, "mark": mark, "log": "/dev/null"}
    try:
        started = host.call(processes, {"do": "start", **request}, timeout_s=20)
        host.close()  # what was started outlives the connection
        found = host.call(processes, {"do": "owned", "mark": mark}, timeout_s=20)["processes"]
        assert [x["pid"] for x in found] == [started["pid"]]
    finally:
        done = host.call(processes, {"do": "end", "mark": mark, "grace_s": 5}, timeout_s=20)
    assert [x["command"] for x in done["ended"]] == ["sleep 71"]
    assert done["left"] == []


def test_a_failure_is_one_line_with_the_last_words(connect: Connect) -> None:
    host = connect()
    with pytest.raises(HostError, match=rf"^host {WORKER}: sh: second$"):
        host.run(["sh", "-c", "echo first >&2; echo second >&2; exit 3"], timeout_s=10)
    with pytest.raises(HostError, match=r"No such file or directory; correct the paths"):
        host.run(["/no/such/program"], timeout_s=10)
    with pytest.raises(HostError, match="did not end within 1 s"):
        host.run(["sleep", "72"], timeout_s=1)
    assert "sleep 72" not in host.run(["ps", "-eo", "args"], timeout_s=10)


def test_a_command_that_cannot_be_ended_there_is_given_up_here(
    connect: Connect, testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexmark.cluster.hosts.host._MARGIN_S", 2.0)
    host = connect()
    host.run(["true"], timeout_s=10)
    stop = later(0.5, lambda: testbed.kill(WORKER, r"^timeout .*sleep 73", signal.SIGSTOP))
    try:
        with pytest.raises(HostUnreachable, match="has not ended after 3 s"):
            host.run(["sleep", "73"], timeout_s=1)
    finally:
        stop.join()
        testbed.kill(WORKER, r"sleep 73")


def test_files_come_whole_or_not_at_all(connect: Connect, tmp_path: Path) -> None:
    host = connect()
    host.run(["sh", "-c", "seq 300000 >/tmp/numbers"], timeout_s=10)
    host.fetch("/tmp/numbers", tmp_path / "to" / "numbers")
    assert (tmp_path / "to" / "numbers").read_text().split()[-1] == "300000"
    with pytest.raises(HostError, match="No such file"):
        host.fetch("/tmp/no such file", tmp_path / "to" / "other")
    assert [x.name for x in (tmp_path / "to").iterdir()] == ["numbers"]
    host.run(["rm", "/tmp/numbers"], timeout_s=10)


def test_all_hosts_at_once_and_each_with_its_own_outcome(
    connect: Connect, testbed: Testbed
) -> None:
    hosts = [connect(name) for name in testbed.cluster.hosts]
    names = on_all(hosts, lambda host: host.run(["hostname"], timeout_s=10).strip())
    assert names == {name: name for name in testbed.cluster.hosts}
    begin = time.monotonic()
    on_all(hosts, lambda host: host.run(["sleep", "4"], timeout_s=30))
    assert time.monotonic() - begin < 3 * 4
    outcomes = on_all(
        hosts, lambda h: h.run(["sh", "-c", f"test $(hostname) != {WORKER}"], timeout_s=10)
    )
    assert isinstance(outcomes.pop(WORKER), HostError)
    assert set(outcomes.values()) == {""}


@pytest.mark.fault("host key changed", outcome="refused, told what to do")
def test_a_host_key_that_has_changed_is_refused(connect: Connect, testbed: Testbed) -> None:
    host = connect()
    with (
        testbed.changed_host_key(WORKER),
        pytest.raises(HostError, match=r"the host key has changed.*if that is expected"),
    ):
        host.run(["true"], timeout_s=10)


def test_a_connection_without_a_pinned_key_is_refused(connect: Connect) -> None:
    for extra in ({"host_key": None}, {"host_key": None, "no_host_key_check": True}):
        with pytest.raises(HostError, match=r"does not pin the host's key.*ssh-keyscan"):
            connect(**extra).run(["true"], timeout_s=10)
    with pytest.raises(HostError, match="has no key"):
        connect(key_file=None).run(["true"], timeout_s=10)
    for key, why in (("/no/such", "No such file"), (__file__, "")):
        with pytest.raises(HostError, match=rf"cannot be used \({why}.*; correct key_file"):
            connect(key_file=key).run(["true"], timeout_s=10)


def test_a_connection_that_is_missing_is_named() -> None:
    with pytest.raises(HostError, match="host x: Airflow connection no_such_connection"):
        Host("x", "no_such_connection", "python3").run(["true"], timeout_s=10)


def test_a_key_that_the_host_does_not_know_is_reported_as_such(
    connect: Connect, testbed: Testbed
) -> None:
    other = next(x.state for n, x in testbed.hosts.items() if n != WORKER)
    with pytest.raises(HostError, match=r"login refused.*authorized_keys"):
        connect(key_file=str(other / "ssh" / "ssh_host_ed25519_key")).run(["true"], timeout_s=10)


def test_nobody_listens(connect: Connect, testbed: Testbed) -> None:
    host = connect()
    testbed.kill(WORKER, "^sshd")
    with pytest.raises(HostUnreachable, match=r"no connection \(.*refused"):
        host.run(["true"], timeout_s=10)
    testbed.start_sshd(WORKER)
    assert host.call(facts, {"busy_window_s": 0}, timeout_s=10)["hostname"] == WORKER


def test_a_host_that_is_off_is_given_up_in_time(connect: Connect) -> None:
    host = connect(host="10.231.7.99")
    begin = time.monotonic()
    with pytest.raises(HostUnreachable, match="no connection"):
        host.run(["true"], timeout_s=10)
    assert time.monotonic() - begin < 25


def test_sshd_killed_during_a_command(connect: Connect, testbed: Testbed) -> None:
    host = connect()
    host.run(["true"], timeout_s=10)
    stop = later(0.5, lambda: testbed.kill(WORKER, "^sshd"))
    with pytest.raises(HostUnreachable, match="the connection was lost during sleep"):
        host.run(["sleep", "20"], timeout_s=30)
    stop.join()
    testbed.start_sshd(WORKER)
    assert host.run(["echo", "again"], timeout_s=10) == "again\n"
    testbed.kill(WORKER, "sleep 20")  # else it ends when its time is over


@pytest.mark.fault("link down for 10 s in mid-command", outcome="survived")
def test_a_cable_pulled_for_ten_seconds_is_survived(connect: Connect, testbed: Testbed) -> None:
    host = connect()
    host.run(["true"], timeout_s=10)
    testbed.link_down(WORKER)
    plug = later(10, lambda: testbed.link_up(WORKER))
    try:
        assert host.run(["sh", "-c", "sleep 1; echo done"], timeout_s=40) == "done\n"
    finally:
        plug.join()


def test_a_cable_pulled_for_good_is_noticed(connect: Connect, testbed: Testbed) -> None:
    host = connect()
    host.run(["true"], timeout_s=10)
    pull = later(0.5, lambda: testbed.link_down(WORKER))
    begin = time.monotonic()
    try:
        with pytest.raises(HostUnreachable, match="the connection was lost during sleep"):
            host.run(["sleep", "100"], timeout_s=120)
    finally:
        pull.join()
        testbed.link_up(WORKER)
        testbed.kill(WORKER, "sleep 100")
    assert time.monotonic() - begin < 40
