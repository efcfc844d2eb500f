"""The map of a cluster: a row per node and per pod, kept up to date by informer handlers.

While no browser is connected, the map is empty and its handlers return at once: watching costs nothing then. The first
reader fills it from the caches, in slices that leave the event loop free.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.console.cluster_map.cells import (
    NODE_COLUMNS,
    POD_COLUMNS,
    SHARED_NODE_COLUMNS,
    SHARED_POD_COLUMNS,
    build_node_cell,
    build_pod_cell,
    build_unreadable_node_cell,
    has_ended,
)
from plimsoll.console.cluster_map.tables import Table
from plimsoll.objects.codec.decode_problems import BadObject

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import Change, KeyTuple
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

_AT_ONCE: Final = 500
"""Rows that are built before other work gets its turn: about 10 ms."""


class ClusterMap:
    """Nodes and pods in columns. `version` counts the changes that were taken."""

    def __init__(self, nodes: Informer[Node], pods: Informer[Pod], *, clock: Clock) -> None:
        self._nodes = nodes
        self._pods = pods
        self._clock = clock
        self.version = 0
        self._is_kept = False
        self._filling = asyncio.Lock()
        self._snapshot: tuple[int, bytes] | None = None
        self._node_rows, self._pod_rows = _build_tables()
        nodes.add_handler(self._handle_node, name="console")
        pods.add_handler(self._handle_pod, name="console")

    @property
    def is_kept(self) -> bool:
        """Whether the map has rows and follows the caches."""
        return self._is_kept

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of nodes and pods."""
        return len(self._node_rows), len(self._pod_rows)

    async def fill(self) -> None:
        """Fill the map from the caches, unless it is kept already. Changes meanwhile are applied as they come."""
        async with self._filling:
            if self._is_kept:
                return
            self._clear()
            self._is_kept = True
            await self._fill_rows(self._nodes, self._put_node)
            await self._fill_rows(self._pods, self._put_pod)
            for rows in self._list_tables().values():
                rows.take_changes()  # every reader begins with the whole map

    def drop(self) -> None:
        """Forget all rows until the next `fill`."""
        self._is_kept = False
        self._clear()

    def encode_snapshot(self) -> bytes:
        """The whole map as JSON. It is encoded once per version, for all readers."""
        if self._snapshot is None or self._snapshot[0] != self.version:
            self._snapshot = (self.version, msgspec.json.encode(self._export()))
        return self._snapshot[1]

    def take_changes(self) -> bytes | None:
        """What changed since the last call, as JSON; None: nothing. Applying a change twice does no harm."""
        if not (self._node_rows.has_changes or self._pod_rows.has_changes):
            return None
        self.version += 1
        names = {
            table: {column: names.take_changes() for column, names in rows.names.items()}
            for table, rows in self._list_tables().items()
        }
        changes = {table: rows.take_changes() for table, rows in self._list_tables().items()}
        return msgspec.json.encode({"version": self.version, "at": self._clock.now(), "names": names, **changes})

    def _export(self) -> dict[str, Any]:
        tables = self._list_tables()
        names = {
            table: {column: names.export() for column, names in rows.names.items()} for table, rows in tables.items()
        }
        columns = {table: rows.export() for table, rows in tables.items()}
        return {"version": self.version, "at": self._clock.now(), "names": names, **columns}

    def _list_tables(self) -> dict[str, Table]:
        return {"nodes": self._node_rows, "pods": self._pod_rows}

    def _clear(self) -> None:
        self.version += 1
        self._snapshot = None
        self._node_rows, self._pod_rows = _build_tables()

    async def _fill_rows(self, informer: Informer[Any], put: Callable[[KeyTuple, Any], None]) -> None:
        for number, key in enumerate(informer.cache.iterate_keys()):
            put(key, informer.cache.get_state(key))
            if number % _AT_ONCE == _AT_ONCE - 1:
                await self._clock.sleep(0)

    def _handle_node(self, change: Change[Node]) -> None:
        if self._is_kept:
            self._put_node(change.key, self._nodes.cache.get_state(change.key))

    def _handle_pod(self, change: Change[Pod]) -> None:
        if self._is_kept:
            self._put_pod(change.key, self._pods.cache.get_state(change.key))

    def _put_node(self, key: KeyTuple, node: Node | BadObject | None) -> None:
        name = key[1]
        if node is None:
            self._node_rows.remove(name)
        elif isinstance(node, BadObject):
            self._node_rows.put(name, build_unreadable_node_cell(name))
        else:
            self._node_rows.put(name, build_node_cell(node))

    def _put_pod(self, key: KeyTuple, pod: Pod | BadObject | None) -> None:
        if pod is None or isinstance(pod, BadObject) or has_ended(pod):
            self._pod_rows.remove(tuple(key))
        else:
            self._pod_rows.put(tuple(key), build_pod_cell(pod))


def _build_tables() -> tuple[Table, Table]:
    return Table(NODE_COLUMNS, shared=SHARED_NODE_COLUMNS), Table(POD_COLUMNS, shared=SHARED_POD_COLUMNS)
