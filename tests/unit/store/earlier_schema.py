"""A database as an earlier version of the package left it."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from nexmark.store.versions import FIRST


def make(connection: Connection) -> None:
    """Make the schema of the first release, as SQL that was kept."""
    script = Path(__file__).with_name(f"first_schema.{connection.dialect.name}.sql").read_text()
    for statement in script.split(";\n\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
    connection.exec_driver_sql(f"INSERT INTO nexmark_version VALUES ('{FIRST}')")
