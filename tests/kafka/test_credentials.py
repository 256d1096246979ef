"""A Kafka that wants a password or a certificate, and whose defaults would remove records.

Spark's client connects as ours does. A wrong password is said in a line without it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from nexmark.config import paths
from nexmark.engines import Build
from nexmark.engines.prerequisites import java_program
from nexmark.home import write_private
from nexmark.kafka import KafkaError
from nexmark.kafka import broker as brokers
from nexmark.kafka.broker import LocalBrokers
from nexmark.kafka.filling import fill
from nexmark.kafka.jars import BROKER, connector, jars
from nexmark.kafka.jvm_settings import spark_confs
from nexmark.kafka.topics import KafkaCluster
from nexmark.night.private_confs import _value
from nexmark_jobs.host.processes import owner_mark
from tests.conftest import engine_environment
from tests.engines.test_results import NEWEST
from tests.kafka.certificates import Certificate
from tests.kafka.test_source import LINES

pytestmark = pytest.mark.slow

PORT, SECURED, MUTUAL = 29192, 29199, 29198
RIGHT, WRONG = 'right-Päßwörd-€-"1\\n', "wrong-Password-2"
JAVA_RIGHT = json.dumps(json.dumps(RIGHT, ensure_ascii=False))[1:-1]
"""As a properties file has it, in which Java reads \\u escapes."""
DEFAULTS = """\
log.cleanup.policy=compact
log.retention.bytes=1000
"""
SASL = f"""\
listener.name.secured.sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_nexmark={JAVA_RIGHT};
"""
TLS = "listener.name.mutual.ssl."


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return Certificate.made(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, certificate: Certificate) -> Iterator[str]:
    """The address of a broker that asks for a password; the package's own asks for none.

    At another port it asks for a certificate.
    """
    home = tmp_path_factory.mktemp("secured")
    usual = brokers._SERVER
    listener = f"SECURED://127.0.0.1:{SECURED},MUTUAL://127.0.0.1:{MUTUAL}"
    changed = usual.replace("\nlisteners=", f"\nlisteners={listener},")
    changed = changed.replace("\nadvertised.listeners=", f"\nadvertised.listeners={listener},")
    mapped = "protocol.map=SECURED:SASL_PLAINTEXT,MUTUAL:SSL,"
    changed = changed.replace("protocol.map=", mapped) + SASL + DEFAULTS
    tls = {
        **{"client.auth": "required", "keystore.type": "PEM", "truststore.type": "PEM"},
        **{"keystore.certificate.chain": certificate.text, "keystore.key": certificate.plain_key},
        "truststore.certificates": certificate.text,
    }
    for name, value in tls.items():
        changed += f"{TLS}{name}={value.replace(chr(10), chr(92) + 'n')}\n"
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


def test_topics_keep_their_records_whatever_the_defaults_of_the_brokers_are(
    secured: str, topic: str
) -> None:
    """With cleanup.policy=compact the broker would refuse every record, for none has a key."""
    admin = AdminClient(with_password(secured, RIGHT).client())
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    found = admin.describe_configs([asked])[asked].result()
    names = ("cleanup.policy", "retention.ms", "retention.bytes")
    assert [found[name].value for name in names] == ["delete", "-1", "-1"]


def test_a_fill_says_why_events_were_not_taken(
    secured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = KafkaCluster.create
    compacted = {"cleanup.policy": "compact"}
    monkeypatch.setattr(KafkaCluster, "create", lambda *given: create(*given, config=compacted))
    file = tmp_path / "events.jsonl"
    file.write_text("".join(f"{line}\n" for line in LINES[:20]))
    kafka = with_password(secured, RIGHT)
    with pytest.raises(KafkaError) as refused:
        fill(kafka, file, "refusing", 1)
    said = str(refused.value)
    assert said.startswith("kafka: 20 events were not taken, first topic refusing, partition 0: ")
    assert said.endswith(
        "(INVALID_RECORD); look at cleanup.policy and the schemas that the topic asks for"
    )
    assert "refusing" not in kafka.names()


def settings_of(name: str, certificate: Certificate) -> dict[str, str]:
    """The settings of a connection, in librdkafka's words."""
    own = {"ssl.ca.location": str(certificate.file), **certificate.with_encrypted_key}
    tls = {"security.protocol": "ssl", **own}
    any_name = {"ssl.endpoint.identification.algorithm": "none", "group.id": "airflow"}
    password = dict(with_password("", RIGHT).settings)
    return {"password": password, "certificate": tls, "any name": tls | any_name}[name]


@pytest.mark.parametrize("name", ["password", "certificate", "any name"])
def test_the_jvms_client_connects_as_ours_does(
    name: str, secured: str, topic: str, certificate: Certificate, tmp_path: Path
) -> None:
    settings = settings_of(name, certificate)
    port = SECURED if name == "password" else MUTUAL
    host = "localhost" if name == "any name" else "127.0.0.1"  # which the certificate does not have
    servers = f"{host}:{port}"
    assert topic in KafkaCluster(servers, settings, time_out_s=5).names()
    prefix = "spark.nexmark.kafka."
    confs = {x.removeprefix(prefix): value for x, value in spark_confs(settings).items()}
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{x}={json.dumps(value)[1:-1]}\n" for x, value in confs.items()))
    listed = subprocess.run(
        [
            *(str(java_program("java")), "-cp", ":".join(map(str, jars(BROKER, print)))),
            *("org.apache.kafka.tools.TopicCommand", "--list", "--bootstrap-server", servers),
            *("--command-config", str(file)),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert topic in listed.stdout.splitlines(), listed.stderr[-2000:]


def test_the_harness_is_refused_with_a_wrong_password(secured: str, topic: str) -> None:
    assert [each.name for each in with_password(secured, RIGHT).topics()] == [topic]
    with pytest.raises(KafkaError) as refused:
        with_password(secured, WRONG).topics()
    said = str(refused.value)
    assert said.startswith(f"kafka {secured}: no answer: ")
    assert WRONG not in said
    assert "\n" not in said


def command(verb: str, settings: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a verb of `nexmark kafka` with a file of client settings."""
    given = ("--topic", "saved", "--client-settings", str(settings), *options)
    call = [sys.executable, "-m", "nexmark.cli", "kafka", verb, *given]
    return subprocess.run(call, capture_output=True, text=True, timeout=120)


def test_the_commands_connect_as_a_file_of_client_settings_says(
    secured: str, tmp_path: Path
) -> None:
    """The file has what the extra of an Airflow connection has."""
    file, settings, out = tmp_path / "events", tmp_path / "settings.json", tmp_path / "saved"
    file.write_text("".join(f"{line}\n" for line in LINES[:20]))
    client = dict(with_password("", RIGHT).settings)
    settings.write_text(json.dumps({"bootstrap.servers": secured, **client}))
    filled = command("fill", settings, "--events", str(file), "--partitions", "1")
    assert filled.returncode == 0, filled.stderr
    saved = command("save", settings, "--out", str(out))
    assert saved.returncode == 0, saved.stderr
    assert (out / "00000.jsonl").read_text().splitlines() == LINES[:20]
    client["sasl.password"] = WRONG
    settings.write_text(json.dumps(client))
    refused = command(
        "save", settings, "--out", str(tmp_path / "other"), "--bootstrap-servers", secured
    )
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"kafka {secured}: no answer: ")
    assert WRONG not in refused.stderr + refused.stdout
    assert not (tmp_path / "other").exists()


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("given", [RIGHT, WRONG, "certificate"])
def test_a_query_connects_as_the_connection_says(
    given: str,
    secured: str,
    topic: str,
    certificate: Certificate,
    engine_build: Callable[[str], Build],
    tmp_path: Path,
) -> None:
    build = engine_build(NEWEST)
    settings, servers = with_password(secured, given).settings, secured
    if given == "certificate":
        settings, servers = settings_of(given, certificate), f"127.0.0.1:{MUTUAL}"
    confs = {**spark_confs(settings), "spark.ui.enabled": "false"}
    write_private(tmp_path / "confs", "".join(f"{x} {_value(y)}\n" for x, y in confs.items()))
    done = subprocess.run(
        [
            *(str(build.spark_home / "bin" / "spark-submit"), "--master", "local[2]"),
            *("--properties-file", str(tmp_path / "confs")),
            *("--jars", ",".join(map(str, connector(build.version, print)))),
            str(paths.repository() / "nexmark_jobs" / "run_query.py"),
            *("--query", "q0", "--source", f"kafka:{topic}", "--bootstrap-servers", servers),
            *("--rows-per-batch", "1000", "--result", str(tmp_path / "result.json")),
        ],
        env=engine_environment(build) | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    hidden = certificate.plain_key.splitlines()[1] if given == "certificate" else given
    assert hidden not in done.stdout + done.stderr
    if given != WRONG:
        assert done.returncode == 0, done.stderr[-2000:]
        result = (tmp_path / "result.json").read_text()
        assert json.loads(result)["input_rows"] == 2000
        assert hidden not in result
    else:
        assert done.returncode == 2
        told = (done.stdout + done.stderr).splitlines()
        (line,) = [x for x in told if x.startswith("run_query.py: error: ")]
        assert "SaslAuthenticationException" in line or "Authentication failed" in line
