"""Carries out the acts of a decision, one after the other: writes TidbClusters and drains stores.

Every write carries the version of the object that the decision was based on, so that no other change is overwritten: a
`Conflict` makes the reconcile start again. Acts are idempotent, so a crash between two of them is harmless. What cannot
be done now is a result, not an exception. Nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, assert_never

import msgspec
import structlog

from plimsoll.core.errors import GaveUp, InvalidInput
from plimsoll.core.plans import Reason, Result
from plimsoll.kube.errors import AlreadyExists, Conflict, NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.objects.api.pods import is_pod_ready
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.tidb.actuation.deletion import Finalization
from plimsoll.tidb.actuation.volumes import defer_deletion
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.names import find_free_name
from plimsoll.tidb.model.reconcile_result import ActResult, get_target_cluster
from plimsoll.tidb.model.reconcile_types import EXTERNAL, BringBack, CreateGroup, RaiseBase, Remove, Resize, TakeOut
from plimsoll.tidb.observing.component_state import find_clusters, read_store_ids
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.planning.drain.types import (
    LOW_SPACE,
    Blocked,
    Drained,
    DrainInProgress,
    StoreDrain,
    Unknown,
    read_delete_slots,
)
from plimsoll.tidb.wire.annotations import DRAIN, LAST_CHANGE, read_drain_record, write_change_time, write_drain_record
from plimsoll.tidb.wire.cluster_manifests import (
    GroupOwner,
    build_external_manifest,
    build_follow_patch,
    build_group_manifest,
    make_name_seed,
)

if TYPE_CHECKING:
    from datetime import datetime
    from fractions import Fraction

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.operator.intents import IntentStore
    from plimsoll.tidb.model.reconcile_types import Act, DrainRecord
    from plimsoll.tidb.observing.observer import Cluster, Observed


log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

Json = dict[str, Any]

_NAMES_TRIED: Final = 8
PD_UNKNOWN: Final = "PdUnknown"
CHANGED_MEANWHILE: Final = "ChangedMeanwhile"


class StoreDrainer(Protocol):
    """Drains the TiKV stores of a TidbCluster."""

    async def take_out(
        self, drain: StoreDrain, *, now: datetime, write_record: IntentStore[DrainRecord]
    ) -> Drained | DrainInProgress | Blocked | Unknown: ...

    async def drain_all(
        self, drain: StoreDrain, *, now: datetime, write_record: IntentStore[DrainRecord]
    ) -> Drained | DrainInProgress | Blocked | Unknown: ...

    async def bring_back(
        self, drain: StoreDrain, *, wanted: int, write_record: IntentStore[DrainRecord]
    ) -> Drained | PdFailed | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ActContext:
    """The component and the observation that acts belong to.

    `highest_usage`: the allowed disk usage after a removal.
    """

    observed: Observed
    component: Component
    highest_usage: Fraction
    now: datetime

    @property
    def base(self) -> Cluster:
        assert self.observed.base is not None, "acts need a base cluster"
        return self.observed.base

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        return find_clusters(self.observed, self.component)

    def find_cluster(self, name: str) -> Cluster:
        return next(raw for raw in self.observed.clusters if raw.metadata.name == name)

    @property
    def owner(self) -> GroupOwner:
        metadata = self.observed.autoscaler.metadata
        return GroupOwner(
            autoscaler=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            component=self.component,
            now=self.now,
            cluster_domain=self.observed.autoscaler.spec.cluster.cluster_domain,
        )


class Actuator:
    """Acts on one component in one reconcile. The drainer uses the PD of the base cluster."""

    def __init__(self, client: Client, drainer: StoreDrainer, context: ActContext) -> None:
        self._client = client
        self._drainer = drainer
        self._context = context
        self._finalization = Finalization(client)
        self._writers: dict[str, ClusterWriter] = {}
        self._is_confirmed = False

    async def do(self, act: Act) -> ActResult:
        """Carry out an act. `OVERTAKEN`: the object was changed since it was read; the reconcile starts again."""
        try:
            return await self._do(act)
        except (Conflict, NotFound) as error:
            if isinstance(act, CreateGroup) and isinstance(error, NotFound):
                raise
            cluster = get_target_cluster(act, base=self._context.base.metadata.name)
            reason = Reason(code=CHANGED_MEANWHILE, message=str(error))
            return ActResult(act=act, cluster=cluster, result=Result.OVERTAKEN, reason=reason)

    async def _do(self, act: Act) -> ActResult:
        match act:
            case RaiseBase():
                return await self._raise_base(act)
            case CreateGroup():
                return await self._create(act)
            case Resize():
                return await self._resize(act)
            case TakeOut():
                return await self._take_out(act)
            case BringBack():
                return await self._bring_back(act)
            case Remove():
                return await self._remove(act)
        assert_never(act)

    async def follow(self) -> tuple[str, ...]:
        """Update our clusters where the base was edited. Returns the names of updated clusters."""
        base = msgspec.json.decode(self._context.base.raw)
        found = []
        for cluster in self._context.clusters:
            patch = self._patch_to_follow(base, cluster)
            if patch is None or cluster.metadata.deletion_timestamp is not None:
                continue
            try:
                await self._build_writer(cluster.metadata.name).patch(patch)
            except (Conflict, NotFound):
                # The next reconcile follows.
                continue
            log.info("cluster.followed", namespace=cluster.metadata.namespace, name=cluster.metadata.name)
            found.append(cluster.metadata.name)
        return tuple(found)

    def _patch_to_follow(self, base: Json, cluster: Cluster) -> Json | None:
        """The patch, or None.

        An unreadable configuration is neither followed nor overwritten; the decision reports it.
        """
        try:
            return build_follow_patch(base, msgspec.json.decode(cluster.raw), component=self._context.component)
        except InvalidInput as error:
            metadata = cluster.metadata
            log.warning("cluster.not_followed", namespace=metadata.namespace, name=metadata.name, problem=str(error))
            return None

    def _build_writer(self, name: str) -> ClusterWriter:
        """The writer of a cluster, with the version that this reconcile wrote last."""
        if name not in self._writers:
            self._writers[name] = ClusterWriter(self._client, self._context.find_cluster(name).metadata)
        return self._writers[name]

    async def _confirm(self) -> None:
        """Make sure, before anything is removed, that the autoscaler is as it was read.

        An empty patch with the version that was read changes nothing and fails if the autoscaler was changed since. So
        an outdated answer of the API server removes nothing. Raises `Conflict`.
        """
        if not self._is_confirmed:
            metadata = self._context.observed.scaler.metadata
            patch = {"metadata": {"resourceVersion": metadata.resource_version}}
            await self._client.merge_patch(TidbClusterAutoScaler, metadata.name, patch, namespace=metadata.namespace)
            self._is_confirmed = True

    def _record_writer(self, group: str) -> IntentStore[DrainRecord]:
        """Writes drain records of a group."""

        async def write(record: DrainRecord | None, /) -> None:
            await self._confirm()
            await self._build_writer(group).write_record(record)

        return write

    # ---- the base cluster

    async def _raise_base(self, act: RaiseBase) -> ActResult:
        """Write only the replicas: everything else belongs to the owner of the cluster."""
        await ClusterWriter(self._client, self._context.base.metadata).patch(
            _build_replicas(self._context.component, act.replicas)
        )
        return ActResult(act=act, cluster=self._context.base.metadata.name)

    # ---- new groups

    async def _create(self, act: CreateGroup) -> ActResult:
        metadata = self._context.observed.autoscaler.metadata
        namespace = self._context.observed.namespace
        if not await self._finalization.ensure_finalizer(
            metadata, component=self._context.component, namespace=namespace
        ):
            reason = Reason(code="BeingDeleted", message="the autoscaler is being deleted")
            return ActResult(act=act, cluster="", result=Result.OVERTAKEN, reason=reason)
        if act.key == EXTERNAL:
            body = build_external_manifest(
                msgspec.json.decode(self._context.base.raw), self._context.owner, replicas=act.plan.count
            )
            return await self._create_named(act, body)
        taken = set(self._context.observed.taken)
        for _ in range(_NAMES_TRIED):
            name = find_free_name(make_name_seed(self._context.owner, act.plan, act.size), taken)
            base = msgspec.json.decode(self._context.base.raw)
            body = build_group_manifest(base, self._context.owner, plan=act.plan, size=act.size, name=name)
            result = await self._create_named(act, body)
            if result.result is not Result.FAILED:
                return result
            taken.add(name.name)
        raise GaveUp(f"{_NAMES_TRIED} names for the group {act.key} are taken")

    async def _create_named(self, act: CreateGroup, body: Json) -> ActResult:
        """Create the TidbCluster. `FAILED`: another cluster has the name."""
        metadata = body["metadata"]
        try:
            await self._client.create(TidbCluster, body, namespace=self._context.observed.namespace)
        except AlreadyExists:
            existing = await self._client.get(TidbCluster, metadata["name"], namespace=self._context.observed.namespace)
            if all(existing.metadata.labels.get(key) == value for key, value in metadata["labels"].items()):
                reason = Reason(code="Adopted", message="it exists already, with our labels")
                return ActResult(act=act, cluster=metadata["name"], result=Result.ALREADY_SO, reason=reason)
            reason = Reason(code="NameTaken", message=f"the name {metadata['name']} is taken by another TidbCluster")
            return ActResult(act=act, cluster=metadata["name"], result=Result.FAILED, reason=reason)
        return ActResult(act=act, cluster=metadata["name"])

    # ---- size changes

    async def _resize(self, act: Resize) -> ActResult:
        patch = {**_build_change_time(self._context.now), **_build_replicas(self._context.component, act.replicas)}
        if act.replicas < act.was:
            await self._confirm()
        await self._build_writer(act.group).patch(patch)
        return ActResult(act=act, cluster=act.group)

    async def _take_out(self, act: TakeOut) -> ActResult:
        written, drain = self._build_writer(act.group), _store_drain(self._context, act.group)
        write_record = self._record_writer(act.group)
        drained = await self._drainer.take_out(drain, now=self._context.now, write_record=write_record)
        if isinstance(drained, Drained):
            await self._confirm()
            if drained.is_disk_free:
                await defer_deletion(self._client, drain, now=self._context.now)
            await written.patch(_build_lowering(self._context, act.replicas))
            return ActResult(act=act, cluster=act.group)
        return _build_drain_result(act, drained)

    async def _bring_back(self, act: BringBack) -> ActResult:
        written, drain = self._build_writer(act.group), _store_drain(self._context, act.group)
        cancelled = await self._drainer.bring_back(drain, wanted=act.replicas, write_record=written.write_record)
        if isinstance(cancelled, PdFailed):
            reason = Reason(code=PD_UNKNOWN, message=cancelled.problem)
            return ActResult(act=act, cluster=act.group, result=Result.FAILED, reason=reason, is_underway=True)
        if isinstance(cancelled, Drained):
            # It is a Tombstone already: its pod is removed first, and a later reconcile adds the instance again.
            await defer_deletion(self._client, drain, now=self._context.now)
            await written.patch(_build_lowering(self._context, max(0, act.was - 1)))
            reason = Reason(code="TooLate", message=cancelled.message)
            return ActResult(act=act, cluster=act.group, result=Result.OVERTAKEN, reason=reason, is_underway=True)
        if act.replicas != act.was:
            await written.patch(
                {**_build_change_time(self._context.now), **_build_replicas(self._context.component, act.replicas)}
            )
        return ActResult(act=act, cluster=act.group)

    async def _remove(self, act: Remove) -> ActResult:
        """Delete a TidbCluster; for TiKV only when PD has no store of it left."""
        cluster = self._context.find_cluster(act.group)
        if self._context.component is Component.TIKV:
            drained = await self._drainer.drain_all(
                _store_drain(self._context, act.group),
                now=self._context.now,
                write_record=self._record_writer(act.group),
            )
            if not isinstance(drained, Drained):
                return _build_drain_result(act, drained)
        metadata = cluster.metadata
        await self._confirm()
        try:
            options = DeleteOptions(uid=metadata.uid, resource_version=self._build_writer(act.group).version)
            await self._client.delete(TidbCluster, metadata.name, namespace=metadata.namespace, options=options)
        except NotFound:
            log.debug("cluster.gone_already", namespace=metadata.namespace, name=metadata.name)
        return ActResult(act=act, cluster=act.group)


def _store_drain(context: ActContext, group: str) -> StoreDrain:
    """The input of the drainer. The stores of all clusters of the same PD are known, so that a list may be verified."""
    observed = context.observed
    clusters = [context.base, *observed.clusters]
    ready = frozenset(pod.metadata.name for pod in observed.pods.get(group, ()) if is_pod_ready(pod))
    return msgspec.structs.replace(
        build_store_drain(context.find_cluster(group).view, highest_usage=context.highest_usage),
        known_stores=frozenset(store_id for raw in clusters for store_id in read_store_ids(raw.view)),
        ready_pods=ready,
    )


def _build_drain_result(act: TakeOut | Remove, drained: DrainInProgress | Blocked | Unknown) -> ActResult:
    match drained:
        case DrainInProgress():
            return ActResult(
                act=act, cluster=act.group, result=Result.HELD_BACK, reason=drained.reason, is_underway=True
            )
        case Blocked():
            return ActResult(
                act=act,
                cluster=act.group,
                result=Result.HELD_BACK,
                reason=drained.reason,
                is_blocked=True,
                is_underway=drained.record is not None,
            )
        case Unknown():
            reason = Reason(code=PD_UNKNOWN, message=drained.problem)
            return ActResult(act=act, cluster=act.group, result=Result.FAILED, reason=reason, is_blocked=True)
    assert_never(drained)


def _build_replicas(component: Component, replicas: int) -> Json:
    return {"spec": {component.value: {"replicas": replicas}}}


def _build_change_time(now: datetime) -> Json:
    return {"metadata": {"annotations": {LAST_CHANGE: write_change_time(now)}}}


def _build_lowering(context: ActContext, replicas: int) -> Json:
    """The patch after a store was removed: replicas and record change in one write."""
    annotations = {LAST_CHANGE: write_change_time(context.now), DRAIN: None}
    return {"metadata": {"annotations": annotations}, **_build_replicas(context.component, replicas)}


_DELETE_SLOTS: Final = "tikv.tidb.pingcap.com/delete-slots"


class ClusterWriter:
    """Writes a TidbCluster, possibly several times: each write is based on the version of the previous one."""

    def __init__(self, client: Client, metadata: ObjectMeta) -> None:
        self.version = metadata.resource_version
        self._client = client
        self._metadata = metadata

    async def patch(self, body: Json) -> None:
        """Merge `body`. Raises `Conflict` if the object was changed meanwhile."""
        metadata = {**body.get("metadata", {}), **({"resourceVersion": self.version} if self.version else {})}
        whole = {**body, **({"metadata": metadata} if metadata else {})}
        name, namespace = self._metadata.name, self._metadata.namespace
        written = await self._client.merge_patch(TidbCluster, name, whole, namespace=namespace)
        self.version = written.metadata.resource_version

    async def write_record(self, record: DrainRecord | None, /) -> None:
        """An `IntentStore` for drain records."""
        text = None if record is None else write_drain_record(record)
        await self.patch({"metadata": {"annotations": {DRAIN: text}}})


def build_store_drain(cluster: TidbCluster, *, highest_usage: Fraction = LOW_SPACE) -> StoreDrain:
    """The input of the drainer for a cluster."""
    own, metadata = cluster.spec.tikv, cluster.metadata
    return StoreDrain(
        namespace=metadata.namespace,
        cluster=metadata.name,
        replicas=own.replicas if own is not None else 0,
        record=read_drain_record(metadata.annotations),
        highest_usage=highest_usage,
        delete_slots=read_delete_slots(metadata.annotations.get(_DELETE_SLOTS)),
        known_stores=read_store_ids(cluster),
    )
