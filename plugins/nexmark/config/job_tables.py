"""The tables of a job that reads files of its own: the part `tables` of a job."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nexmark.config.fields import Model
from nexmark.errors import KeyedError

#: The name of a table: a plain word of SQL.
TABLE_NAME = re.compile(r"[a-z][a-z0-9_]*")
#: Tables of the checks, which read the tables of a job beside them.
CHECK_TABLES = frozenset({"compared", "output", "partition", "reference", "wanted", "written"})
_DELAY = re.compile(r"\d{1,9} (?:millisecond|second|minute|hour|day)s?")
_MOST_ROWS = 100_000_000
_ADDRESS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):/.*", re.DOTALL)
#: Spark's names of the types that a column of a text may have, and how DuckDB calls them.
_TYPES = {
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
}
_OTHER_NAMES = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"},
    **{"real": "float"},
}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\((?P<digits>\d\d?)(?:, ?(?P<scale>\d\d?))?\)")
_MOST_DIGITS = 38


def _delay(value: str) -> str:
    if not _DELAY.fullmatch(value):
        raise ValueError(f"{value!r} is no delay; write it like 10 minutes")
    return value


def _listed(value: object) -> object:
    """Return one path as a list of it; a list of JSON as it is in YAML."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _local(files: tuple[str, ...]) -> tuple[str, ...]:
    """Take paths on this machine; ValueError for an address."""
    for path in files:
        if not path:
            raise ValueError("a path is empty; write it")
        if address := _ADDRESS.fullmatch(path):
            if address["scheme"].lower() == "file":
                raise ValueError(f"{path!r} is an address; write the path alone, as /data/orders")
            problem = f"{path!r} is not on this machine, and only local files are read"
            remedy = "copy them (aws s3 cp --recursive, hdfs dfs -get), and name the copy"
            raise ValueError(f"{problem}; {remedy}")
    return files


Files: TypeAlias = Annotated[
    tuple[str, ...], Field(min_length=1), BeforeValidator(_listed), AfterValidator(_local)
]


def duckdb_type(name: str) -> str:
    """Return how DuckDB calls a type; ValueError for a name that is not among Spark's.

    Args:
        name: Spark's name of the type, in small or capital letters.
    """
    plain = name.strip().lower()
    if decimal := _DECIMAL.fullmatch(plain):
        digits, scale = int(decimal["digits"]), int(decimal["scale"] or 0)
        if 1 <= digits <= _MOST_DIGITS and scale <= digits:
            return f"DECIMAL({digits}, {scale})"
    elif kind := _TYPES.get(_OTHER_NAMES.get(plain, plain)):
        return kind
    known = f'{", ".join(_TYPES)}, or "decimal(10,2)" in quotes, with {_MOST_DIGITS} digits at most'
    raise ValueError(f"{name!r} is no type of Spark that a text is read as; write {known}")


def _types(types: object) -> object:
    for column, name in types.items() if isinstance(types, Mapping) else ():
        try:
            duckdb_type(str(name))
        except ValueError as error:
            raise KeyedError((column,), str(error)) from None
    return types


class JobTable(Model):
    """A table of a job: files that are read in the natural order of their names.

    Attributes:
        files: files, directories and patterns, from the directory of the job's file on, in the
            order in which they are read.
        types: the types of columns of texts, by their names, as Spark calls them.
        event_time: the column of the event time.
        event_time_unit: what numbers in this column count from 1970 on.
        watermark: how much later than newer rows a row may come, as Spark writes it.
        rows_per_batch: how many rows a micro-batch has.
        static: whether it is no stream, but there as a whole from the start.
    """

    files: Files
    types: Annotated[Mapping[str, str], BeforeValidator(_types)] = Field(default_factory=dict)
    event_time: Annotated[str, Field(min_length=1)] | None = None
    event_time_unit: Literal["s", "ms", "us", "ns"] | None = None
    watermark: Annotated[str, AfterValidator(_delay)] | None = None
    rows_per_batch: Annotated[int, Field(ge=1, le=_MOST_ROWS)] = 100_000
    static: bool = False

    @model_validator(mode="after")
    def _times_of_streams(self) -> "JobTable":
        if self.static:
            for name in ("event_time", "event_time_unit", "watermark", "rows_per_batch"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise KeyedError((name,), f"{name} belongs to a stream; remove it, or static")
        elif self.event_time is not None and self.watermark is None:
            problem = "is missing: how much later than newer rows may a row come?"
            raise KeyedError(("watermark",), f"{problem} write it like 10 minutes")
        elif self.event_time is None and (self.watermark or self.event_time_unit):
            problem = "is missing: which column is it for?"
            raise KeyedError(("event_time",), f"{problem} name the column of the event time")
        return self

    def described(self) -> dict[str, object]:
        """Return what the rows of the table and their batches depend on, beside the files.

        It is a part of the formulation, so keys that were added later are there if they are given.
        """
        content = self.model_dump()
        for name in ("types", "event_time_unit"):
            if not content[name]:
                del content[name]
        return content | ({"files": self.files[0]} if len(self.files) == 1 else {})


JobTables: TypeAlias = Mapping[str, JobTable]
