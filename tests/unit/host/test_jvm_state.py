"""What a JVM holds is read from the JVM itself, and from /proc."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark_jobs.host import jvm_state
from nexmark_jobs.host.jvm_state import JvmError

# The names by which an executor is known are in the command line of this program.
PROGRAM = """
class Kept { static java.util.ArrayList<byte[]> all = new java.util.ArrayList<>();
  public static void main(String[] a) throws Exception {
    for (int i = 0; i < 64; i++) { all.add(new byte[1 << 16]); byte[] gone = new byte[1 << 16]; }
    for (int i = 0; i < 5; i++) { Thread t = new Thread(() -> { try { Thread.sleep(99000); }
      catch (Exception e) { } }, "kept-" + i); t.setDaemon(true); t.start(); }
    java.io.FileInputStream open = new java.io.FileInputStream(a[0]);
    System.out.println("ready"); Thread.sleep(60000); } }
"""
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A JVM that keeps 4 MiB, five threads and a file open, with the words of an executor."""
    directory = tmp_path_factory.mktemp("jvm")
    source, opened = directory / "Kept.java", directory / "data" / "opened"
    source.write_text(PROGRAM)
    opened.parent.mkdir()
    opened.touch()
    command = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:NativeMemoryTracking=summary"]
    words = [EXECUTOR, "--executor-id", "7", "--app-id", "app-1-0001"]
    with subprocess.Popen(
        [*command, str(source), str(opened), *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        yield process.pid, opened
        process.kill()


def test_a_jvm_says_what_it_holds(executor: tuple[int, Path]) -> None:
    pid, opened = executor
    request = {"app": "app-1-0001", "directories": {"data": str(opened.parent)}}
    answer = jvm_state.main(request)
    (jvm,) = answer["processes"]
    assert (jvm["role"], jvm["name"], jvm["pid"]) == ("executor", "7", pid)
    assert jvm["classes"]["byte[]"] >= 64 << 16  # what is kept; what is gone is not counted
    assert jvm["classes"]["byte[]"] < 100 << 16
    assert jvm["heap_bytes"] >= sum(jvm["classes"].values())
    assert jvm["thread_names"]["kept"] == 5
    assert jvm["threads"] == sum(jvm["thread_names"].values())
    assert jvm["file_places"][str(opened.parent)] == 1
    assert jvm["open_files"] == sum(jvm["file_places"].values())
    assert 0 < jvm["metaspace_bytes"] < jvm["outside_heap_bytes"]
    assert jvm["code_cache_bytes"] > 0
    assert jvm["other_memory_bytes"] is not None
    assert jvm["cpu_s"][0] < jvm["cpu_s"][1]
    assert answer["directories"] == {"data": [1, 0]}
    assert not list(Path("/tmp").glob(f".attach_pid{pid}"))


def test_other_applications_are_left_alone(executor: tuple[int, Path]) -> None:
    assert jvm_state.main({"app": "app-2"})["processes"] == []
    assert jvm_state.main({"app": None, "driver": "app-1-0001"})["processes"] == []


def test_a_jvm_that_cannot_be_asked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jvm_state, "_ATTACH_S", 0.1)
    # A process that takes the signal as nothing: it opens no socket.
    with subprocess.Popen(["sh", "-c", "trap '' QUIT; sleep 9"]) as process:
        time.sleep(0.1)
        with pytest.raises(JvmError, match=f"JVM {process.pid} does not answer: it opened no"):
            jvm_state.ask(process.pid, "GC.run")
        process.kill()
    with pytest.raises(JvmError, match=r"JVM \d+ does not answer 'GC.run'"):
        jvm_state.ask(process.pid, "GC.run")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("[B", "byte[]"),
        ("[[J", "long[][]"),
        ("[Ljava.lang.Object;", "java.lang.Object[]"),
        ("java.lang.String", "java.lang.String"),
        ("org.x.Y$$Lambda$123/0x00007f01", "org.x.Y$$Lambda"),
        ("org.x.Y$$Lambda/0x00007f01", "org.x.Y$$Lambda"),
    ],
)
def test_a_class_has_the_name_of_javas_source(name: str, shown: str) -> None:
    assert jvm_state.class_name(name) == shown


def test_memory_of_the_heap_is_not_outside_of_it() -> None:
    smaps = b"""\
c0000000-d0000000 rw-p 00000000 00:00 0
Rss:                 900 kB
d0000000-d8000000 rw-p 00000000 00:00 0
Rss:                  50 kB
7f00c0000000-7f00c1000000 rw-p 00000000 00:00 0 /lib/librocksdb.so
Rss:                   7 kB
"""
    layout = " total 9K, used 3K [0x00000000c0000000, 0x00000000d0000000)\n Metaspace used 2K"
    assert jvm_state.outside_heap(smaps, layout) == 57 * 1024
    assert jvm_state.outside_heap(smaps, "ZHeap used 8M") is None


def test_what_is_no_histogram_is_said() -> None:
    with pytest.raises(JvmError, match="no class histogram, but: not allowed"):
        jvm_state.histogram("not allowed\n")
