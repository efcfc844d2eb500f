"""The graph of owners and dependents over all watched kinds, by uid, in both directions.

The garbage collector's informers write it; objects are identified by uid, never by name. An object stays in it as long
as its informer has it. Nothing here decides anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plimsoll.local.controller_manager.garbage_collector.decisions import Dependent, is_waiting

if TYPE_CHECKING:
    from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
    from plimsoll.objects.api.resource import Resource


class Entry(NamedTuple):
    """One object, and where it is."""

    resource: Resource
    metadata: ObjectMeta


class OwnerGraph:
    """Entries by uid, and the uids of those that name a uid as their owner."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._dependents: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> Entry | None:
        return self._entries.get(uid)

    def list_uids(self) -> list[str]:
        return list(self._entries)

    def put(self, resource: Resource, metadata: ObjectMeta) -> None:
        self._unlink(metadata.uid)
        self._entries[metadata.uid] = Entry(resource, metadata)
        for owner in metadata.owner_references:
            self._dependents.setdefault(owner.uid, {})[metadata.uid] = None

    def refresh(self, metadata: ObjectMeta) -> None:
        """The same object with the same owners in a newer version."""
        known = self._entries.get(metadata.uid)
        if known is not None:
            self._entries[metadata.uid] = Entry(known.resource, metadata)

    def remove(self, uid: str) -> None:
        self._unlink(uid)
        self._entries.pop(uid, None)

    def list_dependent_uids(self, uid: str) -> list[str]:
        """The uids of all that name this one as an owner, the longest known first."""
        return list(self._dependents.get(uid, ()))

    def list_dependents(self, uid: str) -> list[Dependent]:
        entries = ((dependent, self._entries[dependent].metadata) for dependent in self.list_dependent_uids(uid))
        return [
            Dependent(
                uid=entry,
                blocks=any(owner.block_owner_deletion for owner in metadata.owner_references if owner.uid == uid),
                is_waiting=is_waiting(metadata),
            )
            for entry, metadata in entries
        ]

    def find_owner(self, reference: OwnerReference, namespace: str) -> ObjectMeta | None:
        """The owner a reference in `namespace` names, if it is known and matches the reference."""
        entry = self._entries.get(reference.uid)
        if entry is None:
            return None
        resource, metadata = entry
        group = reference.api_version.rpartition("/")[0]
        is_it = (resource.kind, resource.group, metadata.name) == (reference.kind, group, reference.name)
        is_near = not resource.namespaced or metadata.namespace == namespace
        return metadata if is_it and is_near else None

    def _unlink(self, uid: str) -> None:
        before = self._entries.get(uid)
        for owner in before.metadata.owner_references if before is not None else ():
            same = self._dependents.get(owner.uid)
            if same is not None:
                same.pop(uid, None)
                if not same:
                    del self._dependents[owner.uid]
