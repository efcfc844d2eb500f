"""The writes of a cluster reconcile: pod sets, statuses, and automatic KafkaRebalances.

Every write names the version that was read, or is safe to repeat. Another writer that came first ends the reconcile
with a conflict, and the next one starts from what is there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.kafka.controllers.errors import ReconcileFailed, explain_unreadable
from plimsoll.kafka.model.auto_rebalance import ActionKind
from plimsoll.kafka.model.rebalances import RebalanceRefused, RebalanceSpec
from plimsoll.kafka.wire.broker_pods import build_owner_reference, build_pod, build_pod_set
from plimsoll.kafka.wire.kafka_status import build_pool_conditions, find_pruned, read_warnings, reduce_patch
from plimsoll.kafka.wire.names import (
    AUTO_REBALANCING_FINALIZER,
    BROKER_ROLE,
    CLUSTER_LABEL,
    CONTROLLER_ROLE,
    POOL_NAME_LABEL,
    REBALANCE_ANNOTATION,
    build_auto_rebalance_metadata,
    build_auto_rebalance_name,
    build_pod_name,
    build_pod_set_name,
)
from plimsoll.kafka.wire.rebalance_specs import write_rebalance_spec
from plimsoll.kube.conditions import to_json
from plimsoll.kube.controller.finalizers import Finalizer
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.kube.undecoded_objects import patch_undecoded_status, read_undecoded
from plimsoll.objects.api.kafka import (
    KAFKA_GROUP,
    STRIMZI_VERSION,
    Kafka,
    KafkaNodePool,
    KafkaRebalance,
    StrimziPodSet,
)
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kafka.controllers.cluster_observer import ObservedCluster
    from plimsoll.kafka.cruise_control.client.ports import CruiseControls
    from plimsoll.kafka.model.auto_rebalance import AutoRebalance, AutoRebalanceAction, AutoRebalanceStep
    from plimsoll.kafka.model.node_ids import NodePool, PoolNodeIds
    from plimsoll.kafka.model.requests import Mode
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.kafka import KafkaStatus
    from plimsoll.objects.codec.decode_problems import BadObject

POD_TIMEOUT_S: Final = 300.0
"""How long a reconcile waits for removed pods to go, as Strimzi's operation timeout."""
POD_CHECK_S: Final = 1.0


class ClusterActuator:
    """Writes for one cluster at a time."""

    def __init__(self, client: Client, clock: Clock, cruise_controls: CruiseControls) -> None:
        self._client = client
        self._clock = clock
        self._cruise_controls = cruise_controls
        self._finalizer = Finalizer(client, AUTO_REBALANCING_FINALIZER)
        self._pruned: frozenset[str] = frozenset()
        """Fields of the status that the definition does not have: Strimzi's lacks some of ours."""

    # ---- pod sets and pods

    async def write_pod_set(self, observed: ObservedCluster, pool: NodePool, node_ids: Sequence[int]) -> bool:
        """Let the pod set of a pool list exactly these nodes. Pods that it lists already stay as they are written.

        True: it was written.
        """
        kafka, pod_set = observed.kafka, observed.pod_sets.get(pool.name)
        roles = {"is_broker": BROKER_ROLE in pool.roles, "is_controller": CONTROLLER_ROLE in pool.roles}
        listed = {} if pod_set is None else pod_set.listed.pods
        names = {node_id: build_pod_name(kafka.metadata.name, pool.name, node_id) for node_id in node_ids}
        if pod_set is not None and set(names.values()) == set(listed):
            return False
        pods = [
            listed[name].body
            if name in listed
            else build_pod(kafka, observed.pools.get(pool.name), pool.name, node_id, **roles)
            for node_id, name in names.items()
        ]
        namespace = kafka.metadata.namespace
        if pod_set is None:
            if not pods:
                return False
            try:
                await self._client.create(StrimziPodSet, build_pod_set(kafka, pool.name, pods, **roles))
            except AlreadyExists:
                raise ReconcileFailed(_explain_foreign_pod_set(kafka, pool.name)) from None
            return True
        metadata = pod_set.view.metadata
        patch = {"metadata": {"resourceVersion": metadata.resource_version}, "spec": {"pods": pods}}
        await self._client.merge_patch(StrimziPodSet, metadata.name, patch, namespace=namespace)
        return True

    async def delete_pod_set(self, observed: ObservedCluster, pool: str) -> None:
        """Delete the pod set of a pool that is going, if it lists no pod."""
        pod_set = observed.pod_sets.get(pool)
        if pod_set is None or pod_set.view.spec.pods:
            return
        metadata = pod_set.view.metadata
        options = DeleteOptions(uid=metadata.uid, resource_version=metadata.resource_version, propagation="Background")
        with suppress(NotFound):
            await self._client.delete(StrimziPodSet, metadata.name, namespace=metadata.namespace, options=options)

    async def wait_until_gone(self, kafka: Kafka, pool: str, node_ids: Collection[int]) -> None:
        """Wait for the pods of removed nodes. Raises `ReconcileFailed` after some minutes."""
        until_s = self._clock.monotonic_s() + POD_TIMEOUT_S
        left = sorted(node_ids)
        while left := [node_id for node_id in left if not await self.is_pod_gone(kafka, pool, node_id)]:
            if self._clock.monotonic_s() >= until_s:
                names = ", ".join(build_pod_name(kafka.metadata.name, pool, node_id) for node_id in left[:10])
                message = f"after {POD_TIMEOUT_S:.0f} s these pods still exist: {names}"
                raise ReconcileFailed(Reason(code="TimeoutException", message=message, facts={"brokers": left}))
            await self._clock.sleep(POD_CHECK_S)

    async def is_pod_gone(self, kafka: Kafka, pool: str, node_id: int) -> bool:
        name = build_pod_name(kafka.metadata.name, pool, node_id)
        try:
            await self._client.get_raw(Pod, name, namespace=kafka.metadata.namespace)
        except NotFound:
            return True
        return False

    # ---- statuses

    async def write_kafka_status(self, observed: ObservedCluster, patch: Mapping[str, Any]) -> KafkaStatus | None:
        """Write what differs. Gives the status as the server keeps it; None: nothing differed.

        A difference that the definition of Kafka pruned from the last write is written along with others only.
        """
        reduced = reduce_patch(observed.status, patch)
        if not reduced:
            return None
        if self._pruned.issuperset(reduced):
            return observed.kafka.status
        metadata = observed.kafka.metadata
        written = await self._client.merge_patch(
            Kafka, metadata.name, {"status": reduced}, namespace=metadata.namespace, subresource="status"
        )
        _merge(observed.status, reduced)
        self._pruned = self._pruned.difference(reduced) | find_pruned(reduced, written.status)
        return written.status

    async def write_pool_status(
        self,
        observed: ObservedCluster,
        pool: NodePool,
        ids: PoolNodeIds,
        *,
        blocked: Collection[int],
        cluster_id: str,
        warnings: Sequence[Reason],
    ) -> None:
        """Write the nodes of a pool and what is wrong with it. The roles are those that its nodes have.

        A pool with a mistake keeps what its status has, and gets the condition.
        """
        resource = observed.pools.get(pool.name)
        if resource is None:
            return
        known = [to_json(condition, omits_empty=True) for condition in resource.status.conditions]
        conditions = build_pool_conditions(known, now=self._clock.now(), problem=ids.problem, warnings=warnings)
        patch: dict[str, Any] = {} if conditions == known else {"conditions": conditions or None}
        if ids.problem is None:
            patch |= self._find_pool_changes(observed, pool, resource, ids.list_kept(blocked), cluster_id)
        if patch:
            metadata = resource.metadata
            body = {"metadata": {"resourceVersion": metadata.resource_version}, "status": patch}
            await self._client.merge_patch(
                KafkaNodePool, metadata.name, body, namespace=metadata.namespace, subresource="status"
            )

    async def write_pool_warning(self, pool: KafkaNodePool, warning: Reason) -> None:
        """Write what is wrong with a pool that has no Kafka. Its nodes stay as they are written."""
        metadata = pool.metadata
        known = [to_json(condition, omits_empty=True) for condition in pool.status.conditions]
        conditions = build_pool_conditions(known, now=self._clock.now(), problem=None, warnings=[warning])
        if metadata.deletion_timestamp is not None or conditions == known:
            return
        body = {"status": {"conditions": conditions}}
        with suppress(NotFound):
            await self._client.merge_patch(
                KafkaNodePool, metadata.name, body, namespace=metadata.namespace, subresource="status"
            )

    async def explain_unreadable_pools(self, objects: Iterable[BadObject]) -> None:
        """Write on node pools that cannot be decoded which field is wrong. Their nodes stay as they are written."""
        for bad in objects:
            if bad.kind != KafkaNodePool.get_kind_name():
                continue
            found = await read_undecoded(self._client, KafkaNodePool, bad.name, namespace=bad.namespace)
            if found is None:
                continue
            known = found.status.get("conditions")
            conditions = build_pool_conditions(
                known, now=self._clock.now(), problem=explain_unreadable(bad), warnings=read_warnings(known)
            )
            if conditions != known:
                patch = {"conditions": conditions}
                await patch_undecoded_status(self._client, KafkaNodePool, found.metadata, patch)

    @staticmethod
    def _find_pool_changes(
        observed: ObservedCluster, pool: NodePool, resource: KafkaNodePool, node_ids: Sequence[int], cluster_id: str
    ) -> dict[str, Any]:
        metadata, status = resource.metadata, resource.status
        labels = {CLUSTER_LABEL: observed.kafka.metadata.name, POOL_NAME_LABEL: metadata.name}
        wanted: dict[str, Any] = {
            "nodeIds": list(node_ids),
            "roles": sorted(pool.roles),
            "replicas": len(node_ids),
            "labelSelector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
            "observedGeneration": metadata.generation,
        }
        if cluster_id:
            wanted["clusterId"] = cluster_id
        known = {
            "nodeIds": list(status.node_ids),
            "roles": list(status.roles),
            "replicas": status.replicas,
            "labelSelector": status.label_selector,
            "observedGeneration": status.observed_generation,
            "clusterId": status.cluster_id,
        }
        return {field: value for field, value in wanted.items() if known[field] != value}

    # ---- automatic rebalances

    async def carry_out(
        self, observed: ObservedCluster, step: AutoRebalanceStep, done: list[AutoRebalanceAction]
    ) -> AutoRebalance:
        """Carry out the actions of a step, each of which is added to `done`; returns what is stored afterwards."""
        stored = step.stored
        for action in step.actions:
            uid = await self._carry_out_action(observed, action)
            done.append(action)
            if action.kind is ActionKind.CREATE:
                stored = replace(stored, rebalance_uid=uid)
        return stored

    async def _carry_out_action(self, observed: ObservedCluster, action: AutoRebalanceAction) -> str:
        """Gives the uid of an object that was created, else nothing."""
        kafka = observed.kafka
        namespace, name = kafka.metadata.namespace, build_auto_rebalance_name(kafka.metadata.name, action.mode)
        match action.kind:
            case ActionKind.CREATE:
                return await self._create(kafka, action)
            case ActionKind.REFRESH:
                assert action.spec is not None
                body = {
                    "metadata": {"annotations": {REBALANCE_ANNOTATION: "refresh"}},
                    "spec": _write_spec(action.spec, action.mode, action.brokers, replaces=True),
                }
                await self._patch(namespace, name, body)
            case ActionKind.RESTORE:
                body = {"spec": {"mode": action.mode.value, "brokers": list(action.brokers)}}
                await self._patch(namespace, name, body)
            case ActionKind.STOP:
                await self._patch(namespace, name, {"metadata": {"annotations": {REBALANCE_ANNOTATION: "stop"}}})
            case ActionKind.DELETE:
                await self.delete_rebalance(namespace, name, version=observed.versions.get(action.mode, ""))
            case ActionKind.STOP_EXECUTION:
                await self._stop_execution(kafka)
        return ""

    async def _create(self, kafka: Kafka, action: AutoRebalanceAction) -> str:
        metadata = build_auto_rebalance_metadata(kafka.metadata.namespace, kafka.metadata.name, action.mode)
        body = {
            "apiVersion": f"{KAFKA_GROUP}/{STRIMZI_VERSION}",
            "kind": "KafkaRebalance",
            "metadata": {**metadata, "ownerReferences": [build_owner_reference(kafka, is_controller=False)]},
            "spec": _write_spec(action.spec or RebalanceSpec(), action.mode, action.brokers),
        }
        created = await self._client.create(KafkaRebalance, body)
        return created.metadata.uid

    async def _patch(self, namespace: str, name: str, body: Mapping[str, Any]) -> None:
        await self._client.merge_patch(KafkaRebalance, name, body, namespace=namespace)

    async def delete_rebalance(self, namespace: str, name: str, *, version: str = "") -> None:
        """Delete it and remove our finalizer, in this order: a crash in between leaves an object that is going.

        `version`: only if it has not changed since; it may have become live. Empty: in any case.
        """
        found = await read_undecoded(self._client, KafkaRebalance, name, namespace=namespace)
        if found is None or not self._finalizer.is_set(found.metadata):
            return
        if found.metadata.deletion_timestamp is None:
            options = DeleteOptions(uid=found.metadata.uid, resource_version=version, propagation="Background")
            try:
                await self._client.delete(KafkaRebalance, name, namespace=namespace, options=options)
            except NotFound:
                return
        await self._finalizer.remove(KafkaRebalance, found.metadata)

    async def _stop_execution(self, kafka: Kafka) -> None:
        cruise_control = await self._cruise_controls.find(kafka)
        answer = (
            cruise_control if isinstance(cruise_control, RebalanceRefused) else await cruise_control.stop_execution()
        )
        if isinstance(answer, RebalanceRefused):
            message = f"the execution cannot be stopped: {answer.message}"
            raise ReconcileFailed(Reason(code=answer.reason, message=message))


def _write_spec(spec: RebalanceSpec, mode: Mode, brokers: Sequence[int], *, replaces: bool = False) -> dict[str, Any]:
    """The spec of an automatic rebalance. `replaces`: as a merge patch that removes what the settings do not have."""
    written = {**write_rebalance_spec(spec), "mode": mode.value, "brokers": list(brokers)}
    return {**dict.fromkeys(_SETTINGS_FIELDS), **written} if replaces else written


_SETTINGS_FIELDS: Final = (
    *("goals", "skipHardGoalCheck", "excludedTopics", "concurrentPartitionMovementsPerBroker"),
    *("concurrentIntraBrokerPartitionMovements", "concurrentLeaderMovements", "replicationThrottle"),
    "replicaMovementStrategies",
)


def _explain_foreign_pod_set(kafka: Kafka, pool: str) -> Reason:
    name = build_pod_set_name(kafka.metadata.name, pool)
    message = f"strimzipodset/{kafka.metadata.namespace}/{name} exists without the labels of this cluster"
    return Reason(code="PodSetNameConflict", message=message, facts={"podSet": name})


def _merge(status: dict[str, Any], patch: Mapping[str, Any]) -> None:
    """Follow a merge patch that the server took."""
    for field, value in patch.items():
        if value is None:
            status.pop(field, None)
        elif isinstance(value, dict):
            inner = status.setdefault(field, {})
            if isinstance(inner, dict):
                _merge(inner, value)
        else:
            status[field] = value
