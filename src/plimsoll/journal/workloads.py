"""Workloads in the journal: `why deploy/web` finds what was decided about its pods. Pure.

An entry names pods, and the workloads that own them as objects it concerns. Which of the named pods belong to a
workload follows from their names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Ref
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.meta import ObjectMeta

DEPLOYMENT: Final = "deployment"
CRON_JOB: Final = "cronjob"
_SUFFIXES: Final = {
    DEPLOYMENT: r"-[a-z0-9]+-[a-z0-9]+",
    "replicaset": r"-[a-z0-9]+",
    "daemonset": r"-[a-z0-9]+",
    "statefulset": r"-[0-9]+",
    "job": r"-(?:[0-9]+-)?[a-z0-9]+",
    CRON_JOB: r"-[0-9]+-(?:[0-9]+-)?[a-z0-9]+",
}
"""What follows the name of a workload in the names of its pods."""
WORKLOADS: Final = frozenset(_SUFFIXES)
_TEMPLATE_HASH: Final = "pod-template-hash"
_OF_CRON_JOB: Final = re.compile(r"(.+)-[0-9]{8,}")
_PLURALS: Final = {"stays": "stay", "waits": "wait", "is": "are", "would": "would"}


def list_workloads(pod: ObjectMeta) -> tuple[Ref, ...]:
    """The workloads that a pod belongs to: its controller, and the Deployment or CronJob of that."""
    owner = find_controller(pod)
    if owner is None or owner.kind.lower() not in WORKLOADS:
        return ()
    kind, name = owner.kind.lower(), owner.name
    found = [Ref(kind=kind, namespace=pod.namespace, name=name)]
    hashed = pod.labels.get(_TEMPLATE_HASH)
    if kind == "replicaset" and hashed and name.endswith(f"-{hashed}"):
        found.append(Ref(kind=DEPLOYMENT, namespace=pod.namespace, name=name.removesuffix(f"-{hashed}")))
    if kind == "job" and (timed := _OF_CRON_JOB.fullmatch(name)):
        found.append(Ref(kind=CRON_JOB, namespace=pod.namespace, name=timed[1]))
    return tuple(found)


def find_workload_pods(workload: Ref, refs: Iterable[Ref]) -> list[Ref]:
    """The pods among the references whose names are those of the workload's pods."""
    suffix = _SUFFIXES.get(workload.kind)
    if suffix is None:
        return []
    names = re.compile(re.escape(workload.name) + suffix)
    return [
        ref
        for ref in refs
        if ref.kind == "pod" and ref.namespace == workload.namespace and names.fullmatch(ref.name) is not None
    ]


def to_plural(what: str) -> str:
    """`stays unschedulable` of several pods: `stay unschedulable`."""
    verb, _, rest = what.partition(" ")
    return f"{_PLURALS.get(verb, verb)} {rest}"
