"""The base of all tables of the results database: names, types, moments in UTC."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Dialect, MetaData, String, TypeDecorator
from sqlalchemy.orm import DeclarativeBase

RUN = String(400)
NAME = String(100)


class Utc(TypeDecorator[datetime]):
    """A moment; always UTC, also where the database keeps no time zone (SQLite)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store UTC."""
        return value.astimezone(UTC) if value is not None else None

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of all tables; constraint names are the same on every database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it from the class
        datetime: Utc,
        dict[str, Any]: JSON,
        list[Any]: JSON,
        int: BigInteger,
        str: String(255),
    }


def append_only(table: str, dialect: str) -> list[str]:
    """Return the statements after which rows of a table can only be added."""
    refused = f"{table}s are only ever added"
    if dialect == "sqlite":
        return [
            f"CREATE TRIGGER {table}_no_{change} BEFORE {change} ON {table}"
            f" BEGIN SELECT RAISE(ABORT, '{refused}'); END"
            for change in ("UPDATE", "DELETE")
        ]
    if dialect == "postgresql":
        return [
            f"CREATE FUNCTION {table}_is_append_only() RETURNS trigger LANGUAGE plpgsql"
            f" AS $$ BEGIN RAISE EXCEPTION '{refused}'; END $$",
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION {table}_is_append_only()",
        ]
    return []
