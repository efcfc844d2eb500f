"""Who is on each node, as far as pods that come could meet them: kinds of pods with counts, not pods.

Kin are pods that no selector can tell apart (namespace and labels): replicas. A selector is asked once for all kin, and
counting what it means over nodes is arithmetic on three flat arrays. Each node is read once and again only when
something on it changed, so a turn costs by changes. Part of `Arrays`; read by `meetings` and `attachments`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from plimsoll.nodes.planning.selectors_in_play import SelectorsInPlay

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.pods import Pod
    from plimsoll.scheduling.host_ports import HostPort
    from plimsoll.scheduling.interpod import AffinityTerm
    from plimsoll.scheduling.view import Kin, NodeState, PlacedPod
    from plimsoll.solver.problems import Flags, Ints

_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class KinKind:
    """One kind of kin, as a selector sees it."""

    namespace: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AvoiderKind:
    """Running pods of one kin with the same required anti-affinity."""

    pod: Pod
    terms: tuple[AffinityTerm, ...]


class Kinds:
    """Numbers for kinds, given once and never changed: arrays of several turns may share one."""

    def __init__(self) -> None:
        self.kin: list[KinKind] = []
        self._by_namespace: dict[str, list[int]] = {}
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self.avoiders: list[AvoiderKind] = []
        self.kin_numbers: dict[Kin, int] = {}
        self._avoider_numbers: dict[tuple[int, bytes], int] = {}

    def kin_number(self, placed: PlacedPod) -> int:
        number = self.kin_numbers.get(placed.kin)
        if number is None:
            number = self.kin_numbers[placed.kin] = len(self.kin)
            self.kin.append(KinKind(placed.namespace, placed.labels))
            self._by_namespace.setdefault(placed.namespace, []).append(number)
            for item in placed.labels.items():
                self._by_label.setdefault(item, []).append(number)
        return number

    def candidates(self, selector: LabelSelector, namespace: str | None = None) -> Iterable[int]:
        """Kinds that the selector might mean, all that it does mean among them: the shortest list there is."""
        lists: list[Sequence[int]] = [range(len(self.kin))]
        if namespace is not None:
            lists.append(self._by_namespace.get(namespace, ()))
        for one in selector.requirements:
            value = selector.exact(one.key)
            if value is not None:
                lists.append(self._by_label.get((one.key, value), ()))
        return min(lists, key=len)

    def avoider_number(self, placed: PlacedPod) -> int:
        affinity = placed.pod.spec.affinity
        written = _ENCODER.encode(None if affinity is None else affinity.pod_anti_affinity)
        key = (self.kin_number(placed), written)
        number = self._avoider_numbers.get(key)
        if number is None:
            number = self._avoider_numbers[key] = len(self.avoiders)
            self.avoiders.append(AvoiderKind(placed.pod, placed.anti_affinity))
        return number


class Household:
    """The pods of one node: what few pods have is read at once, kinds of kin when somebody counts them."""

    __slots__ = ("_census", "_place", "avoiders", "claims", "ports")

    def __init__(self, place: NodeState, kinds: Kinds) -> None:
        self._place = place
        self._census: Census | None = None
        special = [one for one in place.pods.values() if one.anti_affinity or one.ports or one.claims]
        avoiding = dict.fromkeys(kinds.avoider_number(one) for one in special if one.anti_affinity)
        self.avoiders: tuple[int, ...] = tuple(avoiding)
        self.ports: frozenset[HostPort] = frozenset(port for one in special for port in one.ports)
        self.claims: tuple[tuple[str, tuple[str, ...]], ...] = tuple(
            (one.namespace, one.claims) for one in special if one.claims
        )
        """Namespace and claim names, of each pod that has claims."""

    def census(self, kinds: Kinds) -> Census:
        if self._census is None:
            self._census = _census(self._place.pods.values(), kinds)
        return self._census


class Census(NamedTuple):
    """Kinds of kin on one node, with how many pods each has."""

    kin: Ints
    total: Ints
    staying: Ints
    """Without pods on their way out."""


def _census(pods: Iterable[PlacedPod], kinds: Kinds) -> Census:
    total: dict[int, int] = {}
    leaving: dict[int, int] = {}
    known = kinds.kin_numbers
    for placed in pods:
        number = known.get(placed.kin, -1)
        if number < 0:
            number = kinds.kin_number(placed)
        total[number] = total.get(number, 0) + placed.count
        if placed.leaving:
            leaving[number] = leaving.get(number, 0) + placed.count
    counts = np.array([*total.values()], dtype=np.int64)
    gone = np.array([leaving.get(number, 0) for number in total], dtype=np.int64) if leaving else 0
    return Census(np.array([*total], dtype=np.int64), counts, counts - gone)


class Neighbours:
    """Households of all rows, with the flat arrays over them made when first asked for."""

    def __init__(self, kinds: Kinds, households: Sequence[Household]) -> None:
        self.kinds = kinds
        self.households = tuple(households)
        self._flat: tuple[Ints, Ints, Ints, Ints] | None = None
        self._avoider_rows: dict[int, Ints] | None = None

    def counts(self, meant: Flags, *, staying: bool) -> Ints:
        """[N]: pods on each row whose kind of kin is meant; `staying` leaves out those on their way out."""
        row, kin, total, remaining = self._entries()
        chosen = meant[kin]
        weights = (remaining if staying else total)[chosen]
        return np.bincount(row[chosen], weights=weights, minlength=len(self.households)).astype(np.int64)

    @property
    def avoider_rows(self) -> dict[int, Ints]:
        """Rows that hold pods of each kind with anti-affinity."""
        if self._avoider_rows is None:
            rows: dict[int, list[int]] = {}
            for row, household in enumerate(self.households):
                for number in household.avoiders:
                    rows.setdefault(number, []).append(row)
            self._avoider_rows = {number: np.array(rows[number], dtype=np.int64) for number in sorted(rows)}
        return self._avoider_rows

    def selectors_in_play(self) -> SelectorsInPlay:
        """What the anti-affinity of running pods can see."""
        return SelectorsInPlay.of_avoiding(self.kinds.avoiders[number].pod for number in self.avoider_rows)

    def no_kin(self) -> Flags:
        """[kinds of kin]: none is meant. From here on everybody who is on a row has a number."""
        self._entries()
        return np.zeros(len(self.kinds.kin), dtype=np.bool_)

    def _entries(self) -> tuple[Ints, Ints, Ints, Ints]:
        if self._flat is None:
            found = [one.census(self.kinds) for one in self.households]
            sizes = np.array([len(one.kin) for one in found], dtype=np.int64)
            empty = [np.zeros(0, dtype=np.int64)]
            self._flat = (
                np.repeat(np.arange(len(found), dtype=np.int64), sizes),
                np.concatenate(empty + [one.kin for one in found]),
                np.concatenate(empty + [one.total for one in found]),
                np.concatenate(empty + [one.staying for one in found]),
            )
        return self._flat
