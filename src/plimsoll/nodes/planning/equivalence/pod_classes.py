"""Pod classes: pending pods that no scheduling rule can distinguish (docs/design/nodes.md 7.2).

Planning costs by class, not by pod. `ClassTable.from_objects(pending, view)` builds the classes. A plan counts members
of a class, and `ClassTable.count_members_by_key` maps the counts back to `PendingPods.key`, oldest entries first.

* `ClassTable.classes[c]`: a `PodClass` with its representative pod, demand, members and flags. `problem` is set when no
  node can take it (a malformed field, a device claim, a claim that cannot be bound): a refusal, never an exception.
* `ClassTable.class_of[p]`: the class of each entry; `ClassTable.counts[c]`: the number of pods per class.
* `SchedulingKeys`, kept between loop iterations, makes the second iteration cheap.

Owner, names, images, environment and preferences do not count; pods of two controllers may share a class.

Labels distinguish two pods only if some selector can see them (`VisibleLabels`). Visible are the keys in terms and
constraints of the pending pods, and in the required anti-affinity of running pods, which also binds pods without terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plimsoll.nodes.planning.equivalence.scheduling_keys import (
    SchedulingKey,
    SchedulingKeys,
    collect_term_label_keys,
    select_labels,
)
from plimsoll.nodes.planning.equivalence.volume_keys import VolumeKeys, touches_storage
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import DEFAULT_PROFILE, Prepared, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.core.resources import ResourceVector
    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.verdicts import Refusal
    from plimsoll.solver.problem import Ints


Key = tuple[Any, ...]

_FAR_AHEAD: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """An entry of pending pods as a member of a class."""

    pending: int
    """Its index in the snapshot."""
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClass:
    """Pods that are equal to every scheduling rule. `pod` represents all of them."""

    index: int
    pod: Pod
    scheduling_key: SchedulingKey
    volumes: tuple[Any, ...]
    """The volume key; empty if its volumes do not matter for scheduling."""
    members: tuple[Member, ...]
    """Oldest first."""
    count: int
    created: datetime | None
    """The creation time of the oldest member."""
    problem: Refusal | None
    """Why no node can take the class."""
    one_pod_only: bool
    """It uses a ReadWriteOncePod claim: at most one pod of the class can run."""

    @property
    def demand(self) -> ResourceVector:
        return self.scheduling_key.demand

    @property
    def priority(self) -> int:
        return self.scheduling_key.priority

    @property
    def has_spread(self) -> bool:
        return bool(self.scheduling_key.spread)

    @property
    def has_affinity(self) -> bool:
        return bool(self.scheduling_key.affinity)

    @property
    def has_anti_affinity(self) -> bool:
        return bool(self.scheduling_key.anti_affinity)

    @property
    def has_volumes(self) -> bool:
        return bool(self.volumes)

    @property
    def is_simple(self) -> bool:
        """Whether resources alone decide how many pods fit on a node, as far as the class itself is concerned."""
        return not (self.scheduling_key.has_pod_constraints or self.scheduling_key.ports or self.volumes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassTable:
    """The classes of one snapshot, in the order of their first members."""

    pending: tuple[PendingPods, ...]
    classes: tuple[PodClass, ...]
    class_of: Ints
    """[P]: the class of each pending entry."""
    visible: VisibleLabels
    keys: Mapping[Key, int] = field(default_factory=dict, repr=False)
    """The key that the members of a class share, to the number of the class."""

    @classmethod
    def build(
        cls,
        pending: Sequence[PendingPods],
        view: ClusterView,
        *,
        scheduling_keys: SchedulingKeys | None = None,
        visible_to_running: VisibleLabels | None = None,
        profile: Profile = DEFAULT_PROFILE,
    ) -> ClassTable:
        """`visible_to_running`: labels that anti-affinity of running pods sees; by default read from the view."""
        known = SchedulingKeys() if scheduling_keys is None else scheduling_keys
        made = [known.get_key(pending_pods.pod) for pending_pods in pending]
        running = VisibleLabels.from_view(view) if visible_to_running is None else visible_to_running
        visible = VisibleLabels.from_keys(dict.fromkeys(made)) | running
        builder = _ClassBuilder(tuple(pending), view, visible=visible, profile=profile, forms=known)
        table = builder.build_table(made)
        known.forget_unused()
        return table

    def extend(
        self,
        more: Sequence[PendingPods],
        view: ClusterView,
        *,
        scheduling_keys: SchedulingKeys,
        profile: Profile = DEFAULT_PROFILE,
    ) -> ClassTable | None:
        """The table with more entries at the end, none of them with claims. Keys, view and profile must be unchanged.

        None if the new pods depend on others: existing classes might then have to be split.
        """
        made = [scheduling_keys.get_key(pending.pod) for pending in more]
        if any(form.has_pod_constraints for form in made):
            return None
        builder = _ClassBuilder(
            (*self.pending, *more), view, visible=self.visible, profile=profile, forms=scheduling_keys
        )
        return builder.extend_table(self, made)

    def __len__(self) -> int:
        return len(self.classes)

    def __iter__(self) -> Iterator[PodClass]:
        return iter(self.classes)

    @property
    def counts(self) -> Ints:
        """[C]: pods in each class."""
        return np.array([pod_class.count for pod_class in self.classes], dtype=np.int64)

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of all resources that any class requests."""
        return tuple(sorted({name for pod_class in self.classes for name in pod_class.demand}))

    def count_members_by_key(self, index: int, pods: int, *, after: int = 0) -> dict[str, int]:
        """`pods` members of a class by the key of their entry, skipping the first `after` of them."""
        named: dict[str, int] = {}
        for member in self.classes[index].members:
            skipped = min(after, member.count)
            taken = min(pods, member.count - skipped)
            after -= skipped
            pods -= taken
            if taken:
                key = self.pending[member.pending].key
                named[key] = named.get(key, 0) + taken
        return named


class _ClassBuilder:
    """Sorts pods into classes and builds each class once."""

    def __init__(
        self,
        pending: tuple[PendingPods, ...],
        view: ClusterView,
        *,
        visible: VisibleLabels,
        profile: Profile,
        forms: SchedulingKeys,
    ) -> None:
        self._pending = pending
        self._forms = forms
        self._visible = visible
        self._profile = profile
        with_storage = any(
            pending_pods.pod.spec.volumes and touches_storage(pending_pods.pod) for pending_pods in pending
        )
        self._volumes = VolumeKeys(view, pending) if with_storage else None
        # Refusals that hold for every node depend only on the pod, its claims and its namespace; no node is checked.
        self._nowhere = ClusterView.from_objects(namespaces=view.namespaces, storage=view.storage)

    def build_table(self, forms: Sequence[SchedulingKey]) -> ClassTable:
        found: dict[Key, int] = {}
        members: list[list[int]] = []
        volumes: list[tuple[Any, ...]] = []
        class_of = np.empty(len(self._pending), dtype=np.int64)
        for index, (pending, form) in enumerate(zip(self._pending, forms, strict=True)):
            volume_key = self._get_volume_key(pending.pod)
            number = found.setdefault(self._build_key(pending.pod, form, volume_key), len(members))
            if number == len(members):
                members.append([])
                volumes.append(volume_key)
            members[number].append(index)
            class_of[index] = number
        classes = tuple(
            self._build_class(number, forms[listed[0]], volumes[number], listed)
            for number, listed in enumerate(members)
        )
        return ClassTable(pending=self._pending, classes=classes, class_of=class_of, visible=self._visible, keys=found)

    def extend_table(self, before: ClassTable, forms: Sequence[SchedulingKey]) -> ClassTable:
        """The earlier table, extended by the entries with these keys."""
        keys = dict(before.keys)
        classes = list(before.classes)
        class_of = [*before.class_of.tolist()]
        for index, form in enumerate(forms, start=len(before.pending)):
            pending = self._pending[index]
            number = keys.setdefault(self._build_key(pending.pod, form, ()), len(classes))
            if number == len(classes):
                classes.append(self._build_class(number, form, (), [index]))
            else:
                known = classes[number]
                members = (*known.members, Member(pending=index, count=pending.count))
                classes[number] = replace(known, members=members, count=known.count + pending.count)
            class_of.append(number)
        return ClassTable(
            pending=self._pending,
            classes=tuple(classes),
            class_of=np.array(class_of, dtype=np.int64),
            visible=self._visible,
            keys=keys,
        )

    def _get_volume_key(self, pod: Pod) -> tuple[Any, ...]:
        return () if self._volumes is None or not pod.spec.volumes else self._volumes.get_key(pod)

    def _build_key(self, pod: Pod, form: SchedulingKey, volumes: tuple[Any, ...]) -> Key:
        meta = pod.metadata
        visible = self._visible
        labels = select_labels(meta.labels, visible.label_keys) if visible.label_keys else ()
        return (form.number, labels, meta.namespace if visible.namespaces else "", volumes)

    def _build_class(self, number: int, form: SchedulingKey, volumes: tuple[Any, ...], listed: list[int]) -> PodClass:
        if len(listed) > 1:
            listed.sort(key=lambda index: (self._read_creation_time(index) or _FAR_AHEAD, index))
        pod = self._pending[listed[0]].pod
        return PodClass(
            index=number,
            pod=pod,
            scheduling_key=form,
            volumes=volumes,
            members=tuple(Member(pending=index, count=self._pending[index].count) for index in listed),
            count=sum(self._pending[index].count for index in listed),
            created=self._read_creation_time(listed[0]),
            problem=self._find_problem(pod, form, volumes),
            one_pod_only=bool(volumes) and self._volumes is not None and self._volumes.is_single_pod_claim(pod),
        )

    def _find_problem(self, pod: Pod, form: SchedulingKey, volumes: tuple[Any, ...]) -> Refusal | None:
        """Why no node can take the pod. Keys that are known to be valid are not checked again."""
        if not volumes and self._forms.is_known_valid(pod, form, self._profile.disabled):
            return None
        everywhere = Prepared(pod, self._nowhere, profile=self._profile).everywhere
        if everywhere:
            return everywhere[0]
        if not volumes:
            self._forms.mark_valid(pod, form, self._profile.disabled)
        return None

    def _read_creation_time(self, index: int) -> datetime | None:
        pending = self._pending[index]
        return pending.created or pending.pod.metadata.creation_timestamp


@dataclass(frozen=True, slots=True)
class VisibleLabels:
    """Labels that selectors can see. `namespaces`: whether any term exists; every term restricts namespaces."""

    label_keys: frozenset[str] = frozenset()
    namespaces: bool = False

    @classmethod
    def from_keys(cls, forms: Iterable[SchedulingKey]) -> VisibleLabels:
        constrained = [spec_form for spec_form in forms if spec_form.has_pod_constraints]
        return cls(frozenset().union(*(spec_form.label_keys for spec_form in constrained)), bool(constrained))

    @classmethod
    def from_view(cls, view: ClusterView) -> VisibleLabels:
        """The labels that anti-affinity of the running pods of a view can see."""
        return cls.from_anti_affinity(
            placed.pod for place in view.anti_affine_nodes for placed in place.pods.values() if placed.anti_affinity
        )

    @classmethod
    def from_anti_affinity(cls, pods: Iterable[Pod]) -> VisibleLabels:
        """The labels that the required anti-affinity of these running pods can see."""
        keys: set[str] = set()
        seen = False
        for pod in pods:
            affinity = pod.spec.affinity
            if affinity is not None and affinity.pod_anti_affinity is not None:
                for term in affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution:
                    keys |= collect_term_label_keys(term)
                    seen = True
        return cls(frozenset(keys), seen)

    def __or__(self, other: VisibleLabels) -> VisibleLabels:
        return VisibleLabels(self.label_keys | other.label_keys, self.namespaces or other.namespaces)
