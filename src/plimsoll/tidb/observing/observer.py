"""Reads what one pass needs from Kubernetes, fresh: the autoscaler, its cluster, the clusters we made, nodes, pods.

`autoscaler` begins every pass here. TidbClusters are kept with their bytes, because one is copied to make another. What
is not essential may be missing: a server that has no pods to show, or does not let us see them, stops nothing. Nothing
is decided and nothing is written here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import structlog
from msgspec.structs import replace

from plimsoll.kube.errors import ApiError, NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.core import Namespace
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import RawObject
from plimsoll.objects.owners import controller_of
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.planning.api.defaults import scaled_component
from plimsoll.tidb.planning.api.validation import lets_in
from plimsoll.tidb.wire.annotations import BASE_CLUSTER, is_made_by

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.objects.api.meta import ObjectMeta, WireObject

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

T = TypeVar("T", bound="WireObject")

INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
"""On every pod of a TidbCluster: the cluster's name."""

Scaler = RawObject[TidbClusterAutoScaler]
Cluster = RawObject[TidbCluster]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One autoscaler and what belongs to it. `base` None: there is no such cluster."""

    scaler: Scaler
    base: Cluster | None = None
    clusters: tuple[Cluster, ...] = ()
    """Those that we made for it, of both components."""
    taken: frozenset[str] = frozenset()
    """Names of all TidbClusters in the namespace."""
    rivals: dict[Component, str] = field(default_factory=dict)
    """Who scales a component instead, being older."""
    open_namespaces: frozenset[str] = frozenset()
    is_shut_out: bool = False
    """The base cluster's namespace does not let it in, or nobody can say: what is there was not looked at."""
    pods: dict[str, tuple[Pod, ...]] = field(default_factory=dict)
    """By the TidbCluster they are of; a cluster whose pods could not be listed is not in it."""
    former: tuple[Observed, ...] = ()
    """The same for each other cluster that its groups stand beside: it named that before, and scales nothing there."""

    @property
    def autoscaler(self) -> TidbClusterAutoScaler:
        return self.scaler.view

    @property
    def namespace(self) -> str:
        """Of the base cluster, and so of all that we make."""
        return namespace_of_base(self.autoscaler)


class Nodes(Protocol):
    """The nodes of the cluster: listed, or from an informer. None: nobody can tell."""

    async def nodes(self) -> tuple[Node, ...] | None: ...


class ListedNodes:
    """Asked for when they are wanted."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def nodes(self) -> tuple[Node, ...] | None:
        try:
            return (await self._client.list(Node)).items
        except NotFound:
            return None


class WatchedNodes:
    """From an informer, so that a pass over many autoscalers lists none."""

    def __init__(self, informers: SharedInformerFactory) -> None:
        self._informer = informers.of(Node)

    async def nodes(self) -> tuple[Node, ...] | None:
        await self._informer.synced()
        return self._informer.cache.list()


def namespace_of_base(autoscaler: TidbClusterAutoScaler) -> str:
    return autoscaler.spec.cluster.namespace or autoscaler.metadata.namespace


class Observer:
    """Reads through one client."""

    def __init__(self, client: Client, *, namespace: str = "") -> None:
        self._client = client
        self._namespace = namespace

    async def autoscalers(self) -> tuple[Scaler, ...]:
        """All that there are, in order of their names."""
        found = await self._listed(TidbClusterAutoScaler, self._namespace)
        return tuple(sorted(found, key=lambda raw: (raw.metadata.namespace, raw.metadata.name)))

    async def observe(self, namespace: str, name: str, *, others: Collection[Scaler]) -> Observed | None:
        """None: the autoscaler is gone."""
        scaler = await self._got(TidbClusterAutoScaler, name, namespace)
        if scaler is None:
            return None
        open_namespaces = await self._open_namespaces(scaler.view)
        home = namespace_of_base(scaler.view)
        if home not in {scaler.metadata.namespace, *open_namespaces}:
            # What it says of a place that does not let it in is not looked up: its status would tell what is there.
            is_there = await self._annotations(home) is not None
            return Observed(scaler=scaler, open_namespaces=open_namespaces, is_shut_out=is_there)
        name_of_base = scaler.view.spec.cluster.name
        base = await self._got(TidbCluster, name_of_base, home) if name_of_base else None
        clusters = await self._listed(TidbCluster, home)
        made = tuple(
            raw
            for raw in sorted(clusters, key=lambda raw_object: raw_object.metadata.name)
            if any(_is_made_by(raw.metadata, scaler.view, component) for component in Component)
        )
        return Observed(
            scaler=scaler,
            base=base,
            clusters=made,
            taken=frozenset(raw.metadata.name for raw in clusters),
            rivals=rivals_of(scaler.view, await self._let_in(home, [raw.view for raw in others])),
            open_namespaces=open_namespaces,
            pods={raw.metadata.name: pods for raw in made if (pods := await self._pods_of(raw.metadata)) is not None},
            former=await self._former(scaler, clusters, others),
        )

    async def _former(
        self, scaler: Scaler, clusters: Collection[Cluster], others: Collection[Scaler]
    ) -> tuple[Observed, ...]:
        """What `spec.cluster.name` no longer tells, because it was edited; groups tell it themselves."""
        beside: dict[str, list[Cluster]] = {}
        for raw in sorted(clusters, key=lambda raw_object: raw_object.metadata.name):
            name = raw.metadata.labels.get(BASE_CLUSTER, "")
            view = _of_cluster(scaler.view, name)
            is_ours = any(_is_made_by(raw.metadata, view, component) for component in Component)
            if name and name != scaler.view.spec.cluster.name and is_ours and self._is_sure(raw, scaler, others):
                beside.setdefault(name, []).append(raw)
        home = namespace_of_base(scaler.view)
        return tuple(
            [
                Observed(
                    scaler=RawObject(view=_of_cluster(scaler.view, name), raw=scaler.raw),
                    base=await self._got(TidbCluster, name, home),
                    clusters=tuple(found),
                )
                for name, found in sorted(beside.items())
            ]
        )

    def _is_sure(self, cluster: Cluster, scaler: Scaler, others: Collection[Scaler]) -> bool:
        """Labels tell a name only: without an owner it may be that of an autoscaler in another namespace."""
        owner = controller_of(cluster.metadata)
        if owner is not None:
            return owner.uid == scaler.metadata.uid
        me = scaler.metadata
        namesakes = [raw for raw in others if raw.metadata.name == me.name and raw.metadata.namespace != me.namespace]
        return not self._namespace and not namesakes

    async def _got(self, of: type[T], name: str, namespace: str) -> RawObject[T] | None:
        try:
            return await self._client.get_with_raw(of, name, namespace=namespace)
        except NotFound:
            return None

    async def _listed(self, of: type[T], namespace: str) -> list[RawObject[T]]:
        found: list[RawObject[T]] = []
        async for page in self._client.pages_with_raw(of, Selection(namespace=namespace)):
            for bad in page.listed.bad:
                log.warning("object.unreadable", kind=bad.kind, namespace=bad.namespace, name=bad.name)
            found += [RawObject(view=view, raw=raw) for view, raw in zip(page.listed.items, page.raws, strict=True)]
        return found

    async def _open_namespaces(self, autoscaler: TidbClusterAutoScaler) -> frozenset[str]:
        """Other namespaces that it names and that let it in."""
        home = autoscaler.metadata.namespace
        found = set()
        for name in sorted(_namespaces_named(autoscaler) - {"", home}):
            if lets_in(await self._annotations(name) or {}, home):
                found.add(name)
        return frozenset(found)

    async def _let_in(self, home: str, others: list[TidbClusterAutoScaler]) -> list[TidbClusterAutoScaler]:
        """Those that may scale clusters of a namespace: nobody else can stand in another's way."""
        strangers = {scaler.metadata.namespace for scaler in others if namespace_of_base(scaler) == home} - {home}
        annotations = await self._annotations(home) if strangers else None
        allowed = {home, *(stranger for stranger in strangers if lets_in(annotations or {}, stranger))}
        return [scaler for scaler in others if scaler.metadata.namespace in allowed]

    async def _annotations(self, namespace: str) -> dict[str, str] | None:
        """None: there is no such namespace. One that we may not see tells nothing."""
        try:
            return (await self._client.get(Namespace, namespace)).metadata.annotations
        except NotFound:
            return None
        except ApiError as error:
            log.warning("namespace.unknown", namespace=namespace, problem=str(error))
            return {}

    async def _pods_of(self, cluster: ObjectMeta) -> tuple[Pod, ...] | None:
        selection = Selection(namespace=cluster.namespace, labels=f"{INSTANCE_LABEL}={cluster.name}")
        try:
            listed = await self._client.list(Pod, selection)
        except ApiError as error:
            log.debug("pods.unknown", namespace=cluster.namespace, cluster=cluster.name, problem=str(error))
            return None
        return tuple(pod for pod in listed.items if pod.metadata.labels.get(INSTANCE_LABEL) == cluster.name)


def _of_cluster(autoscaler: TidbClusterAutoScaler, name: str) -> TidbClusterAutoScaler:
    """As if it named another cluster, and scaled nothing of it."""
    spec = autoscaler.spec
    return replace(autoscaler, spec=replace(spec, cluster=replace(spec.cluster, name=name), tikv=None, tidb=None))


def _is_made_by(made: ObjectMeta, autoscaler: TidbClusterAutoScaler, component: Component) -> bool:
    name, base = autoscaler.metadata.name, autoscaler.spec.cluster.name
    owner = controller_of(made)
    if owner is not None and made.namespace != autoscaler.metadata.namespace:
        # Owners live beside what they own: this one was made for an autoscaler of the same name there.
        return False
    return is_made_by(made.labels, autoscaler=name, component=component, base=base)


def rivals_of(autoscaler: TidbClusterAutoScaler, others: Iterable[TidbClusterAutoScaler]) -> dict[Component, str]:
    """Of each component that an older autoscaler scales in the same cluster: its name."""
    found: dict[Component, str] = {}
    for other in sorted(others, key=_age):
        if _is_same(other, autoscaler) or _age(other) >= _age(autoscaler) or not _is_same_base(other, autoscaler):
            continue
        for component in Component:
            if scaled_component(other, component) is not None and scaled_component(autoscaler, component) is not None:
                found.setdefault(component, f"{other.metadata.namespace}/{other.metadata.name}")
    return found


def _age(autoscaler: TidbClusterAutoScaler) -> tuple[Any, ...]:
    """The oldest sorts first; of the same age, by name. One whose age is not told counts as new."""
    metadata = autoscaler.metadata
    created = metadata.creation_timestamp
    return created is None, created.timestamp() if created else 0.0, metadata.name, metadata.namespace


def _is_same(one: TidbClusterAutoScaler, other: TidbClusterAutoScaler) -> bool:
    return (one.metadata.namespace, one.metadata.name) == (other.metadata.namespace, other.metadata.name)


def _is_same_base(one: TidbClusterAutoScaler, other: TidbClusterAutoScaler) -> bool:
    return (namespace_of_base(one), one.spec.cluster.name) == (namespace_of_base(other), other.spec.cluster.name)


def _namespaces_named(autoscaler: TidbClusterAutoScaler) -> set[str]:
    named = {autoscaler.spec.cluster.namespace}
    for component in Component:
        scaled = scaled_component(autoscaler, component)
        if scaled is not None and scaled.external is not None and scaled.external.endpoint.tls_secret is not None:
            named.add(scaled.external.endpoint.tls_secret.namespace)
    return named
