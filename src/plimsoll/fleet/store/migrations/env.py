"""Alembic runs this file. The connection, within its transaction, comes from `runner.py`."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
