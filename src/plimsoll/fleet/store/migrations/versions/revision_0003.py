"""The change of the size of a Kafka that runs."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0003"
down_revision: Final = "0002"


def upgrade() -> None:
    column = sa.Column("resizing_to_units", sa.BigInteger(), nullable=False, server_default="0")
    op.add_column("kafka_requests", column)
