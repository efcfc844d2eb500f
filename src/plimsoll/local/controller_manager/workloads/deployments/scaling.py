"""The next replicas of each set of a deployment: rolling update, recreation, proportional scaling. Pure.

Each function returns sizes by set name, only of sets that change, in the order of the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.controller_manager.workloads.deployments.replica_counts import (
    ReplicaSizes,
    compute_max_surge,
    compute_max_unavailable,
    get_replicas,
    is_rolling,
    round_half_away,
)
from plimsoll.local.controller_manager.workloads.deployments.revisions import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    parse_number,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.controller_manager.workloads.deployments.revisions import OwnedSet
    from plimsoll.objects.api.workloads import Deployment, ReplicaSet

    NewSizes = dict[str, int]


def compute_first_size(deployment: Deployment, old: Sequence[OwnedSet]) -> int:
    """How many replicas a set that is made now begins with."""
    if not is_rolling(deployment):
        return get_replicas(deployment)
    return _compute_new_size(deployment, 0, total=sum(get_replicas(owned.view) for owned in old))


def is_scaling(deployment: Deployment, owned: Sequence[OwnedSet]) -> bool:
    """Whether the wanted number changed since the sets were last sized: then they are scaled before rolling on."""
    remembered = (
        parse_number(owned_set.view.metadata.annotations, DESIRED_REPLICAS) for owned_set in _select_active(owned)
    )
    return any(item is not None and item != get_replicas(deployment) for item in remembered)


def compute_rolling_sizes(deployment: Deployment, new: OwnedSet, old: Sequence[OwnedSet]) -> NewSizes:
    """One step of a rolling update: grow the new set as far as the surge allows; otherwise shrink old ones."""
    sizes = ReplicaSizes(owned.view for owned in (*old, new))
    current = get_replicas(new.view)
    size = _compute_new_size(deployment, current, total=sizes.compute_total())
    if size != current:
        return {new.name: size}
    return _shrink_old_sets(deployment, new, _select_active(old), sizes)


def recreate_sizes(old: Sequence[OwnedSet]) -> NewSizes:
    """Before anything new: nothing old."""
    return {owned.name: 0 for owned in _select_active(old)}


def compute_proportional_sizes(deployment: Deployment, new: OwnedSet | None, old: Sequence[OwnedSet]) -> NewSizes:
    """Without rolling on: one set takes the whole change, several in proportion to their sizes."""
    wanted = get_replicas(deployment)
    only = _find_active_or_latest(new, old)
    if only is not None:
        return {only.name: wanted}
    if new is not None and _is_saturated(deployment, new.view):
        return {owned.name: 0 for owned in _select_active(old)}
    if not is_rolling(deployment):
        return {}
    return _scale_in_proportion(deployment, _select_active([*old, *([] if new is None else [new])]))


# ---- rolling


def _compute_new_size(deployment: Deployment, current: int, *, total: int) -> int:
    wanted = get_replicas(deployment)
    if current >= wanted:
        return wanted
    room = wanted + compute_max_surge(deployment) - total
    return current + min(room, wanted - current) if room > 0 else current


def _shrink_old_sets(deployment: Deployment, new: OwnedSet, old: Sequence[OwnedSet], sizes: ReplicaSizes) -> NewSizes:
    """Old sets lose first what is not available anyway, then what can be spared."""
    least = get_replicas(deployment) - compute_max_unavailable(deployment)
    not_yet = sizes.get_size(new.name) - _count_available(new, sizes)
    spare = sizes.compute_total() - least - not_yet
    if not old or spare <= 0:
        return {}
    before = {item.name: sizes.get_size(item.name) for item in old}
    for owned in old:
        unhealthy = sizes.get_size(owned.name) - _count_available(owned, sizes)
        given_up = min(spare, unhealthy)
        sizes.put(owned.name, sizes.get_size(owned.name) - given_up)
        spare -= given_up
    spare = sum(_count_available(item, sizes) for item in (*old, new)) - least
    for owned_set in old:
        given_up = max(0, min(spare, sizes.get_size(owned_set.name)))
        sizes.put(owned_set.name, sizes.get_size(owned_set.name) - given_up)
        spare -= given_up
    return {name: sizes.get_size(name) for name, size in before.items() if sizes.get_size(name) != size}


def _count_available(owned_set: OwnedSet, sizes: ReplicaSizes) -> int:
    """Not more than the set wants: a status may still count pods that are to go already."""
    return min(owned_set.view.status.available_replicas, sizes.get_size(owned_set.name))


# ---- scaling


def _select_active(owned: Sequence[OwnedSet]) -> list[OwnedSet]:
    return [owned_set for owned_set in owned if get_replicas(owned_set.view) > 0]


def _find_active_or_latest(new: OwnedSet | None, old: Sequence[OwnedSet]) -> OwnedSet | None:
    """The one set to scale: the only active one, or if there is none the newest. None: there are several."""
    active = _select_active([*old, *([] if new is None else [new])])
    if len(active) == 1:
        return active[0]
    if active:
        return None
    return new if new is not None else (old[-1] if old else None)


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    wanted = get_replicas(deployment)
    remembered = parse_number(new.metadata.annotations, DESIRED_REPLICAS)
    return get_replicas(new) == wanted == remembered == new.status.available_replicas


def _scale_in_proportion(deployment: Deployment, active: Sequence[OwnedSet]) -> NewSizes:
    """Every set keeps its share; what rounding leaves goes to the largest."""
    wanted = get_replicas(deployment)
    allowed = wanted + compute_max_surge(deployment) if wanted else 0
    to_add = allowed - sum(get_replicas(owned_set.view) for owned_set in active)
    # Growing, the newer of two of the same size comes first; shrinking, the older.
    by_age = sorted(active, key=lambda owned_set: owned_set.age_key, reverse=to_add > 0)
    ordered = sorted(by_age, key=lambda owned_set: -get_replicas(owned_set.view)) if to_add else list(active)
    sizes: NewSizes = {}
    added = 0
    for owned in ordered:
        share = _share(deployment, owned.view, to_add=to_add, added=added) if to_add else 0
        sizes[owned.name] = get_replicas(owned.view) + share
        added += share
    if ordered and to_add:
        largest = ordered[0].name
        sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _share(deployment: Deployment, replica_set: ReplicaSet, *, to_add: int, added: int) -> int:
    size = get_replicas(replica_set)
    if to_add == added:
        return 0
    fraction = _compute_fraction(deployment, replica_set, size)
    left = to_add - added
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _compute_fraction(deployment: Deployment, replica_set: ReplicaSet, size: int) -> int:
    wanted = get_replicas(deployment)
    if wanted == 0:
        return -size
    before = parse_number(replica_set.metadata.annotations, MAX_REPLICAS) or deployment.status.replicas
    if not before:
        return 0
    return round_half_away(size * (wanted + compute_max_surge(deployment)) / before) - size
