"""The base class of all tables of the results database, and the types of their columns."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, mapped_column

from nexmark.model import Basis, Mode, Value

RUN = sa.String(400)
NAME = sa.String(100)
JsonObject: TypeAlias = dict[str, Any]
"""An object as JSON: a configured object, or a part of a result file. The store only keeps it."""
Double: TypeAlias = Annotated[float, mapped_column(sa.Double)]
"""A figure of ``Measurement``: a number of 64 bits on every database."""


def _words(words: type[StrEnum], length: int) -> sa.Enum:
    """Return the type of a column that has one word of an enumeration, stored as text."""
    return sa.Enum(
        words,
        native_enum=False,
        length=length,
        values_callable=lambda known: [word.value for word in known],
    )


MODE, VALUE, BASIS = _words(Mode, 100), _words(Value, 100), _words(Basis, 255)


class Utc(sa.TypeDecorator[datetime]):
    """A moment in UTC, also on SQLite, which keeps no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Convert a moment to UTC before the database stores it."""
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Return a moment of the database in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base class of all tables; names of constraints are the same on every database."""

    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        datetime: Utc,
        JsonObject: sa.JSON,
        list[JsonObject]: sa.JSON,
        dict[str, str]: sa.JSON,
        dict[str, float]: sa.JSON,
        list[str]: sa.JSON,
        list[int]: sa.JSON,
        int: sa.BigInteger,
        str: sa.String(255),
    }


def append_only(table: str, connection: sa.Connection) -> None:
    """Let the database refuse to change or delete rows of a table; rows can still be added."""
    refused = f"{table}s are only ever added"
    statements: list[str] = []
    if connection.dialect.name == "sqlite":
        statements = [
            f"CREATE TRIGGER {table}_no_{change} BEFORE {change} ON {table}"
            f" BEGIN SELECT RAISE(ABORT, '{refused}'); END"
            for change in ("UPDATE", "DELETE")
        ]
    elif connection.dialect.name == "postgresql":
        statements = [
            f"CREATE FUNCTION {table}_is_append_only() RETURNS trigger LANGUAGE plpgsql"
            f" AS $$ BEGIN RAISE EXCEPTION '{refused}'; END $$",
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION {table}_is_append_only()",
        ]
    for statement in statements:
        connection.exec_driver_sql(statement)
