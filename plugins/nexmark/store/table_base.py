"""The base of all tables of the results database: names, types, moments in UTC."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase

from nexmark.model import Basis, Mode, Value

RUN = sa.String(400)
NAME = sa.String(100)


def _words(words: type[StrEnum], length: int) -> sa.Enum:
    """Return the type of a column with one of these words, stored as text."""
    return sa.Enum(
        words,
        native_enum=False,
        length=length,
        values_callable=lambda known: [word.value for word in known],
    )


MODE, VALUE, BASIS = _words(Mode, 100), _words(Value, 100), _words(Basis, 255)


class Utc(sa.TypeDecorator[datetime]):
    """A moment; always UTC, also where the database keeps no time zone (SQLite)."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Store UTC."""
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        """Return UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of all tables; constraint names are the same on every database."""

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
        dict[str, Any]: sa.JSON,
        list[Any]: sa.JSON,
        int: sa.BigInteger,
        str: sa.String(255),
    }


def append_only(table: str, connection: sa.Connection) -> None:
    """Let rows of a table only be added from now on."""
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
