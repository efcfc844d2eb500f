"""Metrics of ProvisioningRequests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.nodes.requests.model import UpdateKind

if TYPE_CHECKING:
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.reporting.metrics.families import Families
    from plimsoll.nodes.requests.model import RequestsPart


def observe_requests(loop: LoopResult, families: Families) -> None:
    part = loop.requests
    for update in part.news:
        if not update.is_written:
            continue
        kind = update.view.request.spec.provisioning_class_name
        if update.accepts and update.kind is not UpdateKind.ACCEPTED:
            families.requests.labels(kind, UpdateKind.ACCEPTED.value).inc()
        families.requests.labels(kind, update.kind.value).inc()
        if update.kind is UpdateKind.ROLLED_BACK:
            families.rollbacks.inc()
        if update.kind is UpdateKind.PROVISIONED and update.view.created is not None:
            families.request_seconds.labels(kind).observe(max(0.0, (loop.at - update.view.created).total_seconds()))
    if loop.ended_early is None:
        families.pending_requests.clear()
        for kind, waiting in part.waiting.items():
            families.pending_requests.labels(kind).set(waiting)
        families.booked_pods.set(sum(sum(nodes.values()) for nodes in part.booked.values()) + _count_newly_booked(part))
        families.unbookable_pods.set(sum(part.unbookable.values()))


def _count_newly_booked(part: RequestsPart) -> int:
    """Pods whose capacity was booked in this loop."""
    answered = (update.view for update in part.updates if update.is_written and update.kind is UpdateKind.PROVISIONED)
    return sum(request.total for request in answered if request.parameters.reserves and request.name not in part.booked)
