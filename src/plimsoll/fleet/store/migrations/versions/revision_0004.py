"""The index that covers the counting of Kafkas, without their ids."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0004"
down_revision: Final = "0003"

INDEX: Final = "kafka_requests_counted"


def upgrade() -> None:
    is_live = sa.text("deleted_at IS NULL")
    op.drop_index(INDEX, "kafka_requests")
    op.create_index(
        INDEX,
        "kafka_requests",
        ["cloud_provider", "region", "instance_type", "cluster_id", "size_id", "status"],
        sqlite_where=is_live,
        postgresql_where=is_live,
    )
