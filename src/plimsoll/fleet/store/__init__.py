"""The rows of the fleet manager in a database: SQLite or PostgreSQL, behind `fleet/ports.py`.

SQLAlchemy Core, synchronous. Each call of a port is one transaction, run in a thread when live and inline in memory.
"""
