"""The plugins in Kubernetes' order: each sees what the previous ones have filled in."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.admission.defaults import (
    DefaultStorageClass,
    NewNodeTaints,
    StorageProtection,
    TolerationSeconds,
)
from plimsoll.local.apiserver.admission.escalation import Escalation
from plimsoll.local.apiserver.admission.limit_ranger import LimitRanger
from plimsoll.local.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from plimsoll.local.apiserver.admission.priority import Priority
from plimsoll.local.apiserver.admission.quota.plugin import ResourceQuotas
from plimsoll.local.apiserver.admission.service_account import ServiceAccount

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes, Mutator, Validator
    from plimsoll.local.apiserver.auth_types import Authorizer
    from plimsoll.local.apiserver.storage import Store


# The resources, by where they are stored, that a plugin looks at.
_EVERYTHING: Final[frozenset[str]] = frozenset()
_PODS: Final = frozenset({"pods"})


class Admission:
    """The admission chain of every write: `mutate` before the object is validated, `validate` after.

    A write that fails after `validate` let it in is given back with `release` and the same attempt; after a write
    that succeeded it does no harm.
    """

    def __init__(self, *, store: Store, clock: Clock, entropy: Entropy, authorizer: Authorizer) -> None:
        limits, priorities = LimitRanger(store), Priority(store)
        self._mutators: tuple[tuple[Mutator, frozenset[str]], ...] = (
            (NamespaceLifecycle(store), _EVERYTHING),
            (limits, _PODS),
            (ServiceAccount(store, entropy), _PODS),
            (NewNodeTaints(), frozenset({"nodes"})),
            (priorities, _PODS),
            (TolerationSeconds(), _PODS),
            (DefaultStorageClass(store), frozenset({"persistentvolumeclaims"})),
            (StorageProtection(), frozenset({"persistentvolumeclaims", "persistentvolumes"})),
        )
        self._mutators_of = lru_cache(maxsize=256)(self._list_mutators_of)
        self._validators: tuple[Validator, ...] = (Escalation(authorizer), limits, priorities)
        self._quotas = ResourceQuotas(store, clock)

    def _list_mutators_of(self, stored_as: str) -> tuple[Mutator, ...]:
        return tuple(
            mutator for mutator, resources in self._mutators if resources is _EVERYTHING or stored_as in resources
        )

    async def mutate(self, attempt: AdmissionAttributes) -> dict[str, Any]:
        """The object of the attempt, which is changed in place; empty for a deletion. Raises `StatusError`."""
        for plugin in self._mutators_of(attempt.resource.stored_as):
            plugin.mutate(attempt)
        return attempt.obj or {}

    async def validate(self, attempt: AdmissionAttributes) -> None:
        """Raises `StatusError`. Quota comes last: what another plugin rejects is not charged."""
        for plugin in self._validators:
            plugin.validate(attempt)
        await self._quotas.validate(attempt)

    def release(self, attempt: AdmissionAttributes) -> None:
        self._quotas.release(attempt)
