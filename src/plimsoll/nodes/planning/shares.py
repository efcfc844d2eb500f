"""Constraints between pods, turned into numbers: each class of a layer as shares that can be packed in bulk.

A share is so many pods of a class, where they may go, and how many of them one node takes. Host ports and avoidance on
a node become keys of which a node takes one; spread over nodes becomes a cap; spread and avoidance over zones become
quotas, one share a zone; company in a zone picks a home; company on a node glues pods together. What cannot be said so
is left to the estimator, pod by pod. The traps are those of specs/nodes.md 7.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.scenes import HOSTNAME, Places, Scene
from plimsoll.nodes.planning.zone_quotas import Quotas, Spreading, quotas
from plimsoll.solver.problems import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.classes import PodClass
    from plimsoll.nodes.planning.spread_counts import SpreadCount
    from plimsoll.solver.problems import Ints

NO_COMPANY: Final = "NoCompany"
SPREAD_HELD: Final = "SpreadHeld"
ONE_PER_DOMAIN: Final = "OnePerDomain"
ONE_POD_ONLY: Final = "OnePodOnly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Pods of one class that are packed as one kind of item; `glued` of them stay together on a node."""

    number: int
    pods: int
    places: Places
    glued: int = 1
    per_node: int = UNBOUNDED
    row_caps: Ints | None = None
    """[N]: at most so many on each existing node."""
    keys: tuple[str, ...] = ()
    """A node takes one pod of all that share a key."""
    domain: str = ""

    @property
    def items(self) -> int:
        return self.pods // self.glued


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A layer as shares; `refused` says why pods of a class are in none; `complex` classes are for the estimator."""

    shares: tuple[Share, ...]
    refused: Mapping[int, tuple[Reason, ...]] = field(default_factory=dict)
    complex: tuple[int, ...] = ()


def fold(scene: Scene, demand: Mapping[int, int], most: Mapping[tuple[int, str], int]) -> Folded:
    """`demand`: pods by class of one layer. `most`: what a domain turned out to take of a class, from earlier tries."""
    folder = _Folder(scene, demand, most)
    for number, pods in demand.items():
        folder.take(number, pods)
    return Folded(shares=tuple(folder.shares), refused=folder.refused, complex=tuple(folder.complex))


class _Folder:
    def __init__(self, scene: Scene, demand: Mapping[int, int], most: Mapping[tuple[int, str], int]) -> None:
        self._scene = scene
        self._meetings = scene.meetings
        self._demand = demand
        self._most = most
        self.shares: list[Share] = []
        self.refused: dict[int, tuple[Reason, ...]] = {}
        self.complex: list[int] = []
        self._running: dict[tuple[int, str], int] = {}
        """Pods shared out so far in this layer, by party and domain."""
        self._taken: dict[tuple[tuple[int, ...], str], set[str]] = {}
        """By clique and topology key: domains that have their one pod."""
        self._homes: dict[tuple[int, ...], str] = {}

    def take(self, number: int, pods: int) -> None:
        one = self._scene.board.table.classes[number]
        places = self._scene.open_places(number)
        if one.one_pod_only and pods > 1:
            self._refuse(number, ONE_POD_ONLY, "its ReadWriteOncePod claim lets one pod run at a time")
            pods = 1
        near = self._near_company(number, places) if one.has_affinity else places
        if near is None:
            return
        plain = Share(number=number, pods=pods, places=near, per_node=self._cap(one), keys=self._keys(one))
        if self._is_glued(number):
            self._glue(plain)
            return
        self._spread_out(plain)

    # ---- company

    def _near_company(self, number: int, places: Places) -> Places | None:
        """Where it is in company, or may be the first; None if it was refused or left to the estimator."""
        scene, party = self._scene, self._meetings.party_of[number]
        company = scene.company(number)
        if company is not None:
            return places.within(company)
        family = self._meetings.family(party)
        if not family:
            wanted = self._meetings.company[party]
            if wanted and wanted != (party,) and party in wanted:
                self.complex.append(number)
            else:
                self._refuse(number, NO_COMPANY, "node(s) didn't match pod affinity rules: nobody it wants is there")
            return None
        keys = [key for key in scene.board.rules.companions(number).wanted_keys if key != HOSTNAME]
        if len(keys) > 1:
            self.complex.append(number)
            return None
        return places.within(scene.inside(keys[0], {self._home(family, keys[0])})) if keys else places

    def _home(self, family: tuple[int, ...], key: str) -> str:
        """The one domain for all who want each other: where most of them fit, then where they cost least."""
        if family not in self._homes:
            members = [number for number in self._demand if self._meetings.party_of[number] in family]
            scored = [(*self._price_in(members, key, name), name) for name in self._scene.domains(key)]
            self._homes[family] = min(scored)[-1] if scored else ""
        return self._homes[family]

    def _price_in(self, members: Sequence[int], key: str, name: str) -> tuple[int, float]:
        board = self._scene.board
        homeless, price = 0, 0.0
        inside = self._scene.inside(key, {name})
        for number in members:
            places = self._scene.open_places(number).within(inside)
            if places.offers.any():
                share = (board.requests[number] / np.maximum(board.capacity[places.offers], 1)).max(axis=1)
                price += self._demand[number] * float((share * board.planning_prices[places.offers]).min())
            elif not places.any:
                homeless += self._demand[number]
        return homeless, round(price, 9)

    def _is_glued(self, number: int) -> bool:
        one = self._scene.board.table.classes[number]
        return one.has_affinity and HOSTNAME in self._scene.board.rules.companions(number).wanted_keys

    def _glue(self, share: Share) -> None:
        """Company on one node: where it is already, pods join it; otherwise all of them go to one node together."""
        if self._scene.company(share.number) is not None:
            self.shares.append(share)
            return
        family = self._meetings.family(self._meetings.party_of[share.number])
        members = [number for number in self._demand if self._meetings.party_of[number] in family]
        if len(members) > 1:
            self.complex.append(share.number)
            return
        together = min(share.pods, self._largest_group(share))
        if together < share.pods:
            self._refuse(
                share.number, NO_COMPANY, f"its pods want to be on one node, and no node takes more than {together}"
            )
        if together:
            self.shares.append(replace(share, pods=together, glued=together))

    def _largest_group(self, share: Share) -> int:
        board = self._scene.board
        request = np.maximum(board.requests[share.number], 1)
        asked = board.requests[share.number] > 0
        spaces = [board.capacity[share.places.offers], self._scene.draft.free_rows(board)[share.places.rows]]
        fits = [
            int((space[:, asked] // request[asked]).min(axis=1, initial=UNBOUNDED).max(initial=0)) for space in spaces
        ]
        return min(max(fits), share.per_node)

    # ---- on a node

    def _cap(self, one: PodClass) -> int:
        cap = UNBOUNDED
        for spread in self._scene.board.rules.spreads(one.index):
            if spread.key == HOSTNAME and spread.counts_itself:
                cap = min(cap, spread.max_skew)
        if one.form.ports or HOSTNAME in self._own_keys(one.index) or one.one_pod_only:
            cap = 1
        return min(cap, self._attachable(one)) if one.has_volumes else cap

    def _attachable(self, one: PodClass) -> int:
        """By attach limits, which differ from node to node: the least that any offer takes."""
        rules = self._scene.board.offer_rules
        allowed = self._scene.board.allowed[:, one.index]
        room = rules.rules.room(one.index, rules.arrays.free, {})[allowed]
        return int(room.min(initial=UNBOUNDED))

    def _keys(self, one: PodClass) -> tuple[str, ...]:
        ports = [f"port {port.protocol} {port.port}" for port in one.form.ports]
        party = self._meetings.party_of[one.index]
        clique = self._meetings.clique(party) if HOSTNAME in self._own_keys(one.index) else ()
        return (*ports, *((f"apart {clique[0]}",) if len(clique) > 1 else ()))

    def _own_keys(self, number: int) -> tuple[str, ...]:
        """Topology keys over which the class keeps its own pods apart."""
        party = self._meetings.party_of[number]
        return self._meetings.shunned[party].get(party, ())

    # ---- over domains

    def _spread_out(self, share: Share) -> None:
        number = share.number
        spreads = [one for one in self._spreads_binding(number) if one.key != HOSTNAME]
        apart = [key for key in self._own_keys(number) if key != HOSTNAME]
        keys = {*apart, *(one.key for one in spreads)}
        if len(keys) > 1 or (spreads and apart) or len(spreads) > 1:
            self.complex.append(number)
        elif apart:
            self._one_per_domain(share, apart[0])
        elif spreads:
            self._level(share, spreads[0])
        else:
            self._level_nodes(share)

    def _spreads_binding(self, number: int) -> tuple[SpreadCount, ...]:
        """Its own hard constraints; for a class without, those of a class that counts its pods."""
        rules = self._scene.board.rules
        own = rules.spreads(number)
        if own:
            return own
        party = self._meetings.party_of[number]
        counting = [one for one in self._meetings.parties if one != party and party in self._meetings.counted[one]]
        others = [one for party in counting for one in rules.spreads(self._meetings.members[party][0])]
        return tuple({one.key: one for one in others if one.key != HOSTNAME}.values())

    def _level(self, share: Share, one: SpreadCount) -> None:
        scene, number = self._scene, share.number
        levels = scene.spread_levels(self._owner_of(number, one), one)
        for (party, name), pods in self._running.items():
            if one.means(scene.board.table.classes[self._meetings.members[party][0]].pod):
                levels[name] = levels.get(name, 0) + pods
        places = {name: share.places.within(scene.inside(one.key, {name})) for name in scene.domains(one.key)}
        spreading = Spreading(
            max_skew=one.max_skew,
            min_domains=one.min_domains,
            counts_itself=one.means(scene.board.table.classes[number].pod),
            counts=levels,
        )
        most = {name: pods for (of, name), pods in self._most.items() if of == number}
        answer = quotas(share.pods, spreading, open_domains=[n for n in places if places[n].any], most=most)
        self._share_out(share, answer, places)
        if answer.left:
            self._refuse(number, SPREAD_HELD, _held(one, answer))

    def _owner_of(self, number: int, one: SpreadCount) -> int:
        """The class whose constraint it is, for a class that is only counted by it."""
        rules = self._scene.board.rules
        if one in rules.spreads(number):
            return number
        return next(found.index for found in self._scene.board.table if one in rules.spreads(found.index))

    def _share_out(self, share: Share, answer: Quotas, places: Mapping[str, Places]) -> None:
        party = self._meetings.party_of[share.number]
        for name, pods in answer.pods.items():
            if pods:
                self.shares.append(replace(share, pods=pods, places=places[name], domain=name))
                self._running[party, name] = self._running.get((party, name), 0) + pods

    def _one_per_domain(self, share: Share, key: str) -> None:
        clique = self._meetings.clique(self._meetings.party_of[share.number])
        if not clique:
            self.complex.append(share.number)
            return
        taken = self._taken.setdefault((clique, key), set())
        places = {
            name: share.places.within(self._scene.inside(key, {name}))
            for name in self._scene.domains(key)
            if name not in taken and self._most.get((share.number, name), 1)
        }
        chosen = [name for name in places if places[name].any][: share.pods]
        taken |= set(chosen)
        for name in chosen:
            self.shares.append(replace(share, pods=1, places=places[name], domain=name))
        if len(chosen) < share.pods:
            told = f"its pods avoid each other over {key}: {len(chosen)} more can be placed, one in each free domain"
            self._refuse(share.number, ONE_PER_DOMAIN, told)

    def _level_nodes(self, share: Share) -> None:
        """Spread over nodes: existing ones are levelled among themselves, new ones begin at nothing."""
        spread = next((one for one in self._scene.board.rules.spreads(share.number) if one.key == HOSTNAME), None)
        if spread is None:
            self.shares.append(share)
            return
        arrays = self._scene.board.arrays
        room = self._scene.room(share.number)
        rows = np.flatnonzero(share.places.rows & spread.eligible & (room > 0)).tolist()
        values = arrays.label_values(HOSTNAME)
        names = {values[int(arrays.label_ids(HOSTNAME)[row])]: row for row in rows}
        levels = self._scene.spread_levels(share.number, spread)
        spreading = Spreading(
            max_skew=spread.max_skew, min_domains=spread.min_domains, counts_itself=spread.counts_itself, counts=levels
        )
        most = {name: int(room[row]) for name, row in names.items()}
        answer = quotas(share.pods, spreading, open_domains=list(names), most=most)
        caps = np.zeros(len(arrays), dtype=np.int64)
        for name, pods in answer.pods.items():
            caps[names[name]] = pods
        self.shares.append(replace(share, row_caps=caps))

    def _refuse(self, number: int, code: str, message: str) -> None:
        self.refused[number] = (*self.refused.get(number, ()), Reason(code=code, message=message))


def _held(one: SpreadCount, answer: Quotas) -> str:
    held = ", ".join(answer.held_by) or "nothing"
    return (
        f"{answer.left} pods cannot be spread over {one.key} with maxSkew {one.max_skew}: "
        f"{held} can take no more and holds the others back"
    )
