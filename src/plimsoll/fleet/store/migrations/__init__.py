"""The schema by versions: Alembic revisions, written by hand. A revision that was released never changes."""
