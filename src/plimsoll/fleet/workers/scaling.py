"""The evaluating workers: `dynamic_scale_up` and `dynamic_scale_down` (docs/design/fleet.md 6, 7 and 15.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.plans import Action
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.deprovisioning import list_returning_clusters
from plimsoll.fleet.planning.plan_parts import build_reason, refer_to_cluster
from plimsoll.fleet.planning.scale_down import evaluate_scale_down
from plimsoll.fleet.planning.scale_up import ERROR, evaluate_scale_up, hold_registrations
from plimsoll.fleet.workers.passes import Step, Work, build_work, build_worker_ref

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.planning.capacity import Capacity
    from plimsoll.fleet.planning.scale_up import Registration
    from plimsoll.fleet.ports import ClusterChanges
    from plimsoll.fleet.workers.leased_store import LeasedStore

_ID_CHARACTERS: Final = 20


class ScaleUpWorker:
    """Registers clusters that locators need. The cluster worker creates them."""

    name: Final = Worker.DYNAMIC_SCALE_UP

    def __init__(self, policy: FleetPolicy, entropy: Entropy) -> None:
        self._policy = policy
        self._entropy = entropy

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        if self._policy.scaling_type is not ScalingType.AUTO:
            return build_work(self.name, (), number=number, now=now)
        capacity = await _read_capacity(store, self._policy, now)
        result = hold_registrations(
            evaluate_scale_up(capacity, self._policy, now),
            list_returning_clusters(capacity.clusters, capacity, self._policy, now),
        )
        plan = result.build_plan(number, now)
        steps = tuple(
            self._register(store, action, registration, now)
            for action, registration in zip(plan.actions, result.register, strict=True)
        )
        actions = tuple(step.action for step in steps)
        return Work(
            plan=structs.replace(plan, actions=actions, subject=build_worker_ref(self.name)),
            steps=steps,
            errors=tuple(found.message for found in result.evaluations if found.decision == ERROR),
            follow=Worker.CLUSTER,
        )

    def _register(self, store: LeasedStore, action: Action, registration: Registration, now: datetime) -> Step:
        cluster = registration.build_cluster(self._entropy.generate_suffix(_ID_CHARACTERS), now)

        async def run() -> bool:
            return await store.insert_cluster(cluster, max_parallel=self._policy.creation.max_parallel)

        return Step(action=structs.replace(action, concerns=(refer_to_cluster(cluster.id),)), run=run)


class ScaleDownWorker:
    """Marks empty clusters that are not needed, and records since when clusters are empty.

    A cluster that an operator retires is marked when it is empty, whatever the scaling type and the need.
    """

    name: Final = Worker.DYNAMIC_SCALE_DOWN

    def __init__(self, policy: FleetPolicy) -> None:
        self._policy = policy

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        capacity = await _read_capacity(store, self._policy, now)
        result = evaluate_scale_down(capacity, self._policy, now)
        plan = result.build_plan(number, now)
        steps = (
            *_record_emptiness(store, capacity, now),
            *(
                _build_cluster_step(store, action, {"status": ClusterStatus.DEPROVISIONING})
                for action in (*plan.actions, *_list_retired(capacity, result.deprovision))
            ),
        )
        actions = tuple(step.action for step in steps)
        return Work(
            plan=structs.replace(plan, actions=actions, subject=build_worker_ref(self.name)),
            steps=steps,
            errors=tuple(found.message for found in result.evaluations if found.decision == ERROR),
            follow=None,
        )


async def _read_capacity(store: LeasedStore, policy: FleetPolicy, now: datetime) -> Capacity:
    return build_capacity(await store.list_heard_clusters(), await store.count_kafkas(policy), policy, now)


def _record_emptiness(store: LeasedStore, capacity: Capacity, now: datetime) -> Iterator[Step]:
    """`empty_since` of ready clusters. A placement ends it at once; a Kafka that goes away begins it here."""
    for cluster in capacity.clusters:
        is_empty = capacity.is_empty(cluster)
        if cluster.status is not ClusterStatus.READY or is_empty == (cluster.empty_since is not None):
            continue
        code, message = ("became_empty", "no Kafka is on it") if is_empty else ("in_use", "Kafkas are on it")
        action = Action(verb="record", target=refer_to_cluster(cluster.id), reason=build_reason(code, message, {}))
        yield _build_cluster_step(store, action, {"empty_since": now if is_empty else None})


def _list_retired(capacity: Capacity, removed: tuple[str, ...]) -> Iterator[Action]:
    for cluster in capacity.clusters:
        if (
            cluster.retire_requested_at is not None
            and cluster.status is ClusterStatus.READY
            and cluster.cluster_type is ClusterType.MANAGED
            and cluster.id not in removed
            and capacity.is_empty(cluster)
        ):
            yield Action(
                verb="deprovision",
                target=refer_to_cluster(cluster.id),
                reason=build_reason("retired", "an operator retired it, and no Kafka is on it", {}),
            )


def _build_cluster_step(store: LeasedStore, action: Action, changes: ClusterChanges) -> Step:
    async def run() -> bool:
        changed: Cluster | None = await store.change_cluster(
            action.target.name, changes, statuses={ClusterStatus.READY}
        )
        return changed is not None

    return Step(action=action, run=run)
