"""Alembic's entry point: migrates over the connection that ``nexmark.store.schema`` hands in."""

from __future__ import annotations

from alembic import context

from nexmark.store.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
