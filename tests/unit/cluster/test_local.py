"""The embedded cluster starts, says why it cannot, and leaves nothing behind."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nexmark.cluster import (
    ClusterError,
    Lease,
    LocalCluster,
    Process,
    Release,
    identify,
    open_cluster,
)
from nexmark.config import EmbeddedCluster
from nexmark.engines.short_runs import ClassArchive
from nexmark.model import Arm
from nexmark_jobs.host.ports import is_free, listener
from nexmark_jobs.host.processes import end, owned, start_detached
from tests.quick_jvm import QUICK_JVM

Factory = Callable[..., LocalCluster]


def free_ports(count: int) -> list[int]:
    """Ports that no outgoing connection gets meanwhile: below Linux's ephemeral range.

    They are multiples of 20, since the ports of the other arm are 10 higher (`baseline_ports`).
    """
    ports = random.sample(range(20_000, 32_000, 20), 10 * count)
    return [port for port in ports if is_free(port)][:count]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    master, master_ui, worker, worker_ui = free_ports(4)
    config = EmbeddedCluster(
        name="local",
        kind="embedded",
        spark_connection="nexmark_local",
        master_port=master,
        master_ui_port=master_ui,
        worker_port=worker,
        worker_ui_port=worker_ui,
        executor_cores=2,
        shuffle_partitions=2,
        executor_memory="512m",
        driver_memory="512m",
        start_timeout_s=60,
    )
    embedded = LocalCluster(config, tmp_path / "home")
    yield embedded
    embedded.stop()


@pytest.fixture
def lease() -> Lease:
    return Lease("nexmark_spark_4_3_0", "manual__1", identify(os.getpid()))


def never_active(lease: Lease) -> bool:
    raise AssertionError("a night with a holder needs no scheduler to be asked")


def release(spark_home: Path) -> Release:
    return Release("spark-0", "0", spark_home)


def fake_spark(home: Path, script: str) -> Path:
    program = home / "bin" / "spark-class"
    program.parent.mkdir(parents=True)
    (home / "jars").mkdir()
    (home / "jars" / "spark-core_2.13-4.3.0.jar").touch()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def leftover(cluster: LocalCluster, tmp_path: Path) -> Process:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    process = start_detached(command, dict(os.environ), cluster.mark, tmp_path / "left.log")
    deadline = time.monotonic() + 10
    while owned(cluster.mark) != [process]:
        assert time.monotonic() < deadline
    return process


@pytest.mark.spark
def test_it_starts_ready_on_loopback_only_and_stops_whole(
    cluster: LocalCluster, lease: Lease, tmp_path: Path
) -> None:
    import pyspark

    spark_home = Path(pyspark.__file__).parent
    cluster.start(release(spark_home), tmp_path / "logs", lease)
    status = cluster.status()
    assert (status["aliveworkers"], status["cores"]) == (1, 2)
    assert status["url"] == cluster.config.master_url
    assert cluster.holder() == lease
    assert len(owned(cluster.mark)) == 2
    assert cluster.problems() == []  # its own ports are no conflict
    assert listener(6066) not in owned(cluster.mark)  # no REST submission server
    external = socket.socket()
    external.settimeout(2)
    with external, pytest.raises(OSError, match="refused"):
        external.connect(("127.0.0.2", cluster.config.master_ui_port))
    assert len(cluster.stop()) == 2
    assert owned(cluster.mark) == []
    assert not cluster.scratch.exists()
    assert cluster.holder() is None
    assert is_free(cluster.config.master_port)
    assert "master" in (tmp_path / "logs" / "master.log").read_text().lower()


def test_a_taken_port_names_port_process_and_remedy(
    cluster: LocalCluster, lease: Lease, tmp_path: Path
) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", cluster.config.worker_ui_port))
        server.listen()
        with pytest.raises(ClusterError) as caught:
            cluster.start(release(tmp_path), tmp_path / "logs", lease)
    text = str(caught.value)
    assert text.startswith(f"port {cluster.config.worker_ui_port}: taken by process {os.getpid()}")
    assert "worker_ui_port in include/conf/clusters.yaml" in text
    assert cluster.holder() is None


PI = """
from pyspark.sql import SparkSession
print("sum", SparkSession.builder.getOrCreate().sparkContext.parallelize(range(10), 2).sum())
"""


def submit(cluster: LocalCluster, directory: Path, *options: str) -> subprocess.Popen[str]:
    """An application on the cluster, with what any user of this machine knows of it."""
    import pyspark

    spark_home = Path(pyspark.__file__).parent
    program = directory / "pi.py"
    program.write_text(PI)
    environment = {**os.environ, "SPARK_HOME": str(spark_home), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_PYTHON"] = sys.executable
    return subprocess.Popen(
        [
            *(str(spark_home / "bin" / "spark-submit"), "--master", cluster.config.master_url),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m"),
            *("--conf", f"spark.executor.extraJavaOptions={QUICK_JVM}"),
            *("--driver-java-options", QUICK_JVM, "--driver-memory", "512m"),
            *(*options, str(program)),
        ],
        env=environment,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.spark
def test_a_job_without_the_secret_of_the_night_is_refused(
    cluster: LocalCluster, lease: Lease, tmp_path: Path
) -> None:
    """Any user of this machine can reach the ports, and would run code as the nightly user."""
    import pyspark

    cluster.start(release(Path(pyspark.__file__).parent), tmp_path / "logs", lease)
    secret = cluster._secret()
    (tmp_path / "profile.conf").touch()
    confs = cluster.properties_file(tmp_path / "profile.conf")
    stranger = submit(cluster, tmp_path)
    try:
        ours = submit(cluster, tmp_path, "--properties-file", str(confs))
        said = ours.communicate(timeout=180)[0]
        assert "sum 45" in said, said
        assert stranger.stdout is not None
        assert any("Failed to connect to master" in line for line in stranger.stdout)
        status = cluster.status()
        assert len([*status["activeapps"], *status["completedapps"]]) == 1
    finally:
        stranger.kill()
        stranger.communicate()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    seen = {path.parent.name for path in files if secret.encode() in path.read_bytes()}
    assert seen == {"private"}
    commands = [Path(f"/proc/{x.pid}/cmdline").read_bytes() for x in owned(cluster.mark)]
    assert len(commands) >= 2
    assert not any(secret.encode() in command for command in commands)


def test_no_other_user_reads_the_secret(cluster: LocalCluster, lease: Lease) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can look as another user")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        home = Path(directory)
        home.chmod(0o755)
        open_to_all = home / "profile.conf"
        open_to_all.touch(mode=0o644)
        here = LocalCluster(cluster.config, home)
        here.claim(lease)
        confs = here.properties_file(open_to_all)

        def readable(path: Path) -> bool:
            done = subprocess.run(["cat", path], user=65534, group=65534, capture_output=True)
            return done.returncode == 0

        assert readable(open_to_all)
        assert not readable(confs)
        assert not readable(here.state / "private" / "secret")
        confs.parent.chmod(0o755)  # a file is its owner's whatever the directory is
        assert not readable(confs)


def twin(cluster: LocalCluster, home: Path, **changes: object) -> LocalCluster:
    """The same cluster of another installation."""
    return LocalCluster(cluster.config.model_copy(update=changes), home)


@pytest.mark.spark
def test_of_two_that_start_at_once_one_is_up_and_the_other_says_who_has_the_port(
    cluster: LocalCluster, lease: Lease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left to itself Spark takes the next port, and both would look at the first one's master."""
    import pyspark

    spark = release(Path(pyspark.__file__).parent)
    other = twin(cluster, tmp_path / "other")
    both_found_them_free = threading.Barrier(2)
    start_daemon = LocalCluster._start_daemon

    def together(self: LocalCluster, name: str, *arguments: object) -> Process:
        if name == "master.Master":
            both_found_them_free.wait(30)
        return start_daemon(self, name, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalCluster, "_start_daemon", together)

    def outcome(one: LocalCluster) -> str:
        try:
            one.start(spark, one.home / "logs", lease)
        except ClusterError as error:
            return str(error)
        return "up"

    try:
        with ThreadPoolExecutor(2) as pool:
            said = list(pool.map(outcome, (cluster, other)))
        assert said.count("up") == 1
        (refused,) = (text for text in said if text != "up")
        assert refused.startswith("Spark master: ended while it started; port ")
        assert "taken by process" in refused
        assert "in include/conf/clusters.yaml" in refused
        up, down = (cluster, other) if said[0] == "up" else (other, cluster)
        assert (len(owned(up.mark)), owned(down.mark), down.holder()) == (2, [], None)
        assert up.trouble() == ""
    finally:
        other.stop()


def test_a_master_that_answers_and_is_not_ours_is_not_taken_for_ours(
    cluster: LocalCluster, lease: Lease, tmp_path: Path
) -> None:
    """Another installation's, which was quicker by a moment."""
    address = ("127.0.0.1", cluster.config.master_ui_port)
    program = f"""
from http.server import BaseHTTPRequestHandler, HTTPServer
class Alive(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{{"status": "ALIVE"}}')
HTTPServer({address!r}, Alive).serve_forever()
"""
    stranger = tmp_path / "stranger.py"
    stranger.write_text(program)
    script = f"env -u NEXMARK_OWNER {sys.executable} {stranger} & exec sleep 60"
    impatient = twin(cluster, cluster.home, start_timeout_s=3)
    try:
        with pytest.raises(ClusterError, match="Spark master: not ready after 3 s; port ") as told:
            impatient.start(
                release(fake_spark(tmp_path / "spark", script)), tmp_path / "logs", lease
            )
        assert "stranger.py" in str(told.value)
    finally:
        holder = listener(cluster.config.master_ui_port)
        end([holder] if holder else [])


def test_too_little_memory_is_reported_before_anything_is_started(cluster: LocalCluster) -> None:
    huge = LocalCluster(
        cluster.config.model_copy(update={"executor_memory": "9000g"}), cluster.home
    )
    (problem,) = huge.problems()
    assert problem.startswith("memory: cluster local needs 9000.")
    assert "lower executor_memory in include/conf/clusters.yaml" in problem


def test_a_port_of_our_own_leftovers_is_no_conflict(cluster: LocalCluster, tmp_path: Path) -> None:
    program = (
        "import socket, time; s = socket.socket();"
        f"s.bind(('127.0.0.1', {cluster.config.master_port})); s.listen(); time.sleep(60)"
    )
    command = [sys.executable, "-c", program]
    start_detached(command, dict(os.environ), cluster.mark, tmp_path / "left.log")
    deadline = time.monotonic() + 10
    while is_free(cluster.config.master_port):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert listener(cluster.config.master_port) in owned(cluster.mark)
    assert cluster.problems() == []


def test_a_daemon_that_dies_is_reported_with_its_last_words(
    cluster: LocalCluster, lease: Lease, tmp_path: Path
) -> None:
    spark = fake_spark(tmp_path / "spark", "echo no such class; exit 1")
    with pytest.raises(ClusterError) as caught:
        cluster.start(release(spark), tmp_path / "logs", lease)
    assert "Spark master: ended while it started; its last words: no such class" in str(
        caught.value
    )
    assert str(tmp_path / "logs" / "master.log") in str(caught.value)
    assert owned(cluster.mark) == []
    assert cluster.holder() is None


def test_a_master_that_cannot_start_says_the_cause_and_not_its_last_frames(
    cluster: LocalCluster, lease: Lease, tmp_path: Path
) -> None:
    log = Path(__file__).parents[2] / "data" / "deaths" / "worker-property.log"
    spark = fake_spark(tmp_path / "spark", f"cat {log}; exit 1")
    with pytest.raises(ClusterError, match=r"Properties file /srv/jobs/none.conf does not exist;"):
        cluster.start(release(spark), tmp_path / "logs", lease)


def test_a_daemon_that_is_never_ready_is_ended(
    cluster: LocalCluster, lease: Lease, tmp_path: Path
) -> None:
    impatient = LocalCluster(cluster.config.model_copy(update={"start_timeout_s": 1}), cluster.home)
    spark = fake_spark(tmp_path / "spark", "echo starting; sleep 60")
    with pytest.raises(ClusterError, match="not ready after 1 s; its last words: starting"):
        impatient.start(release(spark), tmp_path / "logs", lease)
    assert owned(cluster.mark) == []


def test_reap_ends_what_a_killed_night_left(
    cluster: LocalCluster, lease: Lease, leftover: Process
) -> None:
    dead = Process(os.getpid(), 1)
    cluster.claim(Lease("nexmark_spark_4_2_1", "manual__0", dead))
    cluster.checkpoints.mkdir(parents=True)
    ended = cluster.reap(lease, never_active)
    assert len(ended) == 1
    assert ended[0].startswith(f"{leftover.pid} ")
    assert not leftover.alive
    assert not cluster.scratch.exists()
    assert cluster.reap(lease, never_active) == []


@pytest.mark.parametrize("scheduled", [True, False])
def test_reap_does_not_touch_a_night_that_goes_on(
    cluster: LocalCluster, lease: Lease, leftover: Process, scheduled: bool
) -> None:
    holder = None if scheduled else identify(os.getpid())
    other = Lease("nexmark_spark_4_2_1", "manual__0", holder)
    cluster.claim(other)
    who = "nexmark_spark_4_2_1 run manual__0" + f" \\(process {os.getpid()}\\)" * (not scheduled)
    with pytest.raises(ClusterError, match=f"in use by {who}; wait"):
        cluster.reap(lease, lambda asked: asked == other)
    assert leftover.alive
    assert cluster.holder() == other


def test_reap_clears_an_earlier_try_of_the_same_night(
    cluster: LocalCluster, lease: Lease, leftover: Process
) -> None:
    cluster.claim(lease)
    cluster.reap(lease, never_active)
    assert not leftover.alive


def test_both_arms_have_the_class_path_that_the_class_archive_was_made_with(
    cluster: LocalCluster,
) -> None:
    for arm in (Arm.CANDIDATE, Arm.BASELINE):
        of_arm = open_cluster(cluster.config.of_arm(arm), cluster.home)
        environment = of_arm.driver_environment(Path("/opt/spark"))
        assert environment["SPARK_CONF_DIR"] == str(cluster.conf_dir)


def test_daemons_start_from_the_class_archive_of_their_build(
    cluster: LocalCluster, lease: Lease, tmp_path: Path
) -> None:
    spark = fake_spark(tmp_path / "spark", 'echo "$SPARK_DAEMON_JAVA_OPTS"; exit 1')
    archive = ClassArchive.of(spark, "4.3.0", cluster.conf_dir).path
    archive.parent.mkdir(parents=True)
    archive.touch()
    with pytest.raises(ClusterError, match=f" -XX:SharedArchiveFile={archive}; "):
        cluster.start(release(spark), tmp_path / "logs", lease)


def test_settings_of_spark_beside_ours_are_refused(cluster: LocalCluster) -> None:
    cluster.conf_dir.mkdir(parents=True)
    (cluster.conf_dir / "spark-env.sh").write_text("SPARK_LOCAL_DIRS=/elsewhere")
    with pytest.raises(ClusterError, match=r"must be empty, and has spark-env\.sh; move it away"):
        cluster.make_conf_dir()


def test_spark_gets_none_of_the_callers_settings(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    environment = cluster.driver_environment(Path("/opt/spark"))
    assert environment["SPARK_CONF_DIR"] == str(cluster.conf_dir)
    assert environment["SPARK_HOME"] == "/opt/spark"
    assert "PYSPARK_SUBMIT_ARGS" not in environment
    assert "PYTHONPATH" not in environment
    assert end([]) == []
