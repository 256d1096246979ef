"""Expectations that a person adds to the suite of a query: `include/conf/expectations/q5.json`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from nexmark.config import paths
from nexmark.config.document import Document, read
from nexmark.config.fields import KNOWN_QUERIES, Model
from nexmark.errors import suggest


def _lists(value: Any) -> Any:
    """Return a value with lists, as Great Expectations has them, in place of tuples."""
    if isinstance(value, dict):
        return {name: _lists(each) for name, each in value.items()}
    return [_lists(each) for each in value] if isinstance(value, tuple) else value


Arguments = Annotated[dict[str, Any], BeforeValidator(_lists)]


class AddedExpectation(Model):
    """An expectation in the format of Great Expectations.

    Attributes:
        type: its class in snake case, e.g. ``expect_column_values_to_be_between``.
        kwargs: its arguments, e.g. the column.
        description: the rule for a person; messages end with it.
        severity: Great Expectations shows it; any failure makes the result wrong.
        meta: its ``name`` begins the message of a failure.
        notes: Great Expectations shows them.
        id: the id in an exported suite; without use here.
        where: file, line and key, for messages.
    """

    type: str
    kwargs: Arguments = Field(default_factory=dict)
    description: str | None = None
    severity: Literal["critical", "warning", "info"] | None = None
    meta: Arguments = Field(default_factory=dict)
    notes: str | tuple[str, ...] | None = None
    id: str | None = None
    where: str


_SUITE_KEYS = ("expectations", "name", "meta", "notes", "id", "suite_parameters")


def load_added(query: str, directory: Path | None = None) -> tuple[AddedExpectation, ...]:
    """Return the expectations that a person added to the suite of `query`.

    ConfigError says which line of the file is wrong.
    """
    path = (directory or paths.conf_dir()) / "expectations" / f"{query}.json"
    return added_of(path) if path.exists() else ()


def added_of(path: Path) -> tuple[AddedExpectation, ...]:
    """Return the expectations of a file; ConfigError says which line of it is wrong."""
    return _entries(read(path))


def check_files(directory: Path) -> None:
    """Raise ConfigError for the first mistake in the files of added expectations."""
    for path in sorted((directory / "expectations").glob("*.json")):
        document = read(path)
        if path.stem not in KNOWN_QUERIES:
            remedy = suggest(path.stem, KNOWN_QUERIES)
            raise document.error((), f"the file's name is no query; {remedy}")
        _entries(document)


def _entries(document: Document) -> tuple[AddedExpectation, ...]:
    for key in document.data:
        document.look_up((key,), "key", key, _SUITE_KEYS)
    listed = document.data.get("expectations")
    if not isinstance(listed, tuple):
        raise document.error(
            ("expectations",), "expected a list of expectations; write [] for none"
        )
    return tuple(_entry(document, number, value) for number, value in enumerate(listed))


def _entry(document: Document, number: int, value: object) -> AddedExpectation:
    key = ("expectations", number)
    if not isinstance(value, Mapping):
        raise document.error(key, f"expected keys and values, got {value!r}; write type and kwargs")
    if "where" in value:
        raise document.error((*key, "where"), "unknown key 'where'; remove it")
    where = document.where(key)
    return document.validated(key, AddedExpectation, {**value, "where": where})
