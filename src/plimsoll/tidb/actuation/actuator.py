"""Does what a pass decided, one act after the other: writes TidbClusters, and lets the drainer empty stores.

Every write says the version of the object it was decided on, so that nobody's change is written over: `Conflict` passes
through, and the pass is made anew. Acts are idempotent by what they say; a crash between two of them is harmless. What
cannot be done now is a result and no exception. Nothing is decided here.

TidbClusters as they are written to: each write on the version of the one before, so that nobody is written over.

Acting writes replicas and what goes with them, the drainer its marks; both through one `WrittenCluster` a pass.
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
from plimsoll.objects.api.tidb import TidbCluster
from plimsoll.tidb.actuation.deletion import Finalization
from plimsoll.tidb.actuation.volumes import defer_deletion
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.names import free_name
from plimsoll.tidb.model.reconcile_result import ActDone, cluster_of
from plimsoll.tidb.model.reconcile_types import EXTERNAL, BringBack, CreateGroup, RaiseBase, Remove, Resize, TakeOut
from plimsoll.tidb.observing.component_state import clusters_of
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.planning.drain.types import (
    LOW_SPACE,
    Blocked,
    Drained,
    DrainInProgress,
    StoreDrain,
    Unknown,
    delete_slots_of,
)
from plimsoll.tidb.wire import annotations as marks
from plimsoll.tidb.wire.cluster_manifests import MadeFor, external_body, followed, group_body, seed_of

if TYPE_CHECKING:
    from datetime import datetime
    from fractions import Fraction

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.operator.intents import IntentStore
    from plimsoll.tidb.model.reconcile_types import Act, DrainMark
    from plimsoll.tidb.observing.observer import Cluster, Observed


log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

Json = dict[str, Any]

_NAMES_TRIED: Final = 8
PD_UNKNOWN: Final = "PdUnknown"
CHANGED_MEANWHILE: Final = "ChangedMeanwhile"


class Drainer(Protocol):
    """What is asked of `draining.Drainer`."""

    async def take_out(
        self, leaving: StoreDrain, *, now: datetime, remember: IntentStore[DrainMark]
    ) -> Drained | DrainInProgress | Blocked | Unknown: ...

    async def clear(
        self, leaving: StoreDrain, *, now: datetime, remember: IntentStore[DrainMark]
    ) -> Drained | DrainInProgress | Blocked | Unknown: ...

    async def bring_back(
        self, leaving: StoreDrain, *, wanted: int, remember: IntentStore[DrainMark]
    ) -> Drained | PdFailed | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ActContext:
    """Where acts are done: a component of what was observed. `highest_usage`: that of disks, after a store left."""

    observed: Observed
    component: Component
    highest_usage: Fraction
    now: datetime

    @property
    def base(self) -> Cluster:
        assert self.observed.base is not None, "nothing is done without a base cluster"
        return self.observed.base

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        return clusters_of(self.observed, self.component)

    def cluster(self, name: str) -> Cluster:
        return next(raw for raw in self.observed.clusters if raw.metadata.name == name)

    @property
    def made_for(self) -> MadeFor:
        metadata = self.observed.autoscaler.metadata
        return MadeFor(
            autoscaler=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            component=self.component,
            now=self.now,
            cluster_domain=self.observed.autoscaler.spec.cluster.cluster_domain,
        )


class Actuator:
    """For one component in one pass. The drainer speaks to the PD of the base cluster."""

    def __init__(self, client: Client, drainer: Drainer, site: ActContext) -> None:
        self._client = client
        self._drainer = drainer
        self._site = site
        self._parting = Finalization(client)
        self._written: dict[str, WrittenCluster] = {}

    async def do(self, act: Act) -> ActDone:
        """Overtaken: somebody wrote to the object since it was read; all is looked at anew then."""
        try:
            return await self._do(act)
        except (Conflict, NotFound) as error:
            if isinstance(act, CreateGroup) and isinstance(error, NotFound):
                raise
            cluster = cluster_of(act, base=self._site.base.metadata.name)
            told = Reason(code=CHANGED_MEANWHILE, message=str(error))
            return ActDone(act=act, cluster=cluster, result=Result.OVERTAKEN, reason=told)

    async def _do(self, act: Act) -> ActDone:
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
        """Let our clusters follow the base where that was edited; the names of those that had to."""
        base = msgspec.json.decode(self._site.base.raw)
        found = []
        for cluster in self._site.clusters:
            patch = self._patch_to_follow(base, cluster)
            if patch is None or cluster.metadata.deletion_timestamp is not None:
                continue
            try:
                await self._cluster(cluster.metadata.name).patch(patch)
            except (Conflict, NotFound):
                # The next pass follows.
                continue
            log.info("cluster.followed", namespace=cluster.metadata.namespace, name=cluster.metadata.name)
            found.append(cluster.metadata.name)
        return tuple(found)

    def _patch_to_follow(self, base: Json, cluster: Cluster) -> Json | None:
        """What cannot be read is not followed, nor written over; that of the base is told by who decided."""
        try:
            return followed(base, msgspec.json.decode(cluster.raw), component=self._site.component)
        except InvalidInput as error:
            metadata = cluster.metadata
            log.warning("cluster.not_followed", namespace=metadata.namespace, name=metadata.name, problem=str(error))
            return None

    def _cluster(self, name: str) -> WrittenCluster:
        """As it was last written by this pass."""
        if name not in self._written:
            self._written[name] = WrittenCluster(self._client, self._site.cluster(name).metadata)
        return self._written[name]

    # ---- the base cluster

    async def _raise_base(self, act: RaiseBase) -> ActDone:
        """Only the replicas: the rest of it is its owner's."""
        await WrittenCluster(self._client, self._site.base.metadata).patch(
            _replicas(self._site.component, act.replicas)
        )
        return ActDone(act=act, cluster=self._site.base.metadata.name)

    # ---- making

    async def _create(self, act: CreateGroup) -> ActDone:
        metadata = self._site.observed.autoscaler.metadata
        namespace = self._site.observed.namespace
        if not await self._parting.hold(metadata, component=self._site.component, namespace=namespace):
            told = Reason(code="BeingDeleted", message="the autoscaler is being deleted")
            return ActDone(act=act, cluster="", result=Result.OVERTAKEN, reason=told)
        if act.key == EXTERNAL:
            body = external_body(msgspec.json.decode(self._site.base.raw), self._site.made_for, replicas=act.plan.count)
            return await self._create_named(act, body)
        taken = set(self._site.observed.taken)
        for _ in range(_NAMES_TRIED):
            name = free_name(seed_of(self._site.made_for, act.plan, act.size), taken)
            base = msgspec.json.decode(self._site.base.raw)
            body = group_body(base, self._site.made_for, plan=act.plan, size=act.size, name=name)
            done = await self._create_named(act, body)
            if done.result is not Result.FAILED:
                return done
            taken.add(name.name)
        raise GaveUp(f"{_NAMES_TRIED} names for the group {act.key} are taken by others")

    async def _create_named(self, act: CreateGroup, body: Json) -> ActDone:
        """Failed: another cluster has the name."""
        metadata = body["metadata"]
        try:
            await self._client.create(TidbCluster, body, namespace=self._site.observed.namespace)
        except AlreadyExists:
            there = await self._client.get(TidbCluster, metadata["name"], namespace=self._site.observed.namespace)
            if all(there.metadata.labels.get(key) == value for key, value in metadata["labels"].items()):
                told = Reason(code="Adopted", message="it is there already, with our labels")
                return ActDone(act=act, cluster=metadata["name"], result=Result.ALREADY_SO, reason=told)
            told = Reason(code="NameTaken", message=f"the name {metadata['name']} is taken by another TidbCluster")
            return ActDone(act=act, cluster=metadata["name"], result=Result.FAILED, reason=told)
        return ActDone(act=act, cluster=metadata["name"])

    # ---- another size

    async def _resize(self, act: Resize) -> ActDone:
        patch = {**_changed_at(self._site.now), **_replicas(self._site.component, act.replicas)}
        await self._cluster(act.group).patch(patch)
        return ActDone(act=act, cluster=act.group)

    async def _take_out(self, act: TakeOut) -> ActDone:
        written, leaving = self._cluster(act.group), _leaving(self._site, act.group)
        left = await self._drainer.take_out(leaving, now=self._site.now, remember=written.remember)
        if isinstance(left, Drained):
            if left.is_disk_free:
                await defer_deletion(self._client, leaving, now=self._site.now)
            await written.patch(_lowered(self._site, act.replicas))
            return ActDone(act=act, cluster=act.group)
        return _not_out(act, left)

    async def _bring_back(self, act: BringBack) -> ActDone:
        written, leaving = self._cluster(act.group), _leaving(self._site, act.group)
        back = await self._drainer.bring_back(leaving, wanted=act.replicas, remember=written.remember)
        if isinstance(back, PdFailed):
            told = Reason(code=PD_UNKNOWN, message=back.problem)
            return ActDone(act=act, cluster=act.group, result=Result.FAILED, reason=told, is_underway=True)
        if isinstance(back, Drained):
            # Buried already: its pod goes first, and a pass after that asks for the instance anew.
            await defer_deletion(self._client, leaving, now=self._site.now)
            await written.patch(_lowered(self._site, max(0, act.was - 1)))
            told = Reason(code="TooLate", message=back.said)
            return ActDone(act=act, cluster=act.group, result=Result.OVERTAKEN, reason=told, is_underway=True)
        if act.replicas != act.was:
            await written.patch({**_changed_at(self._site.now), **_replicas(self._site.component, act.replicas)})
        return ActDone(act=act, cluster=act.group)

    async def _remove(self, act: Remove) -> ActDone:
        """A TiKV cluster only when PD has no store of it left."""
        cluster = self._site.cluster(act.group)
        if self._site.component is Component.TIKV:
            remember = self._cluster(act.group).remember
            left = await self._drainer.clear(_leaving(self._site, act.group), now=self._site.now, remember=remember)
            if not isinstance(left, Drained):
                return _not_out(act, left)
        metadata = cluster.metadata
        try:
            options = DeleteOptions(uid=metadata.uid, resource_version=self._cluster(act.group).version)
            await self._client.delete(TidbCluster, metadata.name, namespace=metadata.namespace, options=options)
        except NotFound:
            log.debug("cluster.gone_already", namespace=metadata.namespace, name=metadata.name)
        return ActDone(act=act, cluster=act.group)


def _leaving(site: ActContext, group: str) -> StoreDrain:
    return leaving_from(site.cluster(group).view, highest_usage=site.highest_usage)


def _not_out(act: TakeOut | Remove, left: DrainInProgress | Blocked | Unknown) -> ActDone:
    match left:
        case DrainInProgress():
            return ActDone(act=act, cluster=act.group, result=Result.HELD_BACK, reason=left.reason, is_underway=True)
        case Blocked():
            return ActDone(
                act=act,
                cluster=act.group,
                result=Result.HELD_BACK,
                reason=left.reason,
                is_blocked=True,
                is_underway=left.mark is not None,
            )
        case Unknown():
            told = Reason(code=PD_UNKNOWN, message=left.problem)
            return ActDone(act=act, cluster=act.group, result=Result.FAILED, reason=told, is_blocked=True)
    assert_never(left)


def _replicas(component: Component, replicas: int) -> Json:
    return {"spec": {component.value: {"replicas": replicas}}}


def _changed_at(now: datetime) -> Json:
    return {"metadata": {"annotations": {marks.LAST_CHANGE: marks.written_change(now)}}}


def _lowered(site: ActContext, replicas: int) -> Json:
    """After a store left: one write, so that nobody sees one without the other."""
    annotations = {marks.LAST_CHANGE: marks.written_change(site.now), marks.DRAIN: None}
    return {"metadata": {"annotations": annotations}, **_replicas(site.component, replicas)}


_DELETE_SLOTS: Final = "tikv.tidb.pingcap.com/delete-slots"


class WrittenCluster:
    """One of them, perhaps written several times."""

    def __init__(self, client: Client, metadata: ObjectMeta) -> None:
        self.version = metadata.resource_version
        self._client = client
        self._metadata = metadata

    async def patch(self, body: Json) -> None:
        """Merge; raises `Conflict` if somebody else wrote since."""
        metadata = {**body.get("metadata", {}), **({"resourceVersion": self.version} if self.version else {})}
        whole = {**body, **({"metadata": metadata} if metadata else {})}
        name, namespace = self._metadata.name, self._metadata.namespace
        written = await self._client.merge_patch(TidbCluster, name, whole, namespace=namespace)
        self.version = written.metadata.resource_version

    async def remember(self, mark: DrainMark | None, /) -> None:
        """A `draining.MarkKeeper`."""
        text = None if mark is None else marks.written_mark(mark)
        await self.patch({"metadata": {"annotations": {marks.DRAIN: text}}})


def leaving_from(cluster: TidbCluster, *, highest_usage: Fraction = LOW_SPACE) -> StoreDrain:
    """The cluster as the drainer is told of it."""
    own, metadata = cluster.spec.tikv, cluster.metadata
    return StoreDrain(
        namespace=metadata.namespace,
        cluster=metadata.name,
        replicas=own.replicas if own is not None else 0,
        mark=marks.read_mark(metadata.annotations),
        highest_usage=highest_usage,
        delete_slots=delete_slots_of(metadata.annotations.get(_DELETE_SLOTS)),
    )
