"""Replace secrets on Airflow's side; `nexmark_jobs.redaction` finds them.

When a night is planned, the value of a Spark conf that is a secret is replaced by a keyed
fingerprint. From then on only the fingerprint is compared, stored and shown. The key is a file in
the home.
"""

import contextlib
import secrets
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from nexmark.config import paths
from nexmark.home import make_home
from nexmark.model import build_name
from nexmark_jobs import redaction
from nexmark_jobs.redaction import HIDDEN, is_fingerprint, is_secret

_KEY_BYTES = 32
#: The shortest secret that is hidden, in characters: a shorter one would hide other words, too.
_WORTH_HIDING = 4
#: The longest text that is searched only once, in characters.
_SHORT = 100
_known: set[str] = set()


def key_path() -> Path:
    """Return the file with the key of the fingerprints."""
    return paths.home() / "fingerprint.key"


def load_key() -> bytes:
    """Return the key of the fingerprints; write it to its file first, if there is none."""
    path = key_path()
    if not path.exists():
        make_home()
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            with contextlib.suppress(FileExistsError):  # another process was quicker
                path.hardlink_to(file.name)
    return path.read_bytes()


def fingerprinted(confs: Mapping[str, str]) -> dict[str, str]:
    """Return Spark confs with a fingerprint in place of every secret."""
    if not any(is_secret(name, value) for name, value in confs.items()):
        return dict(confs)
    return redaction.redacted(confs, load_key())


def hidden_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of a program with a fingerprint in place of secrets, and the secrets.

    A secret has its name before it (`--password=...`), or the form of one.
    """
    shown, hidden = [], []
    for argument in arguments:
        name, assigned, value = argument.partition("=")
        secret = value if assigned and is_secret(name, value) else ""
        if not secret and is_secret("", argument):
            name, assigned, secret = "", "", argument
        if secret:
            hidden.append(secret)
            argument = f"{name}{assigned}{redaction.fingerprint(secret, load_key())}"
        shown.append(argument)
    return shown, hidden


def remember(values: Iterable[str]) -> None:
    """Make `without_secrets` hide these values in every text, as long as this process runs."""
    _known.update(value for value in values if len(value) >= _WORTH_HIDING)


def without_secrets(text: str) -> str:
    """Return a text without secrets: known ones are hidden, and words that look like a secret."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return _hidden(text) if len(text) <= _SHORT else redaction.without_secrets(text)


@lru_cache(maxsize=4096)
def _hidden(text: str) -> str:
    """Return a short text without secrets; the pages show the same words many times."""
    return redaction.without_secrets(text)


def shown(name: str, value: str) -> str:
    """Return the value of a setting as a person may see it, without a secret."""
    if is_fingerprint(value):
        return value
    return HIDDEN if is_secret(name, value) else without_secrets(value)


def shown_build(version: str, source: str, build: str) -> str:
    """Return the name of a build as a person may see it, without secrets; see ``build_name``."""
    return without_secrets(build_name(version, source, build))


def shown_confs(confs: Mapping[str, Any]) -> str:
    """Return Spark confs in one line as a person may see them, without secrets."""
    return ", ".join(f"{name}={shown(str(name), str(value))}" for name, value in confs.items())


def without_any_secret(value: Any) -> Any:
    """Return mappings, lists and texts with the secrets of all texts hidden."""
    if isinstance(value, str):
        return without_secrets(value)
    if value is None or isinstance(value, int | float):
        return value  # most values of a chart; to ask for a mapping takes longer
    if isinstance(value, Mapping):
        return {key: _item(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_any_secret(item) for item in value]
    return value


def _item(key: Any, value: Any) -> Any:
    """Return the value of a key, hidden if the key is the name of a secret Spark conf."""
    if isinstance(value, str) and str(key).startswith("spark."):
        return shown(str(key), value)
    return without_any_secret(value)
