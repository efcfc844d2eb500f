"""Instances: as the control plane lists them, and as this cluster has them."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.core.values import Value

STANDARD: Final = "standard"
DEVELOPER: Final = "developer"
INSTANCE_TYPES: Final = (STANDARD, DEVELOPER)


class ListedKafka(Value):
    """An instance of the list. `spec` is that of the object, without secrets; `credentials` has them by key."""

    id: str
    name: str
    namespace: str
    placement_id: str
    instance_type: str
    units: int
    is_reserved: bool = False
    is_paused: bool = False
    deleted: bool = False
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: dict[str, Any] = {}
    credentials: dict[str, str] = {}
    hash: str = ""
    """Changes with everything of the item but `deleted`."""


class UnreadableItem(Value):
    """An item of the list that cannot be used. `id` and `namespace` as far as it has them."""

    problem: str
    id: str = ""
    namespace: str = ""

    @property
    def is_anonymous(self) -> bool:
        """Whether it might be about any instance."""
        return not self.id and not self.namespace


class KafkaList(Value):
    """A complete answer of the control plane."""

    items: tuple[ListedKafka, ...] = ()
    unreadable: tuple[UnreadableItem, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.items and not self.unreadable


class LocalInstance(Value):
    """An instance that this cluster has: its ManagedKafka, or only its namespace."""

    namespace: str
    name: str = ""
    """Empty: the namespace has no ManagedKafka."""
    id: str = ""
    placement_id: str = ""
    hash: str = ""
    deleted: bool = False
    is_reserved: bool = False
    is_rejected: bool = False
    is_terminating: bool = False
    """The namespace, or the ManagedKafka, is being deleted."""
    is_unreadable: bool = False
    """The ManagedKafka cannot be decoded, or the namespace has several."""
