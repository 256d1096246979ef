"""What the models of `include/conf` are made of."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Model(BaseModel):
    """Strict and frozen: no unknown key, no silent conversion, no change after loading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _memory(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"[1-9][0-9]*[mg]", value):
        return value
    raise ValueError(f"{value!r} is not an amount of memory; write it like 768m or 4g")


def _address(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", value):
        return value
    raise ValueError(f"{value!r} is not an address; write a host name or an IPv4 address")


def _path(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+", value):
        return value
    raise ValueError(
        f"{value!r} is not a plain absolute path; write it like /opt/nexmark "
        "(letters, digits, '.', '_' and '-' only)"
    )


def _web_address(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", value):
        return value
    raise ValueError(
        f"{value!r} is not the address of a web server; write it like http://history:18080"
    )


def mebibytes(memory: str) -> int:
    """An amount of memory like `768m` or `4g` in MiB."""
    return int(memory[:-1]) * (1024 if memory.endswith("g") else 1)


Positive: TypeAlias = Annotated[int, Field(gt=0)]
Port: TypeAlias = Annotated[int, Field(ge=1024, le=65535)]
Memory: TypeAlias = Annotated[str, BeforeValidator(_memory)]
Address: TypeAlias = Annotated[str, BeforeValidator(_address)]
AbsolutePath: TypeAlias = Annotated[str, BeforeValidator(_path)]
WebAddress: TypeAlias = Annotated[str, BeforeValidator(_web_address)]

__all__ = [
    "AbsolutePath",
    "Address",
    "Memory",
    "Model",
    "Port",
    "Positive",
    "WebAddress",
    "mebibytes",
]
