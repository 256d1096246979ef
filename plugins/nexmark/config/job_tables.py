"""The tables of a job that reads files of its own: the part `tables` of a job."""

import re
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from nexmark.config.fields import Model
from nexmark.errors import KeyedError

#: The name of a table: a plain word of SQL.
TABLE_NAME = re.compile(r"[a-z][a-z0-9_]*")
_DELAY = re.compile(r"\d{1,9} (?:millisecond|second|minute|hour|day)s?")
_MOST_ROWS = 100_000_000


def _delay(value: str) -> str:
    if not _DELAY.fullmatch(value):
        raise ValueError(f"{value!r} is no delay; write it like 10 minutes")
    return value


class JobTable(Model):
    """A table of a job: files that are read in the order of their names.

    Attributes:
        files: a file, a directory or a pattern, from the directory of the job's file on.
        event_time: the column of the event time.
        watermark: how much later than newer rows a row may come, as Spark writes it.
        rows_per_batch: how many rows a micro-batch has.
        static: whether it is no stream, but there as a whole from the start.
    """

    files: Annotated[str, Field(min_length=1)]
    event_time: Annotated[str, Field(min_length=1)] | None = None
    watermark: Annotated[str, AfterValidator(_delay)] | None = None
    rows_per_batch: Annotated[int, Field(ge=1, le=_MOST_ROWS)] = 100_000
    static: bool = False

    @model_validator(mode="after")
    def _times_of_streams(self) -> "JobTable":
        if self.static:
            for name in ("event_time", "watermark", "rows_per_batch"):
                if getattr(self, name) != type(self).model_fields[name].default:
                    raise KeyedError((name,), f"{name} belongs to a stream; remove it, or static")
        elif self.event_time is not None and self.watermark is None:
            problem = "is missing: how much later than newer rows may a row come?"
            raise KeyedError(("watermark",), f"{problem} write it like 10 minutes")
        elif self.watermark is not None and self.event_time is None:
            problem = "is missing: which column is it for?"
            raise KeyedError(("event_time",), f"{problem} name the column of the event time")
        return self


JobTables: TypeAlias = Mapping[str, JobTable]
