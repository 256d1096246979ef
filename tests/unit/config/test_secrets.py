"""What counts as a secret, and what does not; and that no text shows one."""

from __future__ import annotations

import re

import pytest

from nexmark_jobs.redaction import (
    SPARK_REGEX,
    fingerprint,
    is_fingerprint,
    is_secret,
    redacted,
    without_secrets,
)

SECRETS = {
    "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net": "x",
    "spark.hadoop.fs.azure.sas.box.store.blob.core.windows.net": "x",
    "spark.hadoop.fs.azure.account.oauth2.client.secret": "x",
    "spark.executorEnv.MYSQL_PWD": "x",
    "spark.executorEnv.PGPASSWORD": "x",
    "spark.executorEnv.DB_PASS": "x",
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY": "x",
    "spark.ssl.keyStorePassword": "x",
    "spark.ssl.keyStorePwd": "x",
    "spark.ssl.keyPassword": "x",
    "spark.hadoop.fs.s3a.access.key": "x",
    "spark.hadoop.fs.s3a.secret.key": "x",
    "spark.hadoop.fs.s3a.session.token": "x",
    "spark.hadoop.fs.s3a.encryption.key": "x",
    "spark.hadoop.fs.gs.auth.service.account.private.key": "x",
    "spark.hadoop.fs.adl.oauth2.credential": "x",
    "spark.my.api.key": "x",
    "spark.my.apiKey": "x",
    "spark.my.key": "x",
    "spark.my.passphrase": "x",
    "spark.kafka.sasl.jaas.config": "x",
    "spark.my.webhook": "x",
    # by the value alone
    "spark.my.url": "https://store.example/data?sv=2024&sig=abc%3D",
    "spark.sql.catalog.db.url": "jdbc:mysql://db/x?user=ada&password=x",
    "spark.my.server": "jdbc:sqlserver://db;user=ada;password=x;encrypt=true",
    "spark.my.place": "https://ada:x@example.org/",
    "spark.my.id": "AKIAIOSFODNN7EXAMPLE",
    "spark.my.word": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".replace("EXAMPLEKEY", "EXAMPLEK37"),
    "spark.my.pem": "-----BEGIN RSA PRIVATE KEY-----",
    "spark.my.bus": "Endpoint=sb://x/;SharedAccessKeyName=a;SharedAccessKey=abc=",
    "spark.my.grant": "SharedAccessSignature sr=x&se=1",
    "spark.my.header": "Authorization: Bearer 0123456789abcdef",
    "spark.my.json": '{"user": "ada", "password": "x"}',
    "spark.my.jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.abc",
    "spark.my.options": "-Djavax.net.ssl.trustStorePassword=x",
    "spark.my.git": "ghp_" + "a1" * 18,
}
OPEN = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "200",
    "spark.kryo.registrationRequired": "true",
    "spark.kerberos.keytab": "/etc/spark.keytab",
    "spark.kerberos.principal": "spark/host@EXAMPLE.ORG",
    "spark.kerberos.access.hadoopFileSystems": "hdfs://a:8020,hdfs://b:8020",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.endpoint": "http://minio:9000",
    "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleProvider",
    "spark.security.credentials.hive.enabled": "false",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.RocksDBStateStoreProvider",
    "spark.sql.streaming.checkpointLocation": "file:///data/checkpoints",
    "spark.io.encryption.keySizeBits": "256",
    "spark.network.crypto.keyLength": "128",
    "spark.ssl.keyStore": "/etc/keys/store.jks",
    "spark.ssl.keyStoreType": "JKS",
    "spark.ssl.needClientAuth": "true",
    "spark.authenticate": "true",
    "spark.authenticate.enableSaslEncryption": "true",
    "spark.kubernetes.authenticate.driver.clientKeyFile": "/etc/client.pem",
    "spark.sql.bypass": "1",
    "spark.master": "spark://127.0.0.1:7077",
    "spark.eventLog.dir": "file:///home/ada/.nexmark/runs/x/y/rep-1/events",
    "spark.nexmark.build": "0123456789abcdef0123456789abcdef01234567",
    "spark.jars": "/opt/jars/a.jar,/opt/jars/b.jar",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Dlog4j.level=WARN",
    "spark.redaction.regex": "(?i)secret|password|token",
    "spark.my.empty.password": "",
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_known_by_its_name_or_its_look(name: str) -> None:
    assert is_secret(name, SECRETS[name])


@pytest.mark.parametrize("name", OPEN)
def test_an_ordinary_setting_stays_in_view(name: str) -> None:
    assert not is_secret(name, OPEN[name])


def test_spark_hides_in_its_event_logs_what_we_hide() -> None:
    found = re.compile(SPARK_REGEX)
    by_look = {"spark.my.word"}  # of forty letters and nothing else: Spark cannot tell a path
    missed = {x for x in SECRETS if not found.search(x) and not found.search(SECRETS[x])}
    assert missed == by_look
    shown = {x for x in OPEN if not found.search(x) and not found.search(OPEN[x])}
    assert OPEN.keys() - shown == {"spark.my.empty.password", "spark.redaction.regex"}


def test_a_fingerprint_says_whether_a_secret_changed_and_nothing_else() -> None:
    ours, theirs = b"k" * 32, b"l" * 32
    one = fingerprint("hunter2", ours)
    assert is_fingerprint(one)
    assert "hunter2" not in one
    assert one == fingerprint("hunter2", ours) != fingerprint("hunter3", ours)
    assert one != fingerprint("hunter2", theirs)
    assert fingerprint("hunter2", b"") == "***"


def test_what_was_replaced_stays_as_it_is() -> None:
    key = b"k" * 32
    once = redacted(SECRETS | OPEN, key)
    assert redacted(once, key) == once
    assert {name: once[name] for name in OPEN} == OPEN
    assert all(is_fingerprint(once[name]) for name in SECRETS)


@pytest.mark.parametrize(
    "text",
    [
        "https://me:MARKER@example.org/x",
        "jdbc:mysql://db/x?user=ada&password=MARKER failed",
        "spark.x.password=MARKER",
        'the options {"password": "MARKER"}',
        "https://store/x?sv=1&sig=MARKER&se=2",
        "AccountKey=MARKER;EndpointSuffix=x",
        "Authorization: Bearer MARKERMARKERMARKER",
        "PWD='MARKER'",
        "-----BEGIN PRIVATE KEY-----\nMARKER\n-----END PRIVATE KEY-----",
    ],
)
def test_no_text_shows_a_secret(text: str) -> None:
    assert "MARKER" not in without_secrets(text)
    assert "***" in without_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "q5 REGRESSION: 1.08 times the CPU of the baseline",
        "build pypi:4.3.0 at https://example.org:8080/a.tgz",
        "spark.sql.shuffle.partitions=400 instead of 200",
        "the token is no longer valid",
    ],
)
def test_a_text_without_a_secret_is_left_alone(text: str) -> None:
    assert without_secrets(text) == text
