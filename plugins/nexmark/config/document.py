"""A YAML file read together with the line of every key, so that an error can say where it is."""

import math
import os
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from nexmark.errors import ConfigError, KeyedError, suggest

Key: TypeAlias = tuple[str | int, ...]
Data: TypeAlias = "str | int | float | bool | tuple[Data, ...] | dict[str, Data] | None"

_M = TypeVar("_M", bound=BaseModel)


@dataclass(frozen=True)
class Document:
    """The content of one file; `lines` maps the path of every key and item to its line."""

    path: Path
    data: dict[str, Data]
    lines: Mapping[Key, int]

    def where(self, key: Key) -> str:
        """Return the file, the line of the nearest key that exists, and `key`."""
        above = (key[:length] for length in range(len(key), -1, -1))
        line = next((self.lines[each] for each in above if each in self.lines), 1)
        place = f"{display(self.path)}:{line}"
        return ": ".join([place, ".".join(map(str, key))] if key else [place])

    def error(self, key: Key, problem: str) -> ConfigError:
        """Return the error to raise for `key`."""
        return ConfigError(f"{self.where(key)}: {problem}")

    def validated(self, key: Key, model: type[_M], value: Mapping[str, Any]) -> _M:
        """Return the value at `key` as `model`; ConfigError for the first thing that is wrong."""
        try:
            return model.model_validate(value)
        except ValidationError as errors:
            error = cast(Mapping[str, Any], errors.errors(include_url=False)[0])
            at = place_of(error)
            raise self.error((*key, *at), problem_of(error, model, at)) from None

    def look_up(self, key: Key, kind: str, name: str, known: Iterable[str]) -> None:
        """Raise ConfigError if a name is not known.

        Args:
            key: Where the name is in the document.
            kind: What it names, for the message.
            name: The name.
            known: The names that there are.
        """
        if name not in known:
            raise self.error(key, f"unknown {kind} {name!r}; {suggest(name, known)}")


def display(path: Path) -> str:
    """Return `path` as a person would type it: relative if it is below the current directory."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def read_text(path: Path) -> str:
    """Return the text of `path`; ConfigError if it is missing or cannot be read as UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        remedy = "restore it or set NEXMARK_CONF to its directory"
        raise ConfigError(f"{display(path)}: the file is missing; {remedy}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        problem = "cannot be read: it is no text in UTF-8; save it as such"
        raise ConfigError(f"{display(path)}:{line}: {problem}") from None
    except OSError as error:
        raise ConfigError(f"{display(path)}: cannot be read: {error}; make it readable") from None


def read(path: Path) -> Document:
    """Read `path`.

    Raises ConfigError for a file that is missing, unreadable, not YAML, not a mapping, or
    that has a key twice.
    """
    try:
        node = _compose(read_text(path))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = f"not valid YAML: {error.problem or error.context}"
        remedy = "correct the line or the one before it"
        raise ConfigError(f"{display(path)}:{line}: {problem}; {remedy}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{display(path)}: not valid YAML: {error}; correct it") from None
    reader = _Reader(path)
    data = reader.value(node, ()) if node is not None else {}
    if not isinstance(data, dict):
        raise ConfigError(f"{display(path)}:1: expected keys and values; see the comments there")
    return Document(path, data, reader.lines)


def _compose(text: str) -> yaml.Node | None:
    """Return the root node of a text; YAMLError if it is not YAML.

    Every task of a night reads all files of the configuration: the parser in C takes a tenth of the
    time. Where it refuses a text, the other one says why, in words that we know.
    """
    try:
        return yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError:
        return yaml.compose(text, Loader=yaml.SafeLoader)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DIGITS = "0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:_[0-9]{3})+"
_NUMBER = "write a plain number"
#: What YAML 1.1 takes for more than a person does, as 010 for 8, 1:30 for 90 and `yes` for true:
#: the spellings that are read as they look, and what to do about another one.
_PLAIN = {
    "tag:yaml.org,2002:int": (f"[-+]?(?:{_DIGITS})", _NUMBER),
    "tag:yaml.org,2002:float": (
        rf"[-+]?(?:(?:{_DIGITS})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?",
        _NUMBER,
    ),
    "tag:yaml.org,2002:bool": ("true|True|TRUE|false|False|FALSE", "write true or false"),
    "tag:yaml.org,2002:null": ("null|Null|NULL|", "leave the key out"),
}
_SPARK = "spark."
"""A Spark conf is a text: its digits stay as they are written, as in 0.60."""
_SHOWN = 60
_QUOTES = "or put a text in quotes"


def _misread(written: str, value: object) -> str:
    """Return what is wrong with a spelling that YAML reads as `value`."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{written!r} is no finite number"
    words = {"None": "nothing", "True": "true", "False": "false"}
    return f"{written!r} would be read as {words.get(str(value), value)}"


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
        written = node.value if len(node.value) <= _SHOWN else f"{node.value[:_SHOWN]}..."
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            raise self._error(node, key, f"cannot read {written!r}; put it in quotes") from None
        pattern, plainly = _PLAIN.get(node.tag, ("", ""))
        if plainly and not re.fullmatch(pattern, node.value):
            raise self._error(node, key, f"{_misread(written, value)}; {plainly}, {_QUOTES}")
        if isinstance(value, float) and str(key[-1]).startswith(_SPARK):
            return str(node.value).replace("_", "")
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
                problem = f"the key is there twice (first on line {self.lines[inner]}); remove one"
                raise self._error(key_node, inner, problem)
            self.lines[inner] = key_node.start_mark.line + 1
            values[name] = self.value(value_node, inner)
        return values

    def _error(self, node: yaml.Node, key: Key, problem: str) -> ConfigError:
        return Document(self.path, {}, {key: node.start_mark.line + 1}).error(key, problem)


#: pydantic's error type -> what was expected there.
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "mapping_type": "keys and values",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "none_required": "nothing",
}


def place_of(error: Mapping[str, Any]) -> Key:
    """Return the keys down to the value that is wrong."""
    cause = error.get("ctx", {}).get("error")
    below = cause.keys if isinstance(cause, KeyedError) else ()
    return (*(part for part in error["loc"] if part != "[key]"), *below)


def problem_of(error: Mapping[str, Any], model: type[BaseModel], at: Key) -> str:
    """Return the problem and the remedy."""
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        known = [name for name in _fields(model, at[:-1]) if name != "name"]
        return f"unknown key {at[-1]!r}; {suggest(at[-1], known)}"
    if kind == "missing":
        return "the key is missing; add it"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind in _EXPECTED:
        got = "nothing" if value is None else f"{value!r}"
        quotes = ", in quotes" if kind == "string_type" and value is not None else ""
        return f"expected {_EXPECTED[kind]}, got {got}; write {_EXPECTED[kind]}{quotes}"
    message = error["msg"].replace("Input should", "must").replace("String should", "must")
    return f"{message}, is {value!r}; correct the value"


def _fields(model: type[BaseModel], at: Key) -> list[str]:
    """Return the keys that `model` knows at the path `at`."""
    current: Any = model
    for part in at:
        hints = typing.get_type_hints(current) if isinstance(current, type) else {}
        current = _model_in(hints.get(str(part)))
    return list(current.model_fields) if current is not None else []


def _model_in(hint: Any) -> type[BaseModel] | None:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint
    return next((m for m in map(_model_in, typing.get_args(hint)) if m), None)
