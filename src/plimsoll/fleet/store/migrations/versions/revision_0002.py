"""The journal, and an index that covers the counting of Kafkas."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0002"
down_revision: Final = "0001"

TEXT: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TIME: Final = sa.Text().with_variant(sa.DateTime(timezone=True), "postgresql")


def upgrade() -> None:
    is_live = sa.text("deleted_at IS NULL")
    op.create_index(
        "kafka_requests_counted",
        "kafka_requests",
        ["cloud_provider", "region", "instance_type", "cluster_id", "size_id", "status", "id"],
        sqlite_where=is_live,
        postgresql_where=is_live,
    )
    op.create_table(
        "journal",
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("subsystem", TEXT, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("data_bytes", sa.BigInteger(), nullable=False),
        sa.Column("checksum", sa.BigInteger(), nullable=False),
    )
    op.create_index("journal_at", "journal", ["at"])
    op.create_index("journal_bytes", "journal", ["data_bytes"])
    op.create_table(
        "journal_subjects",
        sa.Column("hash", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
    )
    op.create_index("journal_subjects_number", "journal_subjects", ["number"])
    op.create_table(
        "journal_numbers",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
    )
    op.execute("INSERT INTO journal_numbers (id, last) VALUES (1, 0)")
