"""`include/conf/notifications.yaml`: the Airflow notifiers to call when a night is red."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator

from nexmark.config import paths
from nexmark.config.document import Document, Key, read
from nexmark.config.fields import Model
from nexmark.errors import ConfigError
from nexmark_jobs.redaction import is_secret

FILE = "notifications.yaml"


def _import_path(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", text):
        raise ValueError("must be the import path of a class, as package.module.Class; correct it")
    return text


class Notification(Model):
    """One notifier: the import path of its class, and the arguments to create it with."""

    notifier: Annotated[str, AfterValidator(_import_path)]
    kwargs: Mapping[str, Any] = Field(default_factory=dict)
    where: str = ""

    @field_validator("kwargs")
    @classmethod
    def _no_secret(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        if name := _secret_in(value):
            raise ValueError(
                f"{name} is a secret; put it into an Airflow connection, and name that here"
            )
        return value

    def error(self, problem: str) -> ConfigError:
        """The error to raise for this entry."""
        return ConfigError(f"{self.where}: {problem}")


def load_notifications(directory: Path | None = None) -> list[Notification]:
    """The notifiers that are configured; none where there is no such file.

    Raises ConfigError, as `load` does.
    """
    path = (directory or paths.conf_dir()) / FILE
    if not path.exists():
        return []
    document = read(path)
    for name in document.data:
        if name != "notifications":
            raise document.error((name,), f"unknown key {name!r}; the only one is notifications")
    entries = document.data.get("notifications") or ()
    if not isinstance(entries, tuple):
        raise document.error(("notifications",), "expected a list; write each entry after a dash")
    return [_entry(document, place, entry) for place, entry in enumerate(entries)]


def _entry(document: Document, place: int, entry: object) -> Notification:
    key: Key = ("notifications", place)
    if not isinstance(entry, dict) or set(entry) - {"notifier", "kwargs"}:
        raise document.error(key, "expected notifier and kwargs, nothing else; see the comments")
    where = str(document.error(key, "")).removesuffix(":")
    lists = json.loads(json.dumps(entry))  # in place of tuples: notifiers expect lists
    return document.validated(key, Notification, {**lists, "where": where})


def _secret_in(value: Any, name: str = "") -> str:
    """The name of the first secret in a notifier's arguments, at any depth, or ''."""
    if isinstance(value, Mapping):
        return next((x for x in (_secret_in(v, str(k)) for k, v in value.items()) if x), "")
    if isinstance(value, list | tuple):
        return next((x for x in (_secret_in(v, name) for v in value) if x), "")
    text = "" if value is None else str(value)
    told_by = "" if name.endswith("conn_id") else name  # the name of a connection is none
    return name if is_secret(told_by, text) else ""
