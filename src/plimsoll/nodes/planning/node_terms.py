"""What one node takes of a class: host ports, avoidance and spread over nodes as caps and keys. For `folding`.

A cap is a number of pods; a key is something of which a node has one, for all classes that share it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.level_nodes import over_nodes, safe_caps
from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.scheduling.host_ports import ANY_ADDRESS
from plimsoll.solver.problems import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.planning.classes import PodClass
    from plimsoll.nodes.planning.scenes import Scene
    from plimsoll.solver.problems import Ints


class NodeTerms:
    """For the classes of one layer."""

    def __init__(self, scene: Scene, demand: Mapping[int, int]) -> None:
        self._scene = scene
        self._meetings = scene.meetings
        self._demand = demand

    def caps(self, one: PodClass) -> Ints | None:
        """Of nodes that stand or are planned, where these differ."""
        caps = safe_caps(self._scene, one.index)
        if not one.has_volumes:
            return caps
        rows, batches = len(self._scene.board.arrays), len(self._scene.draft.batches)
        room = np.concatenate((self._scene.room(one.index), np.full(batches, UNBOUNDED, dtype=np.int64)))
        return room if caps is None else np.minimum(caps, room) if rows + batches else caps

    def cap(self, one: PodClass) -> int:
        cap = UNBOUNDED
        for spread in self._scene.board.rules.spreads(one.index):
            if spread.key == HOSTNAME and spread.counts_itself:
                cap = min(cap, spread.max_skew)
        if one.form.ports or HOSTNAME in self.own_keys(one.index) or one.one_pod_only:
            cap = 1
        return min(cap, 1) if one.has_volumes and self._scene.board.rules.rules.excludes_itself(one.index) else cap

    def keys(self, one: PodClass) -> tuple[str, ...]:
        party = self._meetings.party_of[one.index]
        keys = self._port_keys(one)
        if HOSTNAME in self.own_keys(one.index):
            keys = (*keys, f"apart {min(self._meetings.clique(party) or (party,))}")
        if self._is_levelled_with_others(one.index):
            keys = (*keys, f"level {party}")
        return keys

    def _is_levelled_with_others(self, number: int) -> bool:
        """Whether other sizes of the same app are spread over nodes in the same go: a node then takes one of all."""
        party = self._meetings.party_of[number]
        counts_itself = any(one.counts_itself for one in over_nodes(self._scene, number))
        return counts_itself and sum(other in self._demand for other in self._meetings.members[party]) > 1

    def _port_keys(self, one: PodClass) -> tuple[str, ...]:
        """A key for each address; a port on every address takes the keys of all that are asked for."""
        found: dict[str, None] = {}
        for port in one.form.ports:
            known = self._addresses.get((port.protocol, port.port), set())
            addresses = sorted(known) if port.address == ANY_ADDRESS else [port.address]
            found |= dict.fromkeys(f"port {port.protocol} {address} {port.port}" for address in addresses)
        return tuple(found)

    @cached_property
    def _addresses(self) -> dict[tuple[str, int], set[str]]:
        found: dict[tuple[str, int], set[str]] = {}
        for number in self._demand:
            for port in self._scene.board.table.classes[number].form.ports:
                found.setdefault((port.protocol, port.port), set()).add(port.address)
        return found

    def own_keys(self, number: int) -> tuple[str, ...]:
        """Topology keys over which the class keeps its own pods apart."""
        party = self._meetings.party_of[number]
        return self._meetings.shunned[party].get(party, ())
