"""Reads what a reconcile needs from Kubernetes: the autoscaler, its cluster, the clusters we created, nodes and pods.

TidbClusters are kept with their bytes, because one is copied to create another. Optional data may be missing: a server
without pods, or without permission to list them, stops nothing. Nothing is decided and nothing is written here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import structlog
from msgspec.structs import replace

from plimsoll.kube.errors import ApiCallFailed, ApiError, NotFound, UnreadableAnswer
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.core import Namespace
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import RawObject
from plimsoll.objects.owners import find_controller
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.observing.cluster_lists import list_clusters
from plimsoll.tidb.planning.api.defaults import get_scaled_component
from plimsoll.tidb.planning.api.validation import allows_namespace
from plimsoll.tidb.wire.annotations import BASE_CLUSTER, is_made_by

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.objects.api.meta import ObjectMeta, WireObject

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

T = TypeVar("T", bound="WireObject")

INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
"""The label of every pod of a TidbCluster: the name of the cluster."""

_SHARE_BELIEVED: Final = 0.1
"""The share of known nodes that may be missing at once without being asked for again."""

Scaler = RawObject[TidbClusterAutoScaler]
Cluster = RawObject[TidbCluster]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """An autoscaler and the objects that belong to it. `base` None: the cluster does not exist."""

    scaler: Scaler
    base: Cluster | None = None
    clusters: tuple[Cluster, ...] = ()
    """The clusters that we created for it, of both components."""
    taken: frozenset[str] = frozenset()
    """Names of all TidbClusters in the namespace."""
    older_autoscalers: dict[Component, str] = field(default_factory=dict)
    """The older autoscaler that scales a component instead, by component."""
    open_namespaces: frozenset[str] = frozenset()
    is_namespace_closed: bool = False
    """The base cluster's namespace does not admit the autoscaler, or that is unknown: nothing there was read."""
    pods: dict[str, tuple[Pod, ...]] = field(default_factory=dict)
    """Pods by TidbCluster; a cluster whose pods could not be listed is missing."""
    unreadable: tuple[str, ...] = ()
    """TidbClusters that exist and cannot be read, with the reason. Nothing is removed while there are any."""
    former: tuple[Observed, ...] = ()
    """The same for each cluster that it named before and where groups remain. It scales nothing there."""

    @property
    def autoscaler(self) -> TidbClusterAutoScaler:
        return self.scaler.view

    @property
    def namespace(self) -> str:
        """The namespace of the base cluster, and so of everything that we create."""
        return get_base_namespace(self.autoscaler)


class NodeLister(Protocol):
    """Lists the nodes of the cluster. None: unknown."""

    async def list_nodes(self) -> tuple[Node, ...] | None: ...


class ClientNodeLister:
    """Lists nodes with a request per call."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def list_nodes(self) -> tuple[Node, ...] | None:
        try:
            return (await self._client.list(Node)).items
        except NotFound:
            return None


class InformerNodeLister:
    """Lists nodes from an informer, so that reconciling many autoscalers needs no requests.

    Fewer nodes may cost groups their instances. So nodes that cannot be read count as they were last seen, and if more
    than a small share of the nodes is missing at once, the API server is asked again.
    """

    def __init__(self, informers: SharedInformerFactory, client: Client) -> None:
        self._informer = informers.get_informer(Node)
        self._client = client
        self._known: dict[str, Node] = {}

    async def list_nodes(self) -> tuple[Node, ...] | None:
        await self._informer.wait_until_synced()
        cache = self._informer.cache
        listed = {node.metadata.name: node for node in cache.list()}
        listed |= {key.name: self._known[key.name] for key in cache.bad if key.name in self._known}
        missing = self._known.keys() - listed.keys()
        if len(missing) > max(1, len(self._known) * _SHARE_BELIEVED):
            again = await self._read_names()
            listed |= {name: self._known[name] for name in missing if again is None or name in again}
        self._known = listed
        return tuple(listed.values())

    async def _read_names(self) -> frozenset[str] | None:
        """The names of all nodes by the API server; None: it does not say."""
        try:
            listed = await self._client.list(Node)
        except ApiCallFailed as error:
            log.warning("nodes.unknown", problem=str(error))
            return None
        return frozenset([*(node.metadata.name for node in listed.items), *(bad.name for bad in listed.bad)])


def get_base_namespace(autoscaler: TidbClusterAutoScaler) -> str:
    return autoscaler.spec.cluster.namespace or autoscaler.metadata.namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedAutoscalers:
    """The autoscalers of a list; `unreadable` has namespaces and names of those that cannot be decoded."""

    scalers: tuple[Scaler, ...]
    unreadable: tuple[tuple[str, str], ...] = ()


class UnreadableAutoscaler(UnreadableAnswer):
    """The autoscaler exists and cannot be decoded."""


class Observer:
    """Reads with one client."""

    def __init__(self, client: Client, *, namespace: str = "") -> None:
        self._client = client
        self._namespace = namespace

    async def list_autoscalers(self) -> tuple[Scaler, ...]:
        """All autoscalers that can be decoded, sorted by namespace and name."""
        return (await self.list_all()).scalers

    async def list_all(self) -> ListedAutoscalers:
        """All autoscalers, and the names of those that cannot be decoded."""
        found: list[Scaler] = []
        unreadable: list[tuple[str, str]] = []
        async for page in self._client.iterate_raw_pages(TidbClusterAutoScaler, Selection(namespace=self._namespace)):
            for bad in page.listed.bad:
                log.warning(
                    "object.unreadable", kind=bad.kind, namespace=bad.namespace, name=bad.name, problem=bad.problem
                )
                unreadable.append((bad.namespace, bad.name))
            found += [RawObject(view=view, raw=raw) for view, raw in zip(page.listed.items, page.raws, strict=True)]
        scalers = sorted(found, key=lambda raw: (raw.metadata.namespace, raw.metadata.name))
        return ListedAutoscalers(scalers=tuple(scalers), unreadable=tuple(sorted(filter(all, unreadable))))

    async def observe(self, namespace: str, name: str, *, others: Collection[Scaler]) -> Observed | None:
        """The autoscaler and its objects; None: the autoscaler is gone. Raises `UnreadableAutoscaler`."""
        try:
            scaler = await self._get(TidbClusterAutoScaler, name, namespace)
        except UnreadableAnswer as error:
            raise UnreadableAutoscaler(str(error)) from error
        if scaler is None:
            return None
        if _is_contradicted(scaler, others):
            problem = f"two answers about TidbClusterAutoScaler {name} of one generation differ"
            return Observed(scaler=scaler, unreadable=(problem,))
        open_namespaces = await self._open_namespaces(scaler.view)
        namespace_of_cluster = get_base_namespace(scaler.view)
        if namespace_of_cluster not in {scaler.metadata.namespace, *open_namespaces}:
            # A namespace that does not admit it is not read: its status would reveal what exists there.
            is_there = await self._read_annotations(namespace_of_cluster) is not None
            return Observed(scaler=scaler, open_namespaces=open_namespaces, is_namespace_closed=is_there)
        name_of_base = scaler.view.spec.cluster.name
        try:
            base = await self._get(TidbCluster, name_of_base, namespace_of_cluster) if name_of_base else None
            listed = await list_clusters(self._client, namespace_of_cluster, known=_list_known_clusters(scaler.view))
        except UnreadableAnswer as error:
            return Observed(scaler=scaler, open_namespaces=open_namespaces, unreadable=(str(error),))
        clusters = listed.clusters
        made = tuple(
            raw
            for raw in sorted(clusters, key=lambda raw_object: raw_object.metadata.name)
            if any(_is_made_by(raw.metadata, scaler.view, component) for component in Component)
        )
        return Observed(
            scaler=scaler,
            base=base,
            clusters=made,
            taken=frozenset(raw.metadata.name for raw in clusters) | listed.unreadable.keys(),
            older_autoscalers=find_older_autoscalers(
                scaler.view, await self._list_allowed(namespace_of_cluster, [raw.view for raw in others])
            ),
            open_namespaces=open_namespaces,
            pods={raw.metadata.name: pods for raw in made if (pods := await self._list_pods(raw.metadata)) is not None},
            unreadable=tuple(f"TidbCluster {name}: {problem}" for name, problem in sorted(listed.unreadable.items())),
            former=await self._find_former(scaler, clusters, others),
        )

    async def is_base_gone(self, observed: Observed) -> bool:
        """Whether the base cluster is gone by every sign: by name, in the list, and by its pods.

        Clusters that were created for a base cluster that is gone are deleted without being drained.
        """
        name = observed.autoscaler.spec.cluster.name
        if observed.base is not None or name in observed.taken:
            return False
        selection = Selection(namespace=observed.namespace, labels=f"{INSTANCE_LABEL}={name}")
        try:
            listed = await self._client.list(Pod, selection)
        except NotFound:
            return True
        return not listed.items and not listed.bad

    async def _find_former(
        self, scaler: Scaler, clusters: Collection[Cluster], others: Collection[Scaler]
    ) -> tuple[Observed, ...]:
        """Observations of clusters that `spec.cluster.name` named before it was edited.

        Labels of the groups name these clusters.
        """
        joined: dict[str, list[Cluster]] = {}
        for raw in sorted(clusters, key=lambda raw_object: raw_object.metadata.name):
            name = raw.metadata.labels.get(BASE_CLUSTER, "")
            view = _replace_cluster(scaler.view, name)
            is_ours = any(_is_made_by(raw.metadata, view, component) for component in Component)
            if (
                name
                and name != scaler.view.spec.cluster.name
                and is_ours
                and self._is_certainly_ours(raw, scaler, others)
            ):
                joined.setdefault(name, []).append(raw)
        namespace_of_cluster = get_base_namespace(scaler.view)
        return tuple(
            [
                Observed(
                    scaler=RawObject(view=_replace_cluster(scaler.view, name), raw=scaler.raw),
                    base=await self._get(TidbCluster, name, namespace_of_cluster),
                    clusters=tuple(found),
                )
                for name, found in sorted(joined.items())
            ]
        )

    def _is_certainly_ours(self, cluster: Cluster, scaler: Scaler, others: Collection[Scaler]) -> bool:
        """Labels hold only a name: without an owner it may be that of an autoscaler in another namespace."""
        owner = find_controller(cluster.metadata)
        if owner is not None:
            return owner.uid == scaler.metadata.uid
        metadata = scaler.metadata
        same_named = [
            raw for raw in others if raw.metadata.name == metadata.name and raw.metadata.namespace != metadata.namespace
        ]
        return not self._namespace and not same_named

    async def _get(self, of: type[T], name: str, namespace: str) -> RawObject[T] | None:
        try:
            return await self._client.get_with_raw(of, name, namespace=namespace)
        except NotFound:
            return None

    async def _open_namespaces(self, autoscaler: TidbClusterAutoScaler) -> frozenset[str]:
        """Other namespaces that the autoscaler names and that admit it."""
        namespace_of_cluster = autoscaler.metadata.namespace
        found = set()
        for name in sorted(_list_namespaces(autoscaler) - {"", namespace_of_cluster}):
            if allows_namespace(await self._read_annotations(name) or {}, namespace_of_cluster):
                found.add(name)
        return frozenset(found)

    async def _list_allowed(
        self, namespace_of_cluster: str, others: list[TidbClusterAutoScaler]
    ) -> list[TidbClusterAutoScaler]:
        """The autoscalers that may scale clusters of a namespace. No other autoscaler can conflict."""
        other_namespaces = {
            scaler.metadata.namespace for scaler in others if get_base_namespace(scaler) == namespace_of_cluster
        } - {namespace_of_cluster}
        annotations = await self._read_annotations(namespace_of_cluster) if other_namespaces else None
        allowed = {
            namespace_of_cluster,
            *(namespace for namespace in other_namespaces if allows_namespace(annotations or {}, namespace)),
        }
        return [scaler for scaler in others if scaler.metadata.namespace in allowed]

    async def _read_annotations(self, namespace: str) -> dict[str, str] | None:
        """Annotations of a namespace; None: it does not exist. Without permission to read it there are none."""
        try:
            return (await self._client.get(Namespace, namespace)).metadata.annotations
        except NotFound:
            return None
        except ApiError as error:
            log.warning("namespace.unknown", namespace=namespace, problem=str(error))
            return {}

    async def _list_pods(self, cluster: ObjectMeta) -> tuple[Pod, ...] | None:
        selection = Selection(namespace=cluster.namespace, labels=f"{INSTANCE_LABEL}={cluster.name}")
        try:
            listed = await self._client.list(Pod, selection)
        except ApiError as error:
            log.debug("pods.unknown", namespace=cluster.namespace, cluster=cluster.name, problem=str(error))
            return None
        return tuple(pod for pod in listed.items if pod.metadata.labels.get(INSTANCE_LABEL) == cluster.name)


def _is_contradicted(scaler: Scaler, others: Collection[Scaler]) -> bool:
    """Whether the list has another specification of the same generation: one of the two answers is incomplete."""
    metadata = scaler.metadata
    return any(
        (other.metadata.uid, other.metadata.generation) == (metadata.uid, metadata.generation)
        and other.view.spec != scaler.view.spec
        for other in others
    )


def _list_known_clusters(autoscaler: TidbClusterAutoScaler) -> frozenset[str]:
    """The TidbClusters that its status names."""
    entries = [*autoscaler.status.tikv.values(), *autoscaler.status.tidb.values()]
    return frozenset(entry.cluster for entry in entries if entry.cluster)


def _replace_cluster(autoscaler: TidbClusterAutoScaler, name: str) -> TidbClusterAutoScaler:
    """The autoscaler as if it named another cluster and scaled nothing of it."""
    spec = autoscaler.spec
    return replace(autoscaler, spec=replace(spec, cluster=replace(spec.cluster, name=name), tikv=None, tidb=None))


def _is_made_by(made: ObjectMeta, autoscaler: TidbClusterAutoScaler, component: Component) -> bool:
    name, base = autoscaler.metadata.name, autoscaler.spec.cluster.name
    owner = find_controller(made)
    if owner is not None and made.namespace != autoscaler.metadata.namespace:
        # Owners are in the namespace of their dependents: this cluster belongs to an autoscaler of the same name there.
        return False
    return is_made_by(made.labels, autoscaler=name, component=component, base=base)


def find_older_autoscalers(
    autoscaler: TidbClusterAutoScaler, others: Iterable[TidbClusterAutoScaler]
) -> dict[Component, str]:
    """The older autoscaler of the same cluster, for each component that it scales too."""
    found: dict[Component, str] = {}
    for other in sorted(others, key=_get_age_key):
        if (
            _is_same(other, autoscaler)
            or _get_age_key(other) >= _get_age_key(autoscaler)
            or not _is_same_base(other, autoscaler)
        ):
            continue
        for component in Component:
            if (
                get_scaled_component(other, component) is not None
                and get_scaled_component(autoscaler, component) is not None
            ):
                found.setdefault(component, f"{other.metadata.namespace}/{other.metadata.name}")
    return found


def _get_age_key(autoscaler: TidbClusterAutoScaler) -> tuple[Any, ...]:
    """A sort key: the oldest first, then by name. An autoscaler without a creation time counts as new."""
    metadata = autoscaler.metadata
    created = metadata.creation_timestamp
    return created is None, created.timestamp() if created else 0.0, metadata.name, metadata.namespace


def _is_same(first: TidbClusterAutoScaler, other: TidbClusterAutoScaler) -> bool:
    return (first.metadata.namespace, first.metadata.name) == (other.metadata.namespace, other.metadata.name)


def _is_same_base(first: TidbClusterAutoScaler, other: TidbClusterAutoScaler) -> bool:
    return (get_base_namespace(first), first.spec.cluster.name) == (get_base_namespace(other), other.spec.cluster.name)


def _list_namespaces(autoscaler: TidbClusterAutoScaler) -> set[str]:
    named = {autoscaler.spec.cluster.namespace}
    for component in Component:
        scaled = get_scaled_component(autoscaler, component)
        if scaled is not None and scaled.external is not None and scaled.external.endpoint.tls_secret is not None:
            named.add(scaled.external.endpoint.tls_secret.namespace)
    return named
