"""The kinds of objects that the TiDB autoscaler decides about."""

from __future__ import annotations

from typing import Final

from plimsoll.journal.decisions import JournalKind, JournalKinds
from plimsoll.tidb.permissions import LAST_PLANS_MAP

KINDS: Final = JournalKinds(
    subsystem="tidb",
    last_plans=LAST_PLANS_MAP,
    kinds=(
        JournalKind(
            name="tidbclusterautoscaler",
            words=("tidbclusterautoscalers", "ta"),
            advice="it is recorded when it changes a cluster or holds a change; its status and "
            "conditions show its present state",
        ),
        JournalKind(
            name="tidbcluster",
            words=("tidbclusters", "tc"),
            advice="a cluster is recorded when an autoscaler changes it or one of its groups, or holds a change",
        ),
    ),
)
