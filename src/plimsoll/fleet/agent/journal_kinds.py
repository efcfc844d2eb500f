"""The kinds of objects that the agent decides about."""

from __future__ import annotations

from typing import Final

from plimsoll.fleet.agent.settings import LAST_PLANS_MAP
from plimsoll.journal.decisions import JournalKind, JournalKinds

KINDS: Final = JournalKinds(
    subsystem="agent",
    last_plans=LAST_PLANS_MAP,
    kinds=(
        JournalKind(
            name="managedkafka",
            words=("managedkafkas", "mk"),
            advice="an instance is recorded when something is done about it, or while it is not ready; kubectl get "
            "managedkafkas -A shows all of them",
        ),
        JournalKind(
            name="agent",
            words=("agents",),
            has_namespace=False,
            advice="agent/list is recorded when a list of the control plane changes something, or differs from what "
            "runs",
        ),
    ),
)
