"""Settings of an Airflow connection for Spark's client of Kafka: translated, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexmark.config import load
from nexmark.kafka import KafkaError
from nexmark.kafka.jvm_settings import spark_confs
from nexmark.night.make_night import make_night
from nexmark.night.night_kafka import kafka_problem
from nexmark.night.night_plan import Night
from tests.kafka.certificates import Certificate
from tests.site import ENGINE

SASL = {
    **{"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"},
    **{"sasl.username": "nexmark", "sasl.password": "secret"},
}


def confs(settings: dict[str, str]) -> dict[str, str]:
    """The settings of the JVM's client."""
    prefix = "spark.nexmark.kafka."
    found = spark_confs(settings)
    assert all(name.startswith(prefix) for name in found)
    return {name.removeprefix(prefix): value for name, value in found.items()}


def test_a_password_keeps_its_letters_in_the_form_that_java_reads() -> None:
    """Java's tokenizer of logins does not know JSON's \\u."""
    login = confs({**SASL, "sasl.password": 'pä€"\\'})["sasl.jaas.config"]
    assert login.endswith(' username="nexmark" password="pä€\\"\\\\";')
    with pytest.raises(KafkaError, match=r"^sasl\.password: has a control character") as refused:
        confs({**SASL, "sasl.password": "hidden\x01"})
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_a_login_has_the_module_of_its_mechanism(mechanism: str, name: str) -> None:
    given = {key: value for key, value in SASL.items() if key != "sasl.mechanism"}
    found = confs({**given, name: mechanism})
    assert (found["security.protocol"], found["sasl.mechanism"]) == ("SASL_PLAINTEXT", mechanism)
    kind = "Plain" if mechanism == "PLAIN" else "Scram"
    assert f"{kind}LoginModule required" in found["sasl.jaas.config"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ssl.crl.location": "x"}, "ssl.crl.location: the Kafka client of Spark has no counter"),
        (
            {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "x"},
            "sasl.oauthbearer.method, sasl.oauthbearer.client.id: the Kafka client of Spark has no",
        ),
        ({"sasl.kerberos.keytab": "x"}, "sasl.kerberos.keytab: the Kafka client of Spark has no"),
        ({"enable.ssl.certificate.verification": "False"}, "enable.ssl.certificate.verification:"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "sasl.mechanism: is GSSAPI; it has to be one of PL"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism: is OAUTHBEARER; it has to"),
        (
            {"security.protocol": "SASL_SSL"},
            "sasl.mechanism: is missing; it has to be one of PLAIN",
        ),
        ({"ssl.ca.location": "/no/such/ca.pem"}, "ssl.ca.location: /no/such/ca.pem cannot be read"),
        ({"ssl.ca.location": "/"}, "ssl.ca.location: / cannot be read: Is a directory"),
        ({"ssl.ca.location": __file__}, f"ssl.ca.location: {__file__} is no PEM file"),
        ({"ssl.certificate.pem": "x"}, "ssl.certificate, ssl.key: one is without the other"),
        ({"ssl.key.pem": "x", "ssl.certificate.pem": "x"}, "ssl.key: cannot be read: "),
        ({"ssl.keystore.location": __file__}, f"ssl.keystore.location: {__file__} cannot be read"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(settings: dict[str, str], said: str) -> None:
    with pytest.raises(KafkaError) as refused:
        confs(settings)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_what_concerns_another_client_only_is_left_out() -> None:
    assert confs({"bootstrap.servers": "k:1", "group.id": "airflow", "log_level": "3"}) == {}
    assert confs({"enable.ssl.certificate.verification": "True"}) == {}
    name = "ssl.endpoint.identification.algorithm"
    assert [confs({name: word})[name] for word in ("none", "https")] == ["", "https"]


def test_certificates_and_keys_of_every_form_go_as_texts(tmp_path: Path) -> None:
    made = Certificate.made(tmp_path)
    trusted = {"ssl.ca.location": str(made.file)}
    expected = {
        **{"ssl.truststore.type": "PEM", "ssl.truststore.certificates": made.text},
        **{"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": made.text},
        "ssl.keystore.key": made.plain_key,
    }
    forms = (made.as_files, made.with_encrypted_key, made.with_old_key, made.as_keystore)
    assert [confs({**trusted, **form}) for form in forms] == [expected] * 4
    assert confs(made.as_texts) == expected
    with pytest.raises(KafkaError, match=r"^ssl\.key: cannot be read: .*ssl\.key\.password$"):
        confs({**made.with_encrypted_key, "ssl.key.password": "wrong"})


def planned() -> Night:
    given = {"workload": "kafka", "cluster": "namespaces", "queries": "q0"}
    return make_night(load(), ENGINE, "nexmark_spark_4_3_0", "run 1", given)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"sasl.kerberos.keytab": "/k"}, ": sasl.kerberos.keytab: the Kafka client of Spark has"),
        ({"ssl.ca.location": "/no/ca.pem"}, ": ssl.ca.location: /no/ca.pem cannot be read"),
        ({}, ": no bootstrap.servers in its extra"),
    ],
)
def test_preflight_names_the_connection_and_the_setting(
    extra: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    night = planned()
    name = night.cluster.kafka  # type: ignore[union-attr]
    servers = {"bootstrap.servers": "127.0.0.1:9"} if extra else {}
    value = json.dumps({"conn_type": "kafka", "extra": {**servers, **extra}})
    monkeypatch.setenv(f"AIRFLOW_CONN_{str(name).upper()}", value)
    assert kafka_problem(night).startswith(f"connection {name}{said}")


def test_a_value_that_our_own_client_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    night = planned()
    extra = {"bootstrap.servers": "127.0.0.1:9", "security.protocol": "tls"}
    value = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv(f"AIRFLOW_CONN_{str(night.cluster.kafka).upper()}", value)  # type: ignore[union-attr]
    problem = kafka_problem(night)
    assert problem.startswith("kafka 127.0.0.1:9: ")
    assert "security.protocol" in problem
    assert problem.endswith("; correct it")
