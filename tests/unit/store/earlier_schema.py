"""A database as an earlier version of the package left it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from nexmark.store import connecting
from nexmark.store.migrations import CHANGES

REVISIONS = ("0001", *CHANGES)


def make(connection: Connection, revision: str) -> None:
    """Make the first schema, as SQL that was kept, and bring it to a revision."""
    script = Path(__file__).with_name(f"first_schema.{connection.dialect.name}.sql").read_text()
    for statement in script.split(";\n\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('0001')")
    connecting.upgrade(connection, revision)
    connection.exec_driver_sql("DROP TABLE nexmark_version")
    key = "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)"
    connection.exec_driver_sql(
        f"CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, {key})"
    )
    connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{revision}')")
