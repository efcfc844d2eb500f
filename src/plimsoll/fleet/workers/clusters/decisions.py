"""Decisions about one cluster as steps and as things not done, shared by the workers of clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.plans import Action, NotDone
from plimsoll.fleet.planning.plan_parts import build_reason, refer_to_cluster
from plimsoll.fleet.workers.clusters.provider_calls import ProviderCallFailed
from plimsoll.fleet.workers.passes import Step

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.ports import ClusterChanges
    from plimsoll.fleet.workers.leased_store import LeasedStore


def build_action(
    verb: str, cluster: Cluster, code: str, message: str, *, arguments: Mapping[str, Any] | None = None
) -> Action:
    return Action(
        verb=verb,
        target=refer_to_cluster(cluster.id),
        reason=build_reason(code, message, {}),
        arguments=dict(arguments or {}),
        precondition={"status": cluster.status.value},
    )


def build_change_step(store: LeasedStore, cluster: Cluster, action: Action, changes: ClusterChanges) -> Step:
    """Changes the row if it is in the status in which it was read."""

    async def run() -> bool:
        return await store.change_cluster(cluster.id, changes, statuses={cluster.status}) is not None

    return Step(action=action, run=run)


def build_waiting(cluster: Cluster, code: str, message: str, *, what: str = "waiting") -> NotDone:
    return NotDone(what=what, about=(refer_to_cluster(cluster.id),), reason=build_reason(code, message, {}))


def build_backing_off(cluster: Cluster) -> NotDone:
    problem = cluster.status_details or "its provider did not answer"
    return build_waiting(cluster, "backing_off", f"the last call failed, and is repeated later: {problem}")


def guard_step(
    store: LeasedStore, cluster: Cluster, run: Callable[[], Awaitable[bool]]
) -> Callable[[], Awaitable[bool]]:
    """A step that shows on its cluster why its provider did not do it."""

    async def run_guarded() -> bool:
        try:
            return await run()
        except ProviderCallFailed as error:
            if str(error) != cluster.status_details:
                details: ClusterChanges = {"status_details": str(error)}
                await store.change_cluster(cluster.id, details, statuses={cluster.status})
            raise

    return run_guarded


def list_detail_steps(store: LeasedStore, cluster: Cluster, details: str) -> list[Step | NotDone]:
    """Shows the words of the provider on the cluster, if they changed."""
    if details == cluster.status_details:
        return []
    message = details or "its provider says nothing any more"
    action = build_action("record", cluster, "provider_details", message)
    return [build_change_step(store, cluster, action, {"status_details": details})]
