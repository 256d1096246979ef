"""An experiment by the command that a person uses: equal arms, a table, figures, nothing left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nexmark.config import paths
from nexmark_jobs.host.processes import marked
from tests.class_archive import share_builds
from tests.quick_jvm import QUICK_JVM
from tests.waiting import wait_for

QUICK = f'conf: {{spark.driver.extraJavaOptions: "{QUICK_JVM}"}}'
ENTRY = f"""experiments:
  tiny:
    question: Does it pay?
    queries: [reused_view]
    sizes: [1000]
    batches: 3
    warmup_batches: 1
    memory: 1g
    arms:
      union: {{formulation: union, {QUICK}}}
      explode: {{formulation: explode, {QUICK}}}
    text: {{gain: 20, what: a view is computed once}}
"""


def start(home: Path, *options: str) -> subprocess.Popen[str]:
    conf = home / "conf"
    shutil.copytree(paths.conf_dir(), conf)
    (conf / "experiments.yaml").write_text(ENTRY)
    share_builds(home)
    command = [str(Path(sys.executable).with_name("nexmark")), "experiment", *options]
    own = {"NEXMARK_HOME": str(home), "NEXMARK_CONF": str(conf), "TMPDIR": str(home)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=os.environ | own, stdout=pipe, stderr=pipe, text=True)


def assert_nothing_left(home: Path) -> None:
    assert marked(f"{home}/nexmark-experiment-") == {}
    assert not list(home.glob("nexmark-experiment-*"))


@pytest.mark.spark
def test_arms_are_equal_right_and_compared(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    process = start(tmp_path, "tiny", "--quick", "--out", str(out))
    stdout, stderr = process.communicate(timeout=900)
    assert process.returncode == 0, stdout + stderr
    lines = [line.split() for line in stdout.splitlines() if line.startswith("tiny  ")]
    assert [(line[3], line[-1]) for line in lines] == [
        ("union", "right"),
        ("explode", "right"),
    ]
    (told,) = json.loads(out.read_text())["experiments"]
    arms: dict[str, Any] = {arm["arm"]: arm for arm in told["trials"][0]["arms"]}
    assert told["is_right"] is True
    assert {tuple(arm["digests"]) for arm in arms.values()} == {tuple(arms["union"]["digests"])}
    assert arms["union"]["exchanges"] == 2 * arms["explode"]["exchanges"]
    assert arms["explode"]["gain"]["pairs"] == 1
    assert all(arm["cpu_s_per_mevent"] > 0 for arm in arms.values())
    assert not (tmp_path / "results.db").exists(), "a quick run is not recorded"
    assert_nothing_left(tmp_path)


@pytest.mark.spark
def test_ctrl_c_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    process = start(tmp_path, "tiny", "--pairs", "1")
    wait_for(lambda: len(marked(f"{tmp_path}/nexmark-experiment-")) > 1, within_s=120)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert_nothing_left(tmp_path)
