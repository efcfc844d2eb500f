"""Sets clusters up: accounts of agents, pools, DNS names, objects and add-ons.

docs/design/fleet.md 8, steps 3 to 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.planning.terraforming import (
    build_setup_order,
    find_unmet_pools,
    get_max_nodes,
    list_unconfigured,
    plan_setup,
    read_problems,
    write_pools,
    write_problems,
)
from plimsoll.fleet.workers.clusters.decisions import (
    build_action,
    build_change_step,
    build_waiting,
    guard_step,
    list_detail_steps,
)
from plimsoll.fleet.workers.passes import Step

if TYPE_CHECKING:
    from plimsoll.core.entropy import Entropy
    from plimsoll.core.plans import NotDone
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.pools import PoolBounds
    from plimsoll.fleet.model.provided import ClusterSetup
    from plimsoll.fleet.planning.terraforming import SetupPlan, SetupSettings
    from plimsoll.fleet.ports import ClusterChanges
    from plimsoll.fleet.workers.clusters.provider_calls import ProviderCalls
    from plimsoll.fleet.workers.leased_store import LeasedStore

SETTING_UP: Final = frozenset({ClusterStatus.PROVISIONED, ClusterStatus.WAITING, ClusterStatus.READY})
"""Reports of the agent may change the status between the last two at any time."""


class ClusterSetups:
    """What a cluster lacks, and how it gets it."""

    def __init__(self, policy: FleetPolicy, calls: ProviderCalls, settings: SetupSettings, *, entropy: Entropy) -> None:
        self._policy = policy
        self._calls = calls
        self._settings = settings
        self._entropy = entropy

    def decide(self, store: LeasedStore, cluster: Cluster, held: ClusterSetup) -> list[Step | NotDone]:
        unconfigured = list_unconfigured(cluster, self._policy)
        order = build_setup_order(cluster, self._policy, self._settings)
        plan = plan_setup(cluster, order, held, repeats_orders=self._calls.may_repeat_order(cluster))
        problems = (*(f"no machines are configured for pool {name}" for name in unconfigured), *plan.problems)
        parts: list[Step | NotDone] = []
        # First: it writes what the row was read with, and a set-up that follows keeps what it writes about pools.
        if problems != read_problems(cluster):
            message = "; ".join(problems) or "nothing is wrong any more"
            action = build_action("record", cluster, "drift" if problems else "no_drift", message)
            parts.append(build_change_step(store, cluster, action, {"cluster_spec": write_problems(cluster, problems)}))
        if plan.has_changes or not cluster.client_id:
            parts.append(self._build_set_up(store, cluster, plan))
        if self._must_reset_capacity(cluster):
            action = build_action("record", cluster, "no_auto_scaling", "capacity is not counted in this scaling type")
            parts.append(build_change_step(store, cluster, action, {"dynamic_capacity_info": {}}))
        if not plan.has_changes:
            parts += list_detail_steps(store, cluster, "")
        return [*parts, *self._decide_status(store, cluster, plan, is_configured=not unconfigured)]

    def _decide_status(
        self, store: LeasedStore, cluster: Cluster, plan: SetupPlan, *, is_configured: bool
    ) -> list[Step | NotDone]:
        if cluster.status is ClusterStatus.WAITING:
            return [build_waiting(cluster, "agent", "its agent has not reported that it is ready")]
        if cluster.status is not ClusterStatus.PROVISIONED:
            return []
        if plan.is_complete and is_configured and cluster.client_id:
            status = ClusterStatus.WAITING
            message = "its pools are there and its add-ons are ready"
            action = build_action("advance", cluster, "set_up", message, arguments={"status": status.value})
            return [build_change_step(store, cluster, action, {"status": status})]
        missing = ", ".join(plan.waits_for) or "what was just made"
        return [build_waiting(cluster, "setting_up", f"it waits for {missing}")]

    def _build_set_up(self, store: LeasedStore, cluster: Cluster, plan: SetupPlan) -> Step:
        async def run() -> bool:
            return await self._set_up(store, cluster, plan)

        changes = [*([] if cluster.client_id else ["the account of the agent"]), *plan.list_changes()]
        message = f"it lacks: {', '.join(changes)}"
        action = build_action("set_up", cluster, "incomplete", message, arguments={"changes": changes})
        return Step(action=action, run=guard_step(store, cluster, run))

    async def _set_up(self, store: LeasedStore, cluster: Cluster, plan: SetupPlan) -> bool:
        """In the order of the specification; the first failure ends it for this pass."""
        current: Cluster | None = cluster
        if not cluster.client_id:
            account: ClusterChanges = {
                "client_id": f"agent-{cluster.id}",
                "client_secret": self._entropy.generate_token(),
            }
            current = await store.change_cluster(cluster.id, account, statuses=SETTING_UP)
        if current is not None and plan.ensured:
            row = current
            held = await self._calls.change(row, lambda provider: provider.ensure_pools(row, plan.ensured), store)
            self._calls.record_order(row, is_met=not find_unmet_pools(held, plan.ensured))
            current = await _keep_pools(store, row, held, ordered=plan.ensured)
        if current is not None and plan.adopted:
            current = await _keep_pools(store, current, plan.adopted)
        if current is not None and plan.dns:
            current = await store.change_cluster(cluster.id, {"cluster_dns": plan.dns}, statuses=SETTING_UP)
        if current is None:
            return False
        return await self._apply(store, current, plan)

    async def _apply(self, store: LeasedStore, cluster: Cluster, plan: SetupPlan) -> bool:
        order = build_setup_order(cluster, self._policy, self._settings)
        if plan.applies_resources:
            await self._calls.change(cluster, lambda provider: provider.ensure_resources(cluster, order), store)
        await self._calls.change(cluster, lambda provider: provider.ensure_addons(cluster, order.addons), store)
        if not cluster.status_details:
            return True
        return await store.change_cluster(cluster.id, {"status_details": ""}, statuses=SETTING_UP) is not None

    def _must_reset_capacity(self, cluster: Cluster) -> bool:
        """Outside of automatic scaling no capacity is counted (docs/design/fleet.md 1.3)."""
        return (
            self._policy.scaling_type is not ScalingType.AUTO
            and cluster.status is ClusterStatus.READY
            and cluster.cluster_type is ClusterType.MANAGED
            and bool(cluster.dynamic_capacity_info)
        )


async def _keep_pools(
    store: LeasedStore, cluster: Cluster, pools: tuple[PoolBounds, ...], *, ordered: tuple[PoolBounds, ...] = ()
) -> Cluster | None:
    """The row gets the bounds that the provider holds, and remembers those that were ordered and not kept."""
    changes: ClusterChanges = {"cluster_spec": write_pools(cluster, pools, ordered=ordered)}
    return await store.change_cluster(cluster.id, changes, statuses=SETTING_UP, max_nodes=get_max_nodes(pools))
