"""Find secrets: by the name of a setting, or by the form of its value under any name.

This is the only list of the package; Spark's own (`spark.redaction.regex`) is part of it. A keyed
fingerprint replaces a secret where it enters: two secrets have two fingerprints, and nobody can
guess a secret from its fingerprint.
"""

import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from pathlib import Path

HIDDEN = "***"
#: Names the file with the key of the fingerprints, for a job.
KEY_VARIABLE = "NEXMARK_FINGERPRINT_KEY"

_NAMES = (
    r"secret|password|passwd|passphrase|passcode|token|access[._-]?key|jaas|webhook",
    # of a key, not of its file, its size or its algorithm
    r"(?:account|private|api|encryption|shared|signing|master|storage)[._-]?key(?![a-z])",
    r"[._-]key$",
    r"(?<!security\.)credential(?!s?[._-]?provider)",
    r"pwd(?![a-z])|(?<!by)pass(?![a-z])",
    r"(?:^|[._-])(?:sas|sig|signature|authorization)(?:$|[._-])",
)
_ASSIGNED = (
    r"(?:secret|password|passwd|pwd|passphrase|token|access_?key|account_?key|shared_?access_?key"
    r"|api_?key|client_?key|credential|(?<![a-z])sig|signature)"
)
#: The text between a name and its value; a value is more than a word about it.
_IS = r"[\"']?\s*[=:]\s*"
_VALUES = (
    rf"{_ASSIGNED}[\"']?\s*=\s*[\"']?[^\s\"'&;,]",
    rf"[\"']{_ASSIGNED}[\"']\s*:\s*[\"'][^\"']",
    r"://[^\s/:@]*:[^\s/@]+@",
    r"(?:akia|asia)[0-9a-z]{16}(?![0-9a-z])",
    r"-----begin [a-z ]*private key",
    r"sharedaccesssignature",
    r"bearer\s+[\w.~+/=-]{12}",
    r"eyj[\w-]{8,}\.eyj[\w-]{8,}\.",
    r"gh[pousr]_[0-9a-z]{30}|glpat-[\w-]{16}|xox[abprs]-[\w-]{10}",
    r"hooks\.slack\.com/services/",
)
#: As texts, for a JSON schema.
SECRET_NAMES, SECRET_VALUES = (f"(?i){'|'.join(each)}" for each in (_NAMES, _VALUES))
_NAME, _VALUE = re.compile(SECRET_NAMES), re.compile(SECRET_VALUES)
#: The look of a secret access key of AWS: forty of these, of every kind, and no path.
_AWS = re.compile(r"(?!/)(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9/+]{40}")
_FINGERPRINT = re.compile(r"\*\*\*(?:-[0-9a-f]{12})?")

#: For Spark's `spark.redaction.regex`, which it holds against names and values alike.
SPARK_REGEX = "(?i)" + "|".join((*_NAMES, *_VALUES))

_IN_TEXT = (
    re.compile(r"(://[^:/@\s]*:)\S*(?=@)"),
    re.compile(rf"([\w.-]*{_ASSIGNED}[\w.-]*{_IS})(?:\"[^\"]*\"|'[^']*'|[^\s&;,\"']+)", re.I),
    re.compile(r"(bearer\s+)[\w.~+/=-]{12,}", re.I),
    re.compile(r"()(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])"),
    re.compile(r"()eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),
    re.compile(r"()(?:gh[pousr]_[0-9A-Za-z]{30,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,})"),
    re.compile(r"(hooks\.slack\.com/services/)[\w/-]+", re.I),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|$)", re.S),
)

#: Every match of these contains it. Most texts do not, so one cheap search is enough for them.
_LIKELY = re.compile(
    rf"://|{_ASSIGNED}|bearer|akia|asia|eyj|gh[pousr]_|glpat-|xox|hooks\.slack"
    r"|begin [a-z ]*private",
    re.I,
)


def is_secret(name: str, value: str) -> bool:
    """Return whether a setting is a secret; an empty value or a fingerprint is none."""
    if not value or _FINGERPRINT.fullmatch(value) or value.lower() in ("true", "false"):
        return False
    return bool(_NAME.search(name) or _VALUE.search(value) or _AWS.fullmatch(value))


def is_fingerprint(value: str) -> bool:
    """Return whether a value is the fingerprint of a secret."""
    return bool(_FINGERPRINT.fullmatch(value))


def fingerprint(value: str, key: bytes) -> str:
    """Return the fingerprint of a secret; without a key it is the same for all secrets."""
    if not key:
        return HIDDEN
    return f"{HIDDEN}-{hmac.new(key, value.encode(), hashlib.sha256).hexdigest()[:12]}"


def redacted(settings: Mapping[str, str], key: bytes) -> dict[str, str]:
    """Return settings with a fingerprint in place of every secret."""
    hidden = {
        name: fingerprint(value, key) for name, value in settings.items() if is_secret(name, value)
    }
    return {**settings, **hidden}


def without_secrets(text: str) -> str:
    """Return a text with `***` in place of whatever looks like a secret."""
    if not _LIKELY.search(text):
        return text
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def key_of_environment() -> bytes:
    """Return the key from the file that the environment names; empty if there is none."""
    try:
        return Path(os.environ.get(KEY_VARIABLE, "")).read_bytes()
    except OSError:
        return b""
