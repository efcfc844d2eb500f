"""`PodStore`: all pods of a cluster at one time, kept across loop iterations.

A cluster has a hundred thousand pods, and between two loop iterations one in a hundred changes. The store is updated
from the changes of its cache and passes them on to its followers, so that no reader has to go through all pods.
Made and renewed by `clusters`; read by everything that observes pods. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from plimsoll.kube.informer.store.changed_keys import ChangedKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.kube.informer.events import KeyTuple
    from plimsoll.kube.informer.store.cache import Cache
    from plimsoll.objects.api.pods import Pod


class PodStore(Collection["Pod"]):
    """Changes in `renew` alone. `as_scheduled` gives a pod as the cluster's scheduler sees it."""

    def __init__(self, cache: Cache[Pod], *, as_scheduled: Callable[[Pod], Pod] | None = None) -> None:
        self._cache = cache
        self._trail = cache.track_changes()
        self._as_scheduled = as_scheduled
        self._read: dict[KeyTuple, Pod] = {}
        """As the cache has them."""
        self._pods: dict[KeyTuple, Pod] = self._read if as_scheduled is None else {}
        self._on_nodes: dict[str, dict[KeyTuple, Pod]] = {}
        self._trails: list[ChangedKeys] = []

    def renew(self) -> None:
        """Update the pods from the cache."""
        changed = self._trail.changed
        if changed is None:
            there = {(pod.metadata.namespace, pod.metadata.name): pod for pod in self._cache.list()}
            for place in (*there, *[place for place in self._read if place not in there]):
                self._put(place, there.get(place))
        else:
            for place in changed:
                namespace, name = place
                self._put(place, self._cache.get(name, namespace))
        self._trail.clear()

    def follow(self) -> ChangedKeys:
        """The keys that later renewals change."""
        trail = ChangedKeys()
        self._trails.append(trail)
        return trail

    @property
    def on_nodes(self) -> Mapping[str, Collection[Pod]]:
        """Pods by the name of their node; pods without a node are missing."""
        return _OnNodes(self._on_nodes)

    def get(self, place: KeyTuple) -> Pod | None:
        return self._pods.get(place)

    def list_keys(self) -> Collection[KeyTuple]:
        return self._pods.keys()

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, pod: object) -> bool:
        return any(known is pod for known in self._pods.values())

    def _put(self, place: KeyTuple, read: Pod | None) -> None:
        if self._read.get(place) is read:
            return
        before = self._pods.pop(place, None)
        if before is not None and before.spec.node_name:
            there = self._on_nodes[before.spec.node_name]
            del there[place]
            if not there:
                del self._on_nodes[before.spec.node_name]
        if read is None:
            self._read.pop(place, None)
        else:
            self._read[place] = read
            pod = self._pods[place] = read if self._as_scheduled is None else self._as_scheduled(read)
            if pod.spec.node_name:
                self._on_nodes.setdefault(pod.spec.node_name, {})[place] = pod
        for trail in self._trails:
            trail.add(place)


class _OnNodes(Mapping[str, Collection["Pod"]]):
    """Pods by node, without their places."""

    def __init__(self, places: Mapping[str, Mapping[KeyTuple, Pod]]) -> None:
        self._places = places

    def __getitem__(self, node: str) -> Collection[Pod]:
        return self._places[node].values()

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
