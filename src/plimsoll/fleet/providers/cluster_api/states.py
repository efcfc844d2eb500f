"""The state of a Cluster by its conditions, in both versions of the API. Pure.

`Available` and `ReconcileFailed` are of v1beta2. Conditions of v1beta1 have a severity; they are found under
`status.conditions` in v1beta1 and under `status.deprecated` in v1beta2, and the newer ones in v1beta1 under
`status.v1beta2`. A phase that is unknown to us means that the cluster is being made.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.provided import ProvidedCluster, ProviderState, bound_text
from plimsoll.fleet.providers.cluster_api.settings import find_region
from plimsoll.fleet.providers.cluster_api.topology import V1BETA1

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.objects.api.cluster_api import ClusterCondition, WorkloadCluster

FAILED_AFTER: Final = timedelta(minutes=30)
"""A step that fails this long will not succeed by itself."""
_PHASES: Final = frozenset({"", "Pending", "Provisioning", "Provisioned", "Deleting", "Failed", "Unknown"})
_STEPS: Final = frozenset({"TopologyReconciled", "InfrastructureReady"})
_FAILURES: Final = frozenset({"ReconcileFailed", "TopologyReconcileFailed"})
"""Reasons of newer conditions, which have no severity, that mean an error instead of work under way."""


def read_provided(found: WorkloadCluster, *, now: datetime) -> ProvidedCluster:
    """The cluster as the port shows it."""
    state, details = read_state(found, now=now)
    counts = (found.status.control_plane.replicas, found.status.workers.replicas)
    return ProvidedCluster(
        cluster_id=found.metadata.uid,
        name=found.metadata.name,
        state=state,
        details=bound_text(details),
        region=find_region(found.metadata.namespace),
        nodes=None if None in counts else sum(count or 0 for count in counts),
    )


def read_state(found: WorkloadCluster, *, now: datetime) -> tuple[ProviderState, str]:
    """The state, and why it is that."""
    status = found.status
    if found.metadata.deletion_timestamp is not None or status.phase == "Deleting":
        return ProviderState.DELETING, ""
    failing = next(_find_failures(found, now=now), "")
    if status.phase == "Failed" or failing:
        return ProviderState.FAILED, failing or status.failure_message or "phase Failed"
    has_control_plane = status.control_plane_ready or status.initialization.control_plane_initialized
    if _is_available(found) or (status.phase == "Provisioned" and has_control_plane):
        return ProviderState.READY, ""
    if status.phase not in _PHASES:
        return ProviderState.PROVISIONING, f"phase {status.phase!r} is unknown"
    return ProviderState.PROVISIONING, _describe_progress(found)


def _is_newer(found: WorkloadCluster) -> bool:
    return not found.api_version.endswith(f"/{V1BETA1}")


def _list_newer(found: WorkloadCluster) -> tuple[ClusterCondition, ...]:
    return found.status.conditions if _is_newer(found) else found.status.v1beta2.conditions


def _list_older(found: WorkloadCluster) -> tuple[ClusterCondition, ...]:
    return found.status.deprecated.v1beta1.conditions if _is_newer(found) else found.status.conditions


def _is_available(found: WorkloadCluster) -> bool:
    return any(condition.type == "Available" and condition.status == "True" for condition in _list_newer(found))


def _find_failures(found: WorkloadCluster, *, now: datetime) -> Iterator[str]:
    errors = [condition for condition in _list_older(found) if condition.severity == "Error"]
    errors += [condition for condition in _list_newer(found) if condition.reason in _FAILURES]
    for condition in errors:
        since = condition.last_transition_time
        is_old = since is not None and now - since > FAILED_AFTER
        if condition.type in _STEPS and condition.status == "False" and is_old:
            yield f"{condition.type}: {condition.reason}: {condition.message}"


def _describe_progress(found: WorkloadCluster) -> str:
    """The first step that is not done, in the words of Cluster API."""
    for condition in (*_list_newer(found), *_list_older(found)):
        if condition.type in _STEPS and condition.status == "False":
            return f"{condition.type}: {condition.reason}: {condition.message}"
    return ""
