"""A recording is read as the JDK prints it; what only waits is not CPU time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nexmark.cluster.hosts.samplers import RECORDING
from nexmark.engines.prerequisites import java_program
from nexmark.errors import NexmarkError
from nexmark.flames.jfr import RECORDER, TRUNCATED, StackSample, parse, read_recording

DATA = Path(__file__).parents[2] / "data" / "flames"
BUSY = """
public class Busy {
    static double spin(long until) {
        double sum = 0;
        while (System.nanoTime() < until) for (int i = 1; i < 100_000; i++) sum += Math.sqrt(i);
        return sum;
    }
    public static void main(String[] arguments) {
        System.exit(spin(System.nanoTime() + 3_000_000_000L) > 0 ? 0 : 1);
    }
}
"""


@pytest.fixture(scope="module")
def printed() -> list[StackSample]:
    """Samples of a real recording of q5 on Spark 4.3.0 (JDK 17)."""
    with (DATA / "jfr_print.txt").open() as lines:
        return list(parse(lines))


def test_every_sample_is_read_outermost_frame_first(printed: list[StackSample]) -> None:
    text = (DATA / "jfr_print.txt").read_text()
    assert len(printed) == text.count("stackTrace = [")
    workers = [x for x in printed if x.stack[0] == "Executor task launch worker"]
    assert workers
    assert {x.stack[1] for x in workers} <= {"java.lang.Thread.run", TRUNCATED}
    assert not any("CodegenStage1" in frame for x in printed for frame in x.stack)


def test_threads_that_wait_in_native_code_use_no_cpu(printed: list[StackSample]) -> None:
    waiting = {x.stack[-1] for x in printed if x.waits}
    assert waiting == {
        "io.netty.channel.epoll.Native.epollWait0 (native)",
        "java.lang.ProcessHandleImpl.waitForProcessExit0 (native)",
        "java.io.FileInputStream.readBytes (native)",
    }
    working = {x.stack[-1] for x in printed if not x.waits}
    assert "java.lang.ProcessImpl.forkAndExec (native)" in working


def test_a_stack_that_was_cut_says_so(printed: list[StackSample]) -> None:
    (cut,) = [x for x in printed if TRUNCATED in x.stack]
    assert cut.stack.index(TRUNCATED) == 1


def sample_of(
    *frames: str, header: str = "jdk.ExecutionSample {", thread: str = "main"
) -> StackSample:
    lines = [header, "  startTime = 01:02:03.500 (2026-11-21)", f'  sampledThread = "{thread}" (x)']
    lines += ["  stackTrace = [", *(f"    {frame}" for frame in frames), "  ]", "}", ""]
    (found,) = parse(line + "\n" for line in lines)
    return found


def test_newer_jdks_print_the_date_too() -> None:
    assert sample_of("a.B.c() line: 1").second == 3723.5


def test_the_depth_of_a_recursion_is_no_difference() -> None:
    def recursion(depth: int) -> tuple[str, ...]:
        rounds = ["a.B.x(int) line: 1", "a.B.y() line: 2", "a.B.z() line: 3"] * depth
        return sample_of("a.B.leaf() line: 9", *rounds, "a.B.main(String[]) line: 1").stack

    assert recursion(2) == recursion(7)
    assert recursion(1) == ("main", "a.B.main", "a.B.z", "a.B.y", "a.B.x", "a.B.leaf")


def test_a_thread_may_be_called_anything() -> None:
    assert sample_of("a.B.c() line: 1", thread='a "b" {;}').stack[0] == 'a "b" { }'


def test_half_a_sample_at_the_end_is_none() -> None:
    assert (
        list(parse(["jdk.ExecutionSample {\n", "  stackTrace = [\n", "    a.B.c() line: 1\n"]))
        == []
    )


def test_what_is_no_recording_is_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "x y.jfr"
    broken.write_bytes(b"half a recording")
    with pytest.raises(NexmarkError, match=r"x y\.jfr: jfr cannot read it: .") as caught:
        list(read_recording(broken))
    assert "\n" not in str(caught.value)


def test_a_jdk_without_jfr_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with pytest.raises(NexmarkError, match="bin/jfr"):
        list(read_recording(tmp_path / "x.jfr"))


def test_a_jvm_records_with_the_options_of_an_executor(tmp_path: Path) -> None:
    """The JDK takes the options, and leaves the recording, and nothing else, where it runs."""
    (tmp_path / "Busy.java").write_text(BUSY)
    java = str(java_program("java"))
    command = [java, *RECORDER, "Busy.java"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert {path.name for path in tmp_path.iterdir()} == {"Busy.java", RECORDING}
    samples = list(read_recording(tmp_path / RECORDING))
    assert any(sample.stack[-1] == "Busy.spin" for sample in samples)
