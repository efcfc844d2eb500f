"""Constraints between pods, turned into numbers: each class of a layer as shares that can be packed in bulk.

A share is so many pods of a class, where they may go, and how many of them one node takes. Host ports and avoidance on
a node become keys of which a node takes one; spread over nodes becomes a cap; spread and avoidance over zones become
quotas, one share a zone; company in a zone picks a home; company on a node glues pods together. What cannot be said so
is left to the estimator, pod by pod. The traps are those of specs/nodes.md 7.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.level_nodes import hopeful_caps, over_nodes, risen, safe_caps
from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.nodes.planning.zone_quotas import Quotas, Spreading, quotas
from plimsoll.scheduling.host_ports import ANY_ADDRESS
from plimsoll.solver.problems import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.classes import PodClass
    from plimsoll.nodes.planning.scenes import Places, Scene
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
    caps: Ints | None = None
    """[N + B]: at most so many on each node that stands or is planned."""
    keys: tuple[str, ...] = ()
    """A node takes one pod of all that share a key."""
    domain: str = ""
    even: bool = False
    """One of the shares that fill nodes evenly."""
    rises: bool = False
    """Its caps hope that existing nodes all rise together; `per_node` is for new ones."""

    @property
    def items(self) -> int:
        return self.pods // self.glued


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A layer as shares; `refused` says why pods of a class are in none; `complex` classes are for the estimator."""

    shares: tuple[Share, ...]
    refused: Mapping[int, tuple[Reason, ...]] = field(default_factory=dict)
    complex: tuple[int, ...] = ()
    homes: Mapping[tuple[int, ...], Sequence[str]] = field(default_factory=dict)
    """Families that need a home, and where it could be, the most likely first."""


@dataclass(slots=True, kw_only=True)
class Learned:
    """What earlier tries of a layer have shown."""

    most: dict[tuple[int, str], int] = field(default_factory=dict)
    """What a domain turned out to take of a class."""
    homes: dict[tuple[int, ...], str] = field(default_factory=dict)
    """The domain to be tried for a family."""
    heights: dict[int, int] = field(default_factory=dict)
    """Of a class spread over nodes: so many pods on each new one."""
    uneven: set[int] = field(default_factory=set)
    """Classes spread over nodes that did not come out even."""
    present: dict[int, set[str]] = field(default_factory=dict)
    """By class: domains that others bring into being, and that so hold its minimum down."""


def fold(scene: Scene, demand: Mapping[int, int], learned: Learned) -> Folded:
    """`demand`: pods by class of one layer."""
    folder = _Folder(scene, demand, learned)
    for number, pods in demand.items():
        folder.take(number, pods)
    return Folded(
        shares=tuple(folder.shares), refused=folder.refused, complex=tuple(folder.complex), homes=folder.homes
    )


class _Folder:
    def __init__(self, scene: Scene, demand: Mapping[int, int], learned: Learned) -> None:
        self._scene = scene
        self._meetings = scene.meetings
        self._demand = demand
        self._learned = learned
        self.shares: list[Share] = []
        self.refused: dict[int, tuple[Reason, ...]] = {}
        self.complex: list[int] = []
        self._running: dict[tuple[int, str], int] = {}
        """Pods shared out so far in this layer, by party and domain."""
        self._taken: dict[tuple[tuple[int, ...], str], set[str]] = {}
        """By clique and topology key: domains that have their one pod."""
        self.homes: dict[tuple[int, ...], list[str]] = {}

    def take(self, number: int, pods: int) -> None:
        one = self._scene.board.table.classes[number]
        places = self._scene.open_places(number)
        if one.one_pod_only and pods > 1:
            self._refuse(number, ONE_POD_ONLY, "its ReadWriteOncePod claim lets one pod run at a time")
            pods = 1
        near = self._near_company(number, places) if one.has_affinity else places
        if near is None:
            return
        plain = Share(
            number=number, pods=pods, places=near, per_node=self._cap(one), keys=self._keys(one), caps=self._caps(one)
        )
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
        """The one domain for all who want each other: where most of them fit, then where they seem to cost least."""
        if family not in self.homes:
            members = [number for number in self._demand if self._meetings.party_of[number] in family]
            scored = sorted((*self._price_in(members, key, name), name) for name in self._scene.domains(key))
            self.homes[family] = [name for _, _, name in scored] or [""]
        return self._learned.homes.get(family, self.homes[family][0])

    def _price_in(self, members: Sequence[int], key: str, name: str) -> tuple[int, float]:
        homeless, price = 0, 0.0
        inside = self._scene.inside(key, {name})
        for number in members:
            places = self._scene.open_places(number).within(inside)
            if places.offers.any():
                price += self._demand[number] * self._price_of(number, places)
            elif not places.any:
                homeless += self._demand[number]
        return homeless, round(price, 9)

    def _price_of(self, number: int, places: Places) -> float:
        """Of one pod on a new node, by its share of the node; 0 where there is none."""
        board = self._scene.board
        if not places.offers.any():
            return 0.0
        share = (board.requests[number] / np.maximum(board.capacity[places.offers], 1)).max(axis=1)
        return round(float((share * board.planning_prices[places.offers]).min()), 9)

    def _is_glued(self, number: int) -> bool:
        one = self._scene.board.table.classes[number]
        return one.has_affinity and HOSTNAME in self._scene.board.rules.companions(number).wanted_keys

    def _glue(self, share: Share) -> None:
        """Company on one node: where it is already, pods join it; otherwise all of them go to one node together."""
        if self._scene.company(share.number) is not None:
            self._spread_out(share)
            return
        family = self._meetings.family(self._meetings.party_of[share.number])
        members = [number for number in self._demand if self._meetings.party_of[number] in family]
        if len(members) > 1 or self._scene.board.rules.spreads(share.number) or self._own_keys(share.number):
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

    def _caps(self, one: PodClass) -> Ints | None:
        """Of nodes that stand or are planned, where these differ."""
        caps = safe_caps(self._scene, one.index)
        if not one.has_volumes:
            return caps
        rows, batches = len(self._scene.board.arrays), len(self._scene.draft.batches)
        room = np.concatenate((self._scene.room(one.index), np.full(batches, UNBOUNDED, dtype=np.int64)))
        return room if caps is None else np.minimum(caps, room) if rows + batches else caps

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
        party = self._meetings.party_of[one.index]
        keys = self._port_keys(one)
        if HOSTNAME in self._own_keys(one.index):
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

    def _own_keys(self, number: int) -> tuple[str, ...]:
        """Topology keys over which the class keeps its own pods apart."""
        party = self._meetings.party_of[number]
        return self._meetings.shunned[party].get(party, ())

    # ---- over domains

    def _spread_out(self, share: Share) -> None:
        number = share.number
        spreads = [one for one in self._scene.board.rules.spreads(number) if one.key != HOSTNAME]
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

    def _level_nodes(self, share: Share) -> None:
        if self._may_rise(share):
            self.shares += risen(self._scene, share, self._learned.heights.get(share.number))
        else:
            self.shares.append(share)

    def _may_rise(self, share: Share) -> bool:
        """Whether it is spread over nodes, and nothing else keeps its pods from filling these evenly."""
        spreads = over_nodes(self._scene, share.number)
        lone = len(spreads) == 1 and spreads[0].counts_itself and share.number not in self._learned.uneven
        return lone and share.per_node == spreads[0].max_skew and not share.keys

    def _level(self, share: Share, one: SpreadCount) -> None:
        scene, number = self._scene, share.number
        levels = scene.spread_levels(number, one)
        for (party, name), pods in self._running.items():
            if one.means(scene.board.table.classes[self._meetings.members[party][0]].pod):
                levels[name] = levels.get(name, 0) + pods
        if self._may_rise(share) and one.counts_itself:
            share = replace(share, caps=hopeful_caps(scene, share), rises=True)
        for name in self._learned.present.get(number, ()):
            levels.setdefault(name, 0)
        places = self._by_domain(share, one.key)
        spreading = Spreading(
            max_skew=one.max_skew, min_domains=one.min_domains, counts_itself=one.counts_itself, counts=levels
        )
        most = {name: pods for (of, name), pods in self._learned.most.items() if of == number}
        # A domain without nodes that gets none in this plan does not come to be, and so holds nobody back.
        able = [name for name in places if name in levels or most.get(name, 1)]
        if not one.counts_itself:
            self._where_even(share, spreading, able)
            return
        answer = self._without_growing(share, spreading, places, most) or quotas(
            share.pods, spreading, open_domains=able, most=most
        )
        self._share_out(share, answer, places)
        if answer.left:
            self._refuse(number, SPREAD_HELD, _held(one, answer))

    def _without_growing(
        self, share: Share, of: Spreading, places: Mapping[str, Places], most: Mapping[str, int]
    ) -> Quotas | None:
        """Quotas that all pods find room for on nodes that stand; None if they do not. No domain is opened for them."""
        free = self._scene.room(share.number)
        room = {name: int(free[one.rows].sum()) for name, one in places.items() if one.rows.any()}
        limits = {name: min(pods, most.get(name, pods)) for name, pods in room.items()}
        answer = quotas(share.pods, of, open_domains=[name for name in limits if limits[name]], most=limits)
        return None if answer.left else answer

    def _where_even(self, share: Share, of: Spreading, names: Sequence[str]) -> None:
        """Pods their own constraint does not count change nothing: where one may go, all may."""
        key = next(one.key for one in self._scene.board.rules.spreads(share.number) if one.key != HOSTNAME)
        standing = _even_among([name for name in names if name in of.counts], of.counts, of)
        inside = share.places.within(self._scene.inside(key, standing))
        if int(self._scene.room(share.number)[inside.rows].sum()) >= share.pods:
            allowed = standing
        else:
            allowed = _even_among(names, {**dict.fromkeys(names, 0), **of.counts}, of)
        if not allowed:
            self._refuse(share.number, SPREAD_HELD, f"no domain of {key} is within maxSkew {of.max_skew} of the lowest")
            return
        self._level_nodes(replace(share, places=share.places.within(self._scene.inside(key, allowed))))

    def _by_domain(self, share: Share, key: str) -> dict[str, Places]:
        """Open domains: those with existing nodes first, then where pods seem to cost least."""
        places = {name: share.places.within(self._scene.inside(key, {name})) for name in self._scene.domains(key)}
        order = sorted((not one.rows.any(), self._price_of(share.number, one), name) for name, one in places.items())
        return {name: places[name] for _, _, name in order if places[name].any}

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
            name: one
            for name, one in self._by_domain(share, key).items()
            if name not in taken and self._learned.most.get((share.number, name), 1)
        }
        there = [name for name, one in places.items() if one.rows.any()][: share.pods]
        # Nodes without the label are in no domain: as many may be there as find room, and what stands goes first.
        beyond = share.places.within(self._scene.outside(key))
        outside = replace(beyond, batches=np.zeros_like(beyond.batches), offers=np.zeros_like(beyond.offers))
        room = int(self._scene.room(share.number)[outside.rows].sum()) if outside.any else 0
        standing = min(share.pods - len(there), room)
        new = [name for name in places if name not in there][: share.pods - len(there) - standing]
        chosen = [*there, *new]
        taken |= set(chosen)
        for name in chosen:
            self.shares.append(replace(share, pods=1, places=places[name], domain=name))
        if standing:
            self.shares.append(replace(share, pods=standing, places=outside))
        left = share.pods - len(chosen) - standing
        if left and beyond.any:
            self.shares.append(replace(share, pods=left, places=beyond))
        elif left:
            told = f"its pods avoid each other over {key}: {len(chosen)} more can be placed, one in each free domain"
            self._refuse(share.number, ONE_PER_DOMAIN, told)

    def _refuse(self, number: int, code: str, message: str) -> None:
        self.refused[number] = (*self.refused.get(number, ()), Reason(code=code, message=message))


def _even_among(names: Iterable[str], levels: Mapping[str, int], of: Spreading) -> set[str]:
    """Domains that are within the skew of the lowest."""
    lowest = min(levels.values(), default=0) if len(levels) >= of.min_domains else 0
    return {name for name in names if levels[name] - lowest <= of.max_skew}


def _held(one: SpreadCount, answer: Quotas) -> str:
    held = ", ".join(answer.held_by) or "nothing"
    return (
        f"{answer.left} pods cannot be spread over {one.key} with maxSkew {one.max_skew}: "
        f"{held} can take no more and holds the others back"
    )
