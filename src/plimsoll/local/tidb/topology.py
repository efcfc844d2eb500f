"""The TidbClusters and pods of each cluster: a shared view over informers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controller.enqueue import list_states
from plimsoll.kube.informer.events import Key
from plimsoll.local.tidb.instances import PD, get_base_key, list_instances, read_cluster_key
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.tidb import TidbCluster

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.informer.events import Change
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.local.tidb.instances import TidbInstance
    from plimsoll.objects.codec.decoding import RawObject

_BY_CLUSTER: Final = "tidb cluster"
_BY_BASE: Final = "base tidb cluster"


class Topology:
    """Answers from caches. A `find_base` is the key of a TidbCluster that has a PD."""

    def __init__(self, informers: SharedInformerFactory) -> None:
        self.clusters = informers.get_raw_informer(TidbCluster)
        self.pods = informers.get_informer(Pod)
        self.pods.add_index(_BY_CLUSTER, _list_clusters_of_pod)
        self.clusters.add_index(_BY_BASE, _list_bases_of_cluster)

    def find_base(self, key: Key) -> TidbCluster | None:
        """None: there is none, or it has no PD of its own."""
        found = self.clusters.cache.get(key.name, key.namespace)
        is_base = found is not None and found.view.spec.pd is not None and not found.view.is_heterogeneous
        return found.view if found is not None and is_base else None

    def list_bases(self) -> list[Key]:
        keys = {get_base_key(raw.view) for raw in self.clusters.cache}
        return [key for key in sorted(keys) if self.find_base(key) is not None]

    def list_members(self, base: Key) -> list[TidbCluster]:
        """The TidbClusters of a cluster, the base first."""
        found = [raw.view for raw in self.clusters.cache.list_by_index(_BY_BASE, base)]
        return sorted(
            found,
            key=lambda tidb_cluster: (
                tidb_cluster.is_heterogeneous,
                tidb_cluster.metadata.namespace,
                tidb_cluster.metadata.name,
            ),
        )

    def list_all_instances(self, base: Key) -> tuple[TidbInstance, ...]:
        """List the instances of all members, in their order."""
        return tuple(instance for member in self.list_members(base) for instance in self.list_instances_of(member))

    def list_instances_of(self, cluster: TidbCluster) -> tuple[TidbInstance, ...]:
        key = Key(cluster.metadata.namespace, cluster.metadata.name)
        return list_instances(cluster, self.pods.cache.list_by_index(_BY_CLUSTER, key))

    def has_pd(self, base: Key) -> bool:
        """Whether its PD runs and answers."""
        found = self.find_base(base)
        return found is not None and any(
            instance.component == PD and instance.is_ready for instance in self.list_instances_of(found)
        )

    # ---- clusters that a change concerns

    def list_bases_of_pod(self, change: Change[Pod]) -> Iterable[Key]:
        keys: dict[Key, None] = {}
        if not len(self.clusters.cache):
            return keys
        for state in list_states(change):
            key = read_cluster_key(state) if isinstance(state, Pod) else None
            found = self.clusters.cache.get(key.name, key.namespace) if key is not None else None
            if found is not None:
                keys[get_base_key(found.view)] = None
        return keys

    def list_bases_of_cluster(self, change: Change[Any]) -> Iterable[Key]:
        return {get_base_key(state): None for state in list_states(change) if isinstance(state, TidbCluster)}


def _list_clusters_of_pod(pod: Pod) -> tuple[Key, ...]:
    key = read_cluster_key(pod)
    return () if key is None else (key,)


def _list_bases_of_cluster(cluster: RawObject[TidbCluster]) -> tuple[Key, ...]:
    return (get_base_key(cluster.view),)
