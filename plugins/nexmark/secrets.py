"""Secrets on Airflow's side: `nexmark_jobs.redaction` finds them, this file replaces them.

A Spark conf that is a secret is replaced by a keyed fingerprint when a night is planned: what is
compared, stored and shown knows no more. The key is a file of the home. What stands behind the
fingerprints is read from `include/conf` again when an application is submitted, and has to be what
was planned. It reaches Spark by a file for the owner only, while the application runs.
"""

import contextlib
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nexmark.config import load, paths, profile_path
from nexmark.config.load import conf_entries
from nexmark.errors import NexmarkError
from nexmark.home import make_home, write_private
from nexmark_jobs import redaction
from nexmark_jobs.redaction import HIDDEN, is_fingerprint, is_secret

_KEY_BYTES = 32
#: Shorter ones would blank out words that are none.
_WORTH_HIDING = 4
_known: set[str] = set()


def key_path() -> Path:
    """The file with the key of the fingerprints."""
    return paths.home() / "fingerprint.key"


def load_key() -> bytes:
    """Return the key of the fingerprints; made when it is first needed."""
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


def remember(values: Iterable[str]) -> None:
    """Let `without_secrets` hide these values in this process, whatever stands around them."""
    _known.update(value for value in values if len(value) >= _WORTH_HIDING)


def without_secrets(text: str) -> str:
    """Return a text with the secrets in it blanked out: known ones, and what looks like one."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return redaction.without_secrets(text)


def shown(name: str, value: str) -> str:
    """Return the value of a setting as it may be shown."""
    if is_fingerprint(value):
        return value
    return HIDDEN if is_secret(name, value) else without_secrets(value)


def shown_confs(confs: Mapping[str, Any]) -> str:
    """Return Spark confs as they may be shown, in one line."""
    return ", ".join(f"{name}={shown(str(name), str(value))}" for name, value in confs.items())


def without_any_secret(value: Any) -> Any:
    """Return plain data in which no text has a secret, whoever wrote it there."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {key: _item(key, x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [without_any_secret(x) for x in value]
    return value


def _item(key: Any, value: Any) -> Any:
    """Hide what stands under the name of a Spark conf that is a secret."""
    if isinstance(value, str) and str(key).startswith("spark."):
        return shown(str(key), value)
    return without_any_secret(value)


_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})


def split(confs: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the confs that all may see, and the fingerprints of those that nobody may."""
    secret = {name: value for name, value in confs.items() if is_fingerprint(value)}
    return {name: value for name, value in confs.items() if name not in secret}, secret


@contextlib.contextmanager
def private_properties(
    submission: Mapping[str, Any], of_connection: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The properties file of an application, with its secrets; it is gone when that has ended.

    `of_connection` are confs out of an Airflow connection, all of them taken for secrets.
    NexmarkError if a secret is no longer the one that the night was planned with.
    """
    shared = Path(submission["properties_file"])
    text = shared.read_text(encoding="utf-8")
    _hide(properties(text))
    planned: Mapping[str, str] = submission["secret_confs"]
    if not planned and not of_connection:
        yield str(shared)
        return
    confs = {**(of_connection or {}), **_behind(submission["engine"], planned)}
    _hide(confs)
    lines = "".join(f"{name}={_value(value)}\n" for name, value in confs.items())
    private = Path(submission["private"]) / f"{submission['label'].replace(' ', '-')}.conf"
    try:
        write_private(private, f"{text}\n{lines}")
        yield str(private)
    finally:
        private.unlink(missing_ok=True)


def properties(text: str) -> dict[str, str]:
    """The confs in the text of a properties file."""
    return {name: value for _, name, value in conf_entries(text)}


def profile_confs(profile: str) -> dict[str, str]:
    """The Spark confs of a conf profile."""
    return properties(profile_path(profile).read_text(encoding="utf-8"))


def _behind(engine: str, planned: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets behind the fingerprints in an engine's confs."""
    known = load().engines.get(engine)
    confs = {} if known is None else {name: known.conf.get(name, "") for name in planned}
    now = fingerprinted(confs)
    for name, value in planned.items():
        if now.get(name) != value:
            problem = f"{name} of {engine} is not what it was when the night was planned"
            raise NexmarkError(f"include/conf/engines.yaml: {problem}; start the DAG run again")
    return confs


def _hide(confs: Mapping[str, str]) -> None:
    """Let no message and no log of this task show the secrets among `confs`."""
    from airflow.sdk.log import mask_secret

    values = [value for name, value in confs.items() if is_secret(name, value)]
    remember(values)
    for value in values:
        mask_secret(value)


def _value(value: str) -> str:
    """A value as Java's properties files have it."""
    return ("\\" if value[:1] == " " else "") + value.translate(_ESCAPED)
