"""Storage drivers with one contract: SQLite and memory."""
