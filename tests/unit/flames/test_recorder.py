"""A flight recording has nothing that a password is handed over in."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from nexmark.engines.prerequisites import java_program
from nexmark.flames.jfr import RECORDER

MARKER = "Xk7hushQ2"
PROGRAM = "class A { public static void main(String[] w) { System.out.println(w.length); } }"


def test_a_recording_has_no_environment_properties_and_options(tmp_path: Path) -> None:
    (tmp_path / "A.java").write_text(PROGRAM)
    (tmp_path / "options").write_text(f"-Dmy.password={MARKER}")
    subprocess.run(
        [str(java_program("java")), "@options", *RECORDER, "A.java"],
        cwd=tmp_path,
        env=os.environ | {"MYSQL_PWD": MARKER},
        check=True,
        capture_output=True,
        timeout=120,
    )
    (recording,) = tmp_path.glob("*.jfr")
    assert MARKER.encode() not in recording.read_bytes()
    assert b"jdk.ExecutionSample" in recording.read_bytes()
