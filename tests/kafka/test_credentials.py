"""A Kafka that wants a password: the right one reads, a wrong one is said in a line without it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.kafka import KafkaError
from nexmark.kafka import broker as brokers
from nexmark.kafka.broker import LocalBrokers
from nexmark.kafka.filling import fill
from nexmark.kafka.jars import connector
from nexmark.kafka.topics import KafkaCluster, spark_confs
from nexmark_jobs.host.processes import owner_mark
from tests.conftest import engine_environment
from tests.engines.test_results import NEWEST
from tests.kafka.test_source import LINES

pytestmark = pytest.mark.slow

PORT, SECURED = 29192, 29199
RIGHT, WRONG = "right-Password-1", "wrong-Password-2"
SASL = f"""\
listener.name.secured.sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_nexmark="{RIGHT}";
"""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that asks for a password; the package's own asks for none."""
    home = tmp_path_factory.mktemp("secured")
    usual = brokers._SERVER
    listener = f"SECURED://127.0.0.1:{SECURED}"
    changed = usual.replace("\nlisteners=", f"\nlisteners={listener},")
    changed = changed.replace("\nadvertised.listeners=", f"\nadvertised.listeners={listener},")
    changed = changed.replace("protocol.map=", "protocol.map=SECURED:SASL_PLAINTEXT,") + SASL
    one = LocalBrokers(home / "kafka", owner_mark(home, "kafka brokers"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brokers, "_SERVER", changed)
        one.up(1, PORT, print)
    yield f"127.0.0.1:{SECURED}"
    one.down()


def with_password(servers: str, password: str) -> KafkaCluster:
    settings = {
        **{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
        **{"sasl.username": "nexmark", "sasl.password": password},
    }
    return KafkaCluster(servers, settings, time_out_s=5)


@pytest.fixture(scope="module")
def topic(secured: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("events") / "events.jsonl"
    file.write_text("".join(f"{line}\n" for line in LINES[:2000]))
    fill(with_password(secured, RIGHT), file, "guarded", 2)
    return "guarded"


def test_the_harness_is_refused_with_a_wrong_password(secured: str, topic: str) -> None:
    assert [each.name for each in with_password(secured, RIGHT).topics()] == [topic]
    with pytest.raises(KafkaError) as refused:
        with_password(secured, WRONG).topics()
    said = str(refused.value)
    assert said.startswith(f"kafka {secured}: no answer: ")
    assert WRONG not in said
    assert "\n" not in said


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("password", [RIGHT, WRONG])
def test_a_query_is_refused_with_a_wrong_password(
    password: str,
    secured: str,
    topic: str,
    engine_build: Callable[[str], Build],
    tmp_path: Path,
) -> None:
    build = engine_build(NEWEST)
    settings = with_password(secured, password).settings
    confs = {**spark_confs(settings), "spark.ui.enabled": "false"}
    (tmp_path / "confs").write_text("".join(f"{x} {y}\n" for x, y in confs.items()))
    done = subprocess.run(
        [
            *(str(build.spark_home / "bin" / "spark-submit"), "--master", "local[2]"),
            *("--properties-file", str(tmp_path / "confs")),
            *("--jars", ",".join(map(str, connector(build.version, print)))),
            str(paths.repository() / "nexmark_jobs" / "run_query.py"),
            *("--query", "q0", "--source", f"kafka:{topic}", "--bootstrap-servers", secured),
            *("--rows-per-batch", "1000", "--result", str(tmp_path / "result.json")),
        ],
        env=engine_environment(build) | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert password not in done.stdout + done.stderr
    if password == RIGHT:
        assert done.returncode == 0, done.stderr[-2000:]
        result = (tmp_path / "result.json").read_text()
        assert json.loads(result)["input_rows"] == 2000
        assert password not in result
    else:
        assert done.returncode == 2
        told = (done.stdout + done.stderr).splitlines()
        (line,) = [x for x in told if x.startswith("run_query.py: error: ")]
        assert "SaslAuthenticationException" in line or "Authentication failed" in line
