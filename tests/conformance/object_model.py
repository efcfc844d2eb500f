"""What an API server is, in the plainest words: objects, a growing revision, and the list of what happened.

The state machine does everything twice, to the server and to this model, and compares. ConfigMaps stand for all kinds:
what differs by kind is compared with recordings elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

Key = tuple[str, str]
"""Namespace and name."""


class ModelObject(NamedTuple):
    """One object, in the parts that operations change."""

    uid: str
    revision: int
    data: dict[str, str]
    labels: dict[str, str]
    finalizers: tuple[str, ...] = ()
    is_deleting: bool = False

    def same_content(self, other: ModelObject) -> bool:
        return self._replace(revision=0) == other._replace(revision=0)


class ObjectChange(NamedTuple):
    """One change: an object before and after it."""

    revision: int
    key: Key
    before: ModelObject | None
    after: ModelObject | None


class Event(NamedTuple):
    """A change as a watcher with a selector sees it."""

    type: str
    key: Key
    revision: int
    labels: tuple[tuple[str, str], ...]


class Model:
    """The objects and their history."""

    def __init__(self) -> None:
        self.objects: dict[Key, ModelObject] = {}
        self.happenings: list[ObjectChange] = []

    @property
    def revision(self) -> int:
        return self.happenings[-1].revision if self.happenings else 0

    def change(self, key: Key, after: ModelObject | None, *, revision: int) -> None:
        """Write `after` in place of what is there; None deletes."""
        assert revision > self.revision, "revisions only grow"
        before = self.objects.pop(key, None)
        if after is not None:
            after = after._replace(revision=revision)
            self.objects[key] = after
        self.happenings.append(ObjectChange(revision, key, before, after))

    def selected(self, namespace: str, label: str) -> dict[Key, ModelObject]:
        """What a list shows, in its order."""
        return {
            key: held
            for key, held in sorted(self.objects.items())
            if key[0] == namespace and (not label or label in held.labels)
        }

    def at(self, revision: int) -> dict[Key, ModelObject]:
        """The objects as they were."""
        objects: dict[Key, ModelObject] = {}
        for happening in self.happenings:
            if happening.revision > revision:
                break
            objects.pop(happening.key, None)
            if happening.after is not None:
                objects[happening.key] = happening.after
        return objects

    def events(self, *, since: int, label: str) -> list[Event]:
        """What a watch sends: an object that leaves a selector is DELETED, as it was, at the revision of the change."""
        found: list[Event] = []
        for happening in self.happenings:
            was = happening.before is not None and (not label or label in happening.before.labels)
            is_ = happening.after is not None and (not label or label in happening.after.labels)
            if happening.revision <= since or not (was or is_):
                continue
            shown = happening.after if is_ else happening.before
            assert shown is not None
            kind = "MODIFIED" if was and is_ else "ADDED" if is_ else "DELETED"
            labels = tuple(sorted(shown.labels.items()))
            found.append(Event(kind, happening.key, happening.revision, labels))
        return found
