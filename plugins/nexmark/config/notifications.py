"""`include/conf/notifications.yaml`: who is told of a red night, and by which Airflow notifier."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from nexmark.config import paths
from nexmark.config.document import Document, Key, read
from nexmark.config.errors import ConfigError
from nexmark.config.fields import Model

FILE = "notifications.yaml"
_SECRET = re.compile(r"password|passwd|secret|token|api_?key|credential", re.IGNORECASE)


class Notification(Model):
    """One notifier: the import path of its class, and what it is made with."""

    notifier: str = Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")
    kwargs: Mapping[str, Any] = Field(default_factory=dict)
    where: str = ""

    @field_validator("kwargs")
    @classmethod
    def _no_secret(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in value:
            if _SECRET.search(name):
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
    where = str(document.error(key, "")).removesuffix(": ")
    try:
        return Notification.model_validate({**_lists(entry), "where": where})
    except ValidationError as errors:
        error = errors.errors(include_url=False)[0]
        at = (*key, *(str(part) for part in error["loc"]))
        problem = str(error.get("ctx", {}).get("error", error["msg"]))
        if error["type"] == "missing":
            problem = "the key is missing; add it"
        elif error["type"] == "string_pattern_mismatch":
            problem = "must be the import path of a class, as package.module.Class; correct it"
        raise document.error(at, problem) from None


def _lists(value: Any) -> Any:
    """The value with lists for tuples: what notifiers are used to."""
    if isinstance(value, dict):
        return {name: _lists(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_lists(item) for item in value]
    return value


__all__ = ["FILE", "Notification", "load_notifications"]
