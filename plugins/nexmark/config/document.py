"""A YAML file read together with the line of every key, so that an error can say where it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from nexmark.config.errors import ConfigError

Key: TypeAlias = tuple[str | int, ...]
Data: TypeAlias = "str | int | float | bool | tuple[Data, ...] | dict[str, Data] | None"


@dataclass(frozen=True)
class Document:
    """The content of one file; `lines` maps the path of every key and item to its line."""

    path: Path
    data: dict[str, Data]
    lines: Mapping[Key, int]

    def error(self, key: Key, problem: str) -> ConfigError:
        """The error to raise for `key`; its line is that of the nearest key that exists."""
        known = key
        while known and known not in self.lines:
            known = known[:-1]
        dotted = ".".join(str(part) for part in key)
        where = f"{display(self.path)}:{self.lines.get(known, 1)}"
        return ConfigError(f"{where}: {dotted}: {problem}" if dotted else f"{where}: {problem}")


def display(path: Path) -> str:
    """`path` as a person at the prompt would write it: relative where it is below."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def read(path: Path) -> Document:
    """Read `path`.

    Raises ConfigError for a file that is missing, unreadable, not YAML, not a mapping, or
    that has a key twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(
            f"{display(path)}: the file is missing; restore it or set NEXMARK_CONF to its directory"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{display(path)}: cannot be read: {error}; make it readable") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(
            f"{display(path)}:{line}: not valid YAML: {error.problem or error.context}; "
            "correct the line or the one before it"
        ) from None
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise ConfigError(f"{display(path)}: not valid YAML: {problem}; correct it") from None
    reader = _Reader(path)
    data = reader.value(node, ()) if node is not None else {}
    if not isinstance(data, dict):
        raise ConfigError(f"{display(path)}:1: expected keys and values; see the comments there")
    return Document(path, data, reader.lines)


class _Reader:
    """Turns YAML nodes into plain values and remembers where each one stood."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Key, int] = {}
        self._scalars = yaml.constructor.SafeConstructor()
        self._open: list[yaml.Node] = []

    def value(self, node: yaml.Node, key: Key) -> Data:
        self.lines.setdefault(key, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, key)
        if any(node is outer for outer in self._open):
            raise self._error(node, key, "an alias to a part of itself; write the value out")
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, key)
            return tuple(self.value(item, (*key, i)) for i, item in enumerate(node.value))
        finally:
            self._open.pop()

    def _scalar(self, node: yaml.ScalarNode, key: Key) -> Data:
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            raise self._error(node, key, f"cannot read {node.value!r}; put it in quotes") from None
        if value is None or isinstance(value, (str, int, float, bool)):
            return value
        return str(node.value)

    def _mapping(self, node: yaml.MappingNode, key: Key) -> dict[str, Data]:
        values: dict[str, Data] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.value == "<<":
                raise self._error(key_node, key, "keys must be plain names; write the keys out")
            name = key_node.value
            inner = (*key, name)
            if name in values:
                first = self.lines[inner]
                problem = f"the key is there twice (first on line {first}); remove one"
                raise self._error(key_node, inner, problem)
            self.lines[inner] = key_node.start_mark.line + 1
            values[name] = self.value(value_node, inner)
        return values

    def _error(self, node: yaml.Node, key: Key, problem: str) -> ConfigError:
        return Document(self.path, {}, {key: node.start_mark.line + 1}).error(key, problem)


__all__ = ["Data", "Document", "Key", "display", "read"]
