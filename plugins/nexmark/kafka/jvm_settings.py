"""Translate the settings of a librdkafka client into those for Kafka's own client for the JVM.

This package connects to Kafka with librdkafka, and an Airflow connection has librdkafka's settings.
Queries connect with Kafka's client for the JVM. A setting that only one of the two has is refused:
with it a query would connect in another way than preflight does, or not at all.

    librdkafka                      JVM
    security.protocol               the same
    sasl.mechanism(s)               sasl.mechanism: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
    sasl.username, sasl.password    sasl.jaas.config
    ssl.ca.location, .pem           ssl.truststore.certificates
    ssl.certificate.location, .pem  ssl.keystore.certificate.chain
    ssl.key.location, .pem          ssl.keystore.key, without ssl.key.password
    ssl.keystore.location           both of these, without ssl.keystore.password
    ssl.endpoint.identification.algorithm  the same; none is an empty text
    client.dns.lookup               the same

Certificates and keys are passed as texts, because hosts of the cluster do not have the files.
"""

import json
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.kafka import KafkaError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

_PREFIX = "spark.nexmark.kafka."
_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}
_LOGIN = "org.apache.kafka.common.security.{module} required username={name} password={word};"
_IMPORTED = (
    "bootstrap.servers",
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.username",
    "sasl.password",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.key.location",
    "ssl.key.pem",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.endpoint.identification.algorithm",
    "client.dns.lookup",
)
#: Settings of one client: its group, how it fetches, sends and waits, what it logs. Queries have
#: `spark.nexmark.kafka.X` in engines.yaml.
_OF_ONE_CLIENT = (
    "group.id",
    "client.id",
    "client.rack",
    "auto.offset.reset",
    "enable.auto.commit",
    "auto.commit.interval.ms",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "max.poll.interval.ms",
    "socket.timeout.ms",
    "socket.keepalive.enable",
    "acks",
    "request.timeout.ms",
    "message.timeout.ms",
    "linger.ms",
    "compression.type",
    "retries",
    "enable.idempotence",
    "statistics.interval.ms",
    "debug",
    "log_level",
)
_HARMLESS = {"enable.ssl.certificate.verification": "true"}
"""Settings that the JVM's client does not have, with the value that it behaves by."""


def spark_confs(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the confs with which `run_query.py` connects as a client with these settings does.

    Raises:
        KafkaError: The JVM's client has no counterpart for a setting, or for its value.
    """
    known = {*_IMPORTED, *_OF_ONE_CLIENT}
    strange = [
        name
        for name, value in settings.items()
        if name not in known and _HARMLESS.get(name) != value.lower()
    ]
    if strange:
        ways = "connect by a password (PLAIN, SCRAM) or by certificates"
        problem = "the Kafka client of Spark has no counterpart"
        raise KafkaError(f"{', '.join(strange)}: {problem}; take it out, and {ways}")
    confs = {**_names(settings), **_login(settings), **_certificates(settings)}
    return {f"{_PREFIX}{name}": value for name, value in confs.items()}


def _names(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings whose name is the same, or almost, in both clients."""
    words: dict[str, Callable[[str], str]] = {
        "security.protocol": str.upper,
        "client.dns.lookup": str,
        "ssl.endpoint.identification.algorithm": lambda name: (
            "" if name.lower() == "none" else name
        ),
    }
    confs = {name: word(settings[name]) for name, word in words.items() if name in settings}
    mechanism = _mechanism(settings)
    return {**confs, "sasl.mechanism": mechanism} if mechanism else confs


def _mechanism(settings: Mapping[str, str]) -> str:
    return settings.get("sasl.mechanisms", settings.get("sasl.mechanism", ""))


def _login(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a login by password."""
    mechanism = _mechanism(settings)
    is_used = settings.get("security.protocol", "").upper().startswith("SASL_")
    if mechanism not in _MODULES and (is_used or mechanism):
        problem = f"is {mechanism}" if mechanism else "is missing"
        raise KafkaError(f"sasl.mechanism: {problem}; it has to be one of {', '.join(_MODULES)}")
    if "sasl.username" not in settings:
        return {}
    words = [_quoted(name, settings.get(name, "")) for name in ("sasl.username", "sasl.password")]
    module = _MODULES[mechanism or "PLAIN"]
    return {"sasl.jaas.config": _LOGIN.format(module=module, name=words[0], word=words[1])}


def _quoted(name: str, value: str) -> str:
    r"""Quote a text for Java's StreamTokenizer, which reads some escapes of JSON, but not \u."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
        raise KafkaError(f"{name}: has a control character, which Spark cannot be given; change it")
    return json.dumps(value, ensure_ascii=False)


def _certificates(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the trusted certificates, and of the client's own with its key."""
    confs = {}
    if trusted := _pem(settings, "ssl.ca"):
        confs = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
    key = _pem(settings, "ssl.key")
    client = {"ssl.keystore.certificate.chain": _pem(settings, "ssl.certificate")}
    if key:
        client["ssl.keystore.key"] = _plain_key(key, settings.get("ssl.key.password"))
    elif "ssl.keystore.location" in settings:
        password = settings.get("ssl.keystore.password")
        client = _of_keystore(settings["ssl.keystore.location"], password)
    if any(client.values()):
        if not client.get("ssl.keystore.key") or not client["ssl.keystore.certificate.chain"]:
            raise KafkaError("ssl.certificate, ssl.key: one is without the other; give both")
        confs |= {"ssl.keystore.type": "PEM", **client}
    return confs


def _pem(settings: Mapping[str, str], name: str) -> str:
    """Return the text of the setting `name`.pem, or of the file `name`.location, or ""."""
    if f"{name}.pem" in settings:
        return settings[f"{name}.pem"]
    path = settings.get(f"{name}.location")
    if path is None:
        return ""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(f"{name}.location", path, error) from None
    if "-----BEGIN " not in text:
        raise KafkaError(f"{name}.location: {path} is no PEM file; convert it with openssl")
    return text


def _unreadable(name: str, path: str, error: Exception) -> KafkaError:
    why = error.strerror if isinstance(error, OSError) else str(error)
    return KafkaError(f"{name}: {path} cannot be read: {why}; name a file that can")


def _plain_key(text: str, password: str | None) -> str:
    """Return a private key in the one form that every JVM reads: PKCS #8 without a password."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    word = password.encode() if password and "ENCRYPTED" in text else None
    try:
        return _as_text(load_pem_private_key(text.encode(), word))
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise KafkaError(f"ssl.key: cannot be read: {error}; look at ssl.key.password") from None


def _of_keystore(path: str, password: str | None) -> dict[str, str]:
    """Return the certificates and the key in a PKCS #12 file, as settings of the JVM's client."""
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        store = load_pkcs12(Path(path).read_bytes(), password.encode() if password else None)
    except (OSError, ValueError) as error:
        raise _unreadable("ssl.keystore.location", path, error) from None
    chain = [each.certificate for each in (store.cert, *store.additional_certs) if each]
    return {
        "ssl.keystore.certificate.chain": "".join(
            each.public_bytes(Encoding.PEM).decode() for each in chain
        ),
        "ssl.keystore.key": _as_text(store.key) if store.key else "",
    }


def _as_text(key: "PrivateKeyTypes") -> str:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
