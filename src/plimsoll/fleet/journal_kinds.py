"""The kinds of objects that the fleet manager decides about. Its journal is in its database."""

from __future__ import annotations

from typing import Final

from plimsoll.journal.decisions import JournalKind, JournalKinds

KINDS: Final = JournalKinds(
    subsystem="fleet",
    kinds=(
        JournalKind(
            name="cluster",
            words=("clusters",),
            has_namespace=False,
            advice="a cluster is named by the id of its row, and recorded when a worker decides about it; "
            "GET /admin/clusters lists the rows",
        ),
        JournalKind(
            name="kafka",
            words=("kafkas", "k"),
            has_namespace=False,
            advice="a Kafka is named by its id, and recorded when a worker places it or holds it; "
            "GET /kafkas lists the ids",
        ),
        JournalKind(
            name="capacity",
            words=("capacities",),
            has_namespace=False,
            advice="capacity is named PROVIDER.REGION.TYPE, such as aws.us-east-1.standard, and recorded when the "
            "scaling type is auto and the region offers the type",
        ),
    ),
)
