"""A certificate of 127.0.0.1 that signs itself, for a broker and its clients."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

WORD = "key-word"


@dataclass(frozen=True)
class Certificate:
    """The certificate and its key, in files and in texts."""

    directory: Path
    text: str
    plain_key: str

    @classmethod
    def made(cls, directory: Path) -> Certificate:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nexmark")])
        now = datetime.now(UTC)
        host = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        made = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([host]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        text = made.public_bytes(Encoding.PEM).decode()
        word = BestAvailableEncryption(WORD.encode())
        new, old, nothing = PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        plain = key.private_bytes(Encoding.PEM, new, nothing)
        files = {
            **{"certificate.pem": text.encode(), "key.pem": plain},
            "encrypted.pem": key.private_bytes(Encoding.PEM, new, word),
            "old.pem": key.private_bytes(Encoding.PEM, old, nothing),
            "store.p12": pkcs12.serialize_key_and_certificates(b"nexmark", key, made, None, word),
        }
        for file, content in files.items():
            (directory / file).write_bytes(content)
        return cls(directory, text, plain.decode())

    @property
    def file(self) -> Path:
        return self.directory / "certificate.pem"

    def _with_key(self, name: str) -> dict[str, str]:
        key = str(self.directory / name)
        return {"ssl.certificate.location": str(self.file), "ssl.key.location": key}

    @property
    def as_files(self) -> dict[str, str]:
        return self._with_key("key.pem")

    @property
    def with_encrypted_key(self) -> dict[str, str]:
        return {**self._with_key("encrypted.pem"), "ssl.key.password": WORD}

    @property
    def with_old_key(self) -> dict[str, str]:
        """A key in the older form, which Java does not read."""
        return self._with_key("old.pem")

    @property
    def as_texts(self) -> dict[str, str]:
        own = {"ssl.certificate.pem": self.text, "ssl.key.pem": self.plain_key}
        return {"ssl.ca.pem": self.text, **own}

    @property
    def as_keystore(self) -> dict[str, str]:
        store = str(self.directory / "store.p12")
        return {"ssl.keystore.location": store, "ssl.keystore.password": WORD}
