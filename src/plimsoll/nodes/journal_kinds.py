"""The kinds of objects that the node autoscaler decides about."""

from __future__ import annotations

from typing import Final

from plimsoll.journal.decisions import JournalKind, JournalKinds
from plimsoll.nodes.permissions import LAST_PLANS_MAP

_ON_WORKLOADS: Final = (
    "a workload is recorded with its pods, when they are unschedulable and when they are placed; check its name"
)
_WORKLOADS: Final = (
    ("deployment", "deploy"),
    ("replicaset", "rs"),
    ("statefulset", "sts"),
    ("daemonset", "ds"),
    ("job", ""),
    ("cronjob", "cj"),
)

KINDS: Final = JournalKinds(
    subsystem="nodes",
    last_plans=LAST_PLANS_MAP,
    kinds=(
        JournalKind(
            name="pod",
            words=("pods", "po"),
            advice="a pod is recorded when it is unschedulable, and again when it is placed; "
            "kubectl describe pod shows what the scheduler says now",
        ),
        JournalKind(
            name="node",
            words=("nodes", "no"),
            has_namespace=False,
            advice="the autoscaler records every node it examines; "
            "check with kubectl get nodes whether this one exists",
        ),
        JournalKind(
            name="nodegroup",
            words=("nodegroups", "ng", "group"),
            has_namespace=False,
            advice="every group that the autoscaler observes is recorded; plimsoll nodes status lists them",
        ),
        JournalKind(name="machinetype", words=("machinetypes",), has_namespace=False, advice=_ON_WORKLOADS),
        JournalKind(
            name="request",
            words=("requests", "provisioningrequest", "provisioningrequests", "provreq"),
            advice="a request is recorded when it is answered, refused or over; plimsoll requests describe shows its "
            "present state",
        ),
        JournalKind(name="cluster", has_namespace=False, advice=_ON_WORKLOADS),
        *(
            JournalKind(name=name, words=(f"{name}s", short) if short else (f"{name}s",), advice=_ON_WORKLOADS)
            for name, short in _WORKLOADS
        ),
    ),
)
