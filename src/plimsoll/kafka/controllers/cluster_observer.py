"""Reads a Kafka and what belongs to it, fresh from the API server, for one reconcile.

What cannot be read is never taken for absent: an object that cannot be decoded ends the reconcile before anything is
changed, and the condition names it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from plimsoll.core.plans import Reason
from plimsoll.kafka.controllers.errors import ObjectsUnreadable, ReconcileFailed
from plimsoll.kafka.model.auto_rebalance import (
    AutoRebalanceObject,
    ModeConfiguration,
    SettingsKind,
    SettingsLookup,
    SettingsReference,
)
from plimsoll.kafka.model.node_ids import NodePool
from plimsoll.kafka.model.rebalances import UNREADABLE, RebalanceSpec
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling.empty_brokers import BROKERS_STAY_EMPTY
from plimsoll.kafka.planning.scaling.rebalance_transitions import is_renewing
from plimsoll.kafka.wire.listed_pods import ListedPods, describe_problems, read_listed_pods
from plimsoll.kafka.wire.names import (
    AUTO_REBALANCING_FINALIZER,
    BROKER_ROLE,
    BROKER_ROLE_LABEL,
    CLUSTER_LABEL,
    CONTROLLER_ROLE,
    CONTROLLER_ROLE_LABEL,
    POOL_NAME_LABEL,
    REBALANCE_ANNOTATION,
    TEMPLATE_ANNOTATION,
    VIRTUAL_POOL,
    build_auto_rebalance_name,
    build_pod_set_name,
    is_annotated,
    read_node_id,
)
from plimsoll.kafka.wire.node_pools import build_virtual_pool, read_node_pool, warn_of_shared_ids
from plimsoll.kafka.wire.rebalance_specs import read_settings_spec
from plimsoll.kafka.wire.rebalance_status import read_state
from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.kube.undecoded_objects import get_or_explain, read_undecoded
from plimsoll.objects.api.kafka import (
    Kafka,
    KafkaNodePool,
    KafkaRebalance,
    KafkaRebalanceSettings,
    StrimziPodSet,
)
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.codec.decode_problems import BadObject

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import Condition, Json
    from plimsoll.objects.codec.decoding import RawObject

T = TypeVar("T", bound=WireObject)

MODES: Final = (Mode.ADD_BROKERS, Mode.REMOVE_BROKERS)
CONTRADICTED: Final = "ContradictedObject"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPodSet:
    """A pod set and the node ids of the pods that it lists."""

    view: StrimziPodSet
    listed: ListedPods
    node_ids: frozenset[int]

    @property
    def is_up_to_date(self) -> bool:
        """Whether the pod-set controller has seen the spec, and every listed pod is ready."""
        status = self.view.status
        count = len(self.view.spec.pods)
        is_seen = status.observed_generation == self.view.metadata.generation
        return is_seen and count == status.pods == status.ready_pods


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCluster:
    """A Kafka and its objects."""

    kafka: Kafka
    status: dict[str, Any]
    """As the server has it."""
    pools: Mapping[str, KafkaNodePool]
    """By name; empty for a Kafka without node pools."""
    pod_sets: Mapping[str, ObservedPodSet]
    """By the name of their pool."""
    requested: tuple[NodePool, ...]
    """What the pools ask for, the virtual pool included. Pools that are gone ask for what they have."""
    orphaned: tuple[str, ...]
    """Pools that are gone and whose pod sets exist."""
    rebalances: Mapping[Mode, AutoRebalanceObject]
    sessions: frozenset[str]
    """The sessions of these KafkaRebalances at Cruise Control."""
    versions: Mapping[Mode, str]
    """The resource versions of these KafkaRebalances: what has changed since is not deleted."""
    warnings: tuple[Reason, ...]

    def list_left(self) -> tuple[int, ...]:
        """Registered nodes that no pool has any longer."""
        known = {node_id for pool in self.requested for node_id in pool.node_ids}
        return tuple(node_id for node_id in self.kafka.status.registered_node_ids if node_id not in known)


class KafkaObserver:
    """Reads a Kafka with its node pools, pods and rebalances from the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def observe(self, namespace: str, name: str) -> ObservedCluster | None:
        """The cluster; None: there is no such Kafka. Raises `ReconcileFailed` if an object cannot be decoded."""
        found = await self._find(Kafka, namespace, name)
        if found is None:
            return None
        kafka = found.view
        pools = {pool.metadata.name: pool for pool in await self._list(KafkaNodePool, namespace, name)}
        pod_sets = await self._read_pod_sets(namespace, name)
        requested, orphaned, warnings = _read_pools(kafka, pools, pod_sets)
        rebalances = await self.read_rebalances(namespace, name)
        return ObservedCluster(
            kafka=kafka,
            status=_get_status(found.raw),
            pools=pools,
            pod_sets=pod_sets,
            requested=requested,
            orphaned=orphaned,
            rebalances={mode: _read_rebalance(rebalance) for mode, rebalance in rebalances.items()},
            sessions=frozenset(rebalance.status.session_id for rebalance in rebalances.values()) - {""},
            versions={mode: rebalance.metadata.resource_version for mode, rebalance in rebalances.items()},
            warnings=warnings,
        )

    async def observe_kafka(self, namespace: str, name: str) -> ObservedCluster | None:
        """The metadata and the status of a Kafka, to write a condition on it; None: there is no such Kafka."""
        found = await read_undecoded(self._client, Kafka, name, namespace=namespace)
        if found is None:
            return None
        return ObservedCluster(
            kafka=Kafka(metadata=found.metadata),
            status=found.status,
            pools={},
            pod_sets={},
            requested=(),
            orphaned=(),
            rebalances={},
            sessions=frozenset(),
            versions={},
            warnings=(),
        )

    async def confirm_pools(self, observed: ObservedCluster, names: Collection[str]) -> None:
        """Read pools that lose nodes a second time, in another way: a list may be old or incomplete.

        Raises `ReconcileFailed` if both reads do not agree.
        """
        namespace, cluster = observed.kafka.metadata.namespace, observed.kafka.metadata.name
        for name in names:
            listed = observed.pools.get(name)
            if listed is not None:
                path, known = f"kafkanodepool/{namespace}/{name}", listed.metadata
                read = await self._find(KafkaNodePool, namespace, name)
                again = None if read is None else read.metadata
            else:
                path, known = f"kafka/{namespace}/{cluster}", observed.kafka.metadata
                kafkas = await self._client.list(Kafka, Selection(namespace=namespace))
                again = next((found.metadata for found in kafkas.items if found.metadata.name == cluster), None)
            if again is None or (again.uid, again.generation) != (known.uid, known.generation):
                message = f"{path} is another one when it is read again: no broker is removed"
                raise ReconcileFailed(Reason(code=CONTRADICTED, message=message))

    async def refresh_pod_sets(self, observed: ObservedCluster) -> ObservedCluster:
        """The cluster with its pod sets read again: one was written."""
        metadata = observed.kafka.metadata
        return replace(observed, pod_sets=await self._read_pod_sets(metadata.namespace, metadata.name))

    async def read_rebalances(self, namespace: str, cluster: str) -> dict[Mode, KafkaRebalance]:
        """The KafkaRebalances that have the names of automatic ones."""
        names = {mode: build_auto_rebalance_name(cluster, mode) for mode in MODES}
        found = {mode: await self._find(KafkaRebalance, namespace, name) for mode, name in names.items()}
        return {mode: rebalance.view for mode, rebalance in found.items() if rebalance is not None}

    async def find_settings(self, namespace: str, configured: ModeConfiguration | None, goals: Json) -> SettingsLookup:
        """The settings that a mode refers to."""
        if configured is None or configured.settings is None:
            return SettingsLookup(spec=RebalanceSpec())
        reference = configured.settings
        try:
            read: RawObject[KafkaRebalanceSettings] | RawObject[KafkaRebalance] | None = (
                await self._find(KafkaRebalanceSettings, namespace, reference.name)
                if reference.kind is SettingsKind.SETTINGS
                else await self._find(KafkaRebalance, namespace, reference.name)
            )
        except ObjectsUnreadable as error:
            problem = f"cannot be decoded: {error.objects[0].problem}"
            return SettingsLookup(problem=_explain_invalid(reference, namespace, problem))
        if read is None:
            return SettingsLookup(problem=_explain_missing(reference, namespace))
        found = read.view
        if reference.kind is SettingsKind.TEMPLATE and not is_annotated(
            found.metadata.annotations, TEMPLATE_ANNOTATION
        ):
            problem = f"lacks the annotation {TEMPLATE_ANNOTATION}: true"
            return SettingsLookup(problem=_explain_invalid(reference, namespace, problem))
        supported = tuple(goals.split(",")) if isinstance(goals, str) else ()
        reading = read_settings_spec(found.spec, supported_goals=supported)
        if reading.spec is None:
            problem = "; ".join(problem.message for problem in reading.problems)
            return SettingsLookup(problem=_explain_invalid(reference, namespace, problem))
        what = _name(reference, namespace)
        warnings = [
            msgspec.structs.replace(warning, message=f"{what}: {warning.message}") for warning in reading.warnings
        ]
        return SettingsLookup(spec=reading.spec, warnings=tuple(warnings))

    async def _read_pod_sets(self, namespace: str, cluster: str) -> dict[str, ObservedPodSet]:
        found: dict[str, ObservedPodSet] = {}
        for pod_set in await self._list(StrimziPodSet, namespace, cluster):
            pool = pod_set.metadata.labels.get(POOL_NAME_LABEL, "")
            if pod_set.metadata.name != build_pod_set_name(cluster, pool):
                continue  # Strimzi labels the pod sets of Connect and others with the cluster too.
            listed = read_listed_pods(pod_set)
            if listed.problems:
                problem = f"strimzipodset/{namespace}/{pod_set.metadata.name}: {describe_problems(listed.problems)}"
                raise ReconcileFailed(Reason(code=UNREADABLE, message=f"{problem}: nothing is changed"))
            ids = {pod_name: read_node_id(pod_name, cluster, pool) for pod_name in listed.pods}
            if unknown := sorted(pod_name for pod_name, node_id in ids.items() if node_id is None):
                problem = f"strimzipodset/{namespace}/{pod_set.metadata.name} lists {unknown[0]}, which is not its node"
                raise ReconcileFailed(Reason(code=UNREADABLE, message=f"{problem}: nothing is changed"))
            node_ids = frozenset(node_id for node_id in ids.values() if node_id is not None)
            found[pool] = ObservedPodSet(view=pod_set, listed=listed, node_ids=node_ids)
        return found

    async def _list(self, kind: type[Any], namespace: str, cluster: str) -> tuple[Any, ...]:
        listed = await self._client.list(kind, Selection(namespace=namespace, labels=f"{CLUSTER_LABEL}={cluster}"))
        if listed.problem:
            message = f"{kind.__name__.lower()}: the list cannot be read: {listed.problem}"
            raise ReconcileFailed(Reason(code=UNREADABLE, message=f"{message}: nothing is changed"))
        if listed.bad:
            raise ObjectsUnreadable(listed.bad)
        return tuple(listed.items)

    async def _find(self, kind: type[T], namespace: str, name: str) -> RawObject[T] | None:
        """An object; None: there is none. Raises `ObjectsUnreadable`."""
        try:
            found = await get_or_explain(self._client, kind, name, namespace=namespace)
        except NotFound:
            return None
        if isinstance(found, BadObject):
            raise ObjectsUnreadable((found,))
        return found


def _read_pools(
    kafka: Kafka, pools: Mapping[str, KafkaNodePool], pod_sets: Mapping[str, ObservedPodSet]
) -> tuple[tuple[NodePool, ...], tuple[str, ...], tuple[Reason, ...]]:
    requested: list[NodePool] = []
    warnings: list[Reason] = []
    for name, pool in pools.items():
        read, problems = read_node_pool(pool)
        requested.append(_add_listed(read, pod_sets[name]) if name in pod_sets else read)
        warnings += problems
    warnings += warn_of_shared_ids(requested)
    if not pools:
        known = pod_sets[VIRTUAL_POOL].node_ids if VIRTUAL_POOL in pod_sets else ()
        virtual = build_virtual_pool(kafka, sorted(known))
        if virtual is not None:
            requested.append(virtual)
    names = {pool.name for pool in requested}
    orphaned = sorted(name for name, pod_set in pod_sets.items() if name not in names and pod_set.node_ids)
    for name in orphaned:
        requested.append(_keep_orphaned(kafka, name, pod_sets[name]))
        warnings.append(_warn_of_orphaned(kafka, name))
    return tuple(requested), tuple(orphaned), tuple(warnings)


def _add_listed(pool: NodePool, pod_set: ObservedPodSet) -> NodePool:
    """The pool with what its pod set shows: a status may be lost, and pods run with the roles they were made with."""
    unknown = sorted(pod_set.node_ids.difference(pool.node_ids))
    pods = pod_set.listed.pods.values()
    return msgspec.structs.replace(
        pool,
        node_ids=(*pool.node_ids, *unknown),
        has_broker_pods=any(pod.labels.get(BROKER_ROLE_LABEL) == "true" for pod in pods),
        has_controller_pods=any(pod.labels.get(CONTROLLER_ROLE_LABEL) == "true" for pod in pods),
    )


def _keep_orphaned(kafka: Kafka, name: str, pod_set: ObservedPodSet) -> NodePool:
    """A pool that is gone keeps its nodes: their brokers may hold replicas."""
    labels = pod_set.view.metadata.labels
    roles = {BROKER_ROLE: labels.get(BROKER_ROLE_LABEL), CONTROLLER_ROLE: labels.get(CONTROLLER_ROLE_LABEL)}
    held = tuple(role for role, value in roles.items() if value == "true")
    return NodePool(
        name=name,
        path=f"strimzipodset/{kafka.metadata.namespace}/{pod_set.view.metadata.name}",
        replicas=len(pod_set.node_ids),
        roles=held or (BROKER_ROLE,),
        node_ids=tuple(sorted(pod_set.node_ids)),
    )


def _warn_of_orphaned(kafka: Kafka, name: str) -> Reason:
    return Reason(
        code="KafkaNodePoolMissing",
        message=f"the pool {name} is gone, and its pods stay: create it again, then lower its replicas",
        facts={"pool": name, "cluster": kafka.metadata.name},
    )


def _read_rebalance(rebalance: KafkaRebalance) -> AutoRebalanceObject:
    metadata, status = rebalance.metadata, rebalance.status
    state, condition, _ = read_state(status.conditions)
    spec = rebalance.spec if isinstance(rebalance.spec, dict) else {}
    brokers = spec.get("brokers")
    ids = [broker for broker in brokers if isinstance(broker, int)] if isinstance(brokers, list) else []
    mode = spec.get("mode")
    return AutoRebalanceObject(
        uid=metadata.uid,
        is_ours=AUTO_REBALANCING_FINALIZER in metadata.finalizers,
        state=state,
        mode=mode if isinstance(mode, str) else "",
        brokers=tuple(sorted(set(ids))),
        annotation=metadata.annotations.get(REBALANCE_ANNOTATION, "").strip(),
        is_deleting=metadata.deletion_timestamp is not None,
        message=condition.message,
        is_transient=is_renewing(condition.reason, condition.message),
        has_session=bool(status.session_id),
        replica_movements=_read_movements(status.optimization_result),
        empty_brokers=_read_empty_brokers(status.conditions),
    )


def _read_empty_brokers(conditions: Sequence[Condition]) -> str:
    found = [condition.message for condition in conditions if condition.reason == BROKERS_STAY_EMPTY]
    return found[0] if found else ""


def _read_movements(result: object) -> int | None:
    number = result.get("numReplicaMovements") if isinstance(result, dict) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _explain_missing(reference: SettingsReference, namespace: str) -> Reason:
    what = _name(reference, namespace)
    return Reason(
        code="AutoRebalanceSettingsNotFound",
        message=f"{what} does not exist; the rebalance starts once it does",
        facts={"settings": what},
    )


def _explain_invalid(reference: SettingsReference, namespace: str, problem: str) -> Reason:
    what = _name(reference, namespace)
    return Reason(code="AutoRebalanceSettingsInvalid", message=f"{what}: {problem}", facts={"settings": what})


def _name(reference: SettingsReference, namespace: str) -> str:
    kind = "kafkarebalancesettings" if reference.kind is SettingsKind.SETTINGS else "kafkarebalance"
    return f"{kind}/{namespace}/{reference.name}"


def _get_status(raw: bytes) -> dict[str, Any]:
    status = msgspec.json.decode(raw).get("status")
    return status if isinstance(status, dict) else {}
