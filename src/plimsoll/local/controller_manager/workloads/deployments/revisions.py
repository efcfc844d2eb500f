"""The new replica set of a deployment among its sets, and the annotations with their revisions. Pure.

The new set is the oldest whose template equals the deployment's; a rollback makes an old set the new one again, which
then gets the next revision number and keeps its previous ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.local.controller_manager.workloads.deployments.replica_counts import compute_max_surge, get_replicas
from plimsoll.objects.api.workloads import (
    Deployment,  # noqa: TC001
    ReplicaSet,  # noqa: TC001
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    }
)
_LONGEST_HISTORY: Final = 2_000
_UNLIMITED: Final = 2**31 - 1


class OwnedSet(Value):
    """A replica set of a deployment. `is_new`: its template is the deployment's."""

    view: ReplicaSet
    is_new: bool = False

    @property
    def name(self) -> str:
        return self.view.metadata.name

    @property
    def age_key(self) -> tuple[float, str]:
        made = self.view.metadata.creation_timestamp
        return (made.timestamp() if made is not None else 0.0, self.name)


def split_new_and_old(owned: Sequence[OwnedSet]) -> tuple[OwnedSet | None, list[OwnedSet]]:
    """The new set, if there is one, and all others, the oldest first."""
    by_age = sorted(owned, key=lambda owned_set: owned_set.age_key)
    new = next((owned_set for owned_set in by_age if owned_set.is_new), None)
    return new, [owned_set for owned_set in by_age if owned_set is not new]


def get_revision(replica_set: ReplicaSet) -> int:
    return parse_number(replica_set.metadata.annotations, REVISION) or 0


def parse_number(annotations: Mapping[str, str], name: str) -> int | None:
    """The number an annotation holds; None for none and for anything else."""
    text = annotations.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def compute_next_revision(old: Iterable[OwnedSet]) -> int:
    return max((get_revision(owned.view) for owned in old), default=0) + 1


def build_size_annotations(deployment: Deployment) -> dict[str, str]:
    """What a set remembers of the deployment's size, to be scaled in proportion later."""
    desired = get_replicas(deployment)
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + compute_max_surge(deployment))}


def build_new_set_annotations(
    deployment: Deployment, old: Iterable[OwnedSet], existing: ReplicaSet | None
) -> dict[str, str]:
    """Annotations to put on the new set; of one that exists only those that are missing or differ."""
    present = {} if existing is None else existing.metadata.annotations
    given = {name: text for name, text in deployment.metadata.annotations.items() if name not in _NOT_COPIED}
    revision = compute_next_revision(old)
    before = parse_number(present, REVISION)
    if REVISION not in present or (before or 0) < revision:
        given[REVISION] = str(revision)
        if before is not None:
            given[REVISION_HISTORY] = _append_history(present.get(REVISION_HISTORY, ""), present[REVISION])
    if existing is None:
        given |= build_size_annotations(deployment)
    return {name: text for name, text in given.items() if present.get(name) != text}


def select_surplus_history(deployment: Deployment, old: Sequence[OwnedSet]) -> list[OwnedSet]:
    """Old sets beyond the revision history limit, the lowest revisions first; only those that are empty and at rest."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == _UNLIMITED:
        return []
    alive = [owned for owned in old if owned.view.metadata.deletion_timestamp is None]
    by_revision = sorted(alive, key=lambda owned: (get_revision(owned.view), owned.age_key))
    return [owned for owned in by_revision[: max(0, len(alive) - limit)] if _is_at_rest(owned.view)]


def _is_at_rest(replica_set: ReplicaSet) -> bool:
    is_observed = replica_set.status.observed_generation >= replica_set.metadata.generation
    return is_observed and not replica_set.status.replicas and replica_set.spec.replicas == 0


def _append_history(history: str, revision: str) -> str:
    """Former revisions, separated by commas; the oldest give way where it grows too long."""
    revisions = [*(item for item in history.split(",") if item), revision]
    while len(revisions) > 1 and len(",".join(revisions)) > _LONGEST_HISTORY:
        del revisions[0]
    return ",".join(revisions)
