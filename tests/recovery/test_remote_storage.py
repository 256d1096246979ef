"""The stand-in for remote storage: compiled against each Hadoop, slow as asked, faults as asked."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from nexmark.config import load, paths
from nexmark.engines import Build, resolve
from nexmark.engines.prerequisites import java_program
from nexmark.errors import NexmarkError
from nexmark.recovery.remote_storage import Fault, RemoteStorage, compiled
from tests.conftest import engines

#: Writes, reads, renames over a file by FileContext, as Spark's checkpoints do; prints the bytes.
PROGRAM = """
import java.util.EnumSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;

public class Calls {
    public static void main(String[] given) throws Exception {
        Configuration conf = new Configuration();
        for (int i = 1; i < given.length; i += 2) {
            conf.set(given[i], given[i + 1]);
        }
        Path root = new Path("slow://" + given[0]);
        FileContext context = FileContext.getFileContext(root.toUri(), conf);
        for (String name : new String[] {"old", "new"}) {
            Path path = new Path(root, name);
            context.create(path, EnumSet.of(CreateFlag.CREATE)).close();
        }
        FileSystem files = root.getFileSystem(conf);
        try (FSDataOutputStream out = files.create(new Path(root, "new"), true)) {
            out.write(new byte[1 << 20]);
        }
        context.rename(new Path(root, "new"), new Path(root, "old"), Options.Rename.OVERWRITE);
        try (FSDataInputStream in = files.open(new Path(root, "old"))) {
            byte[] bytes = new byte[1 << 20];
            in.readFully(bytes);
            System.out.println(files.listStatus(root).length + " " + bytes.length);
        }
    }
}
"""


def build(name: str) -> Build:
    return resolve(load().engines[name].build, paths.builds_dir(), say=print)


def calls(tmp_path: Path, of: Build, remote: RemoteStorage) -> subprocess.CompletedProcess[str]:
    """Run the program, compiled against the build's Hadoop, in the storage."""
    jars = ":".join(map(str, (of.spark_home / "jars").glob("*.jar")))
    (tmp_path / "Calls.java").write_text(PROGRAM)
    javac = [str(java_program("javac")), "-nowarn", "-cp", jars, str(tmp_path / "Calls.java")]
    subprocess.run(javac, check=True)
    (tmp_path / "data").mkdir()
    confs = remote.confs(of, tmp_path / "fault")
    classpath = f"{confs['spark.driver.extraClassPath']}:{tmp_path}:{jars}"
    given = [
        word.removeprefix("spark.hadoop.")
        for pair in confs.items()
        if pair[0].startswith("spark.hadoop.")
        for word in pair
    ]
    command = [str(java_program("java")), "-cp", classpath, "Calls", str(tmp_path / "data")]
    return subprocess.run([*command, *given], capture_output=True, text=True)


@pytest.mark.spark
@engines("spark-4.3.0", of=("spark-4.3.0", "spark-3.5.9"))
def test_files_are_written_renamed_over_and_read_at_the_bandwidth(
    tmp_path: Path, engine: str
) -> None:
    started = time.monotonic()
    done = calls(tmp_path, build(engine), RemoteStorage(latency_ms=1, mb_per_s=0.5))
    assert done.stdout == f"1 {2**20}\n", done.stderr
    assert time.monotonic() - started > 4  # 1 MB up, 1 MB down
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["old"]


@pytest.mark.spark
def test_a_fault_fails_calls_only_while_its_file_is_there(tmp_path: Path) -> None:
    remote = RemoteStorage(0, 1000, fault=Fault.parse("errors:100"))
    assert calls(tmp_path, build("spark-4.3.0"), remote).returncode == 0
    again = tmp_path / "again"
    again.mkdir()
    (again / "fault").touch()
    done = calls(again, build("spark-4.3.0"), remote)
    assert done.returncode != 0
    assert "remote storage: " in done.stderr


def test_the_classes_are_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    of = build("spark-4.3.0")
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    first = compiled(of)
    made = (first / "SlowFileSystem.class").stat().st_mtime_ns
    assert compiled(of) == first
    assert (first / "SlowFileSystem.class").stat().st_mtime_ns == made
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_without_a_compiler_the_remedy_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    of = build("spark-4.3.0")
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    with pytest.raises(NexmarkError, match="install a JDK and set JAVA_HOME"):
        compiled(of)
    assert list((tmp_path / "remote-fs").iterdir()) == []


@pytest.mark.parametrize("text", ["", "slow", "slow:", "slow:x", "slow:0", "errors:101", "fire:1"])
def test_a_wrong_fault_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a fault; write outage:SECONDS"):
        Fault.parse(text)


def test_a_fault_is_written_as_it_is_read() -> None:
    assert str(Fault.parse("errors:0.5")) == "errors:0.5"
