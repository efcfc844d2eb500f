"""What the store should do, in plain code: a log of writes, and everything else computed from it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Entry(NamedTuple):
    revision: int
    resource: str
    path: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class ModelEvent(NamedTuple):
    """An event as a watcher sees it."""

    type: str
    revision: int
    body: dict[str, Any]


def is_selected(body: dict[str, Any] | None) -> bool:
    return body is not None and "w" in (body["metadata"].get("labels") or {})


def stamped(body: dict[str, Any], revision: int) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "resourceVersion": str(revision)}}


class Model:
    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.revision = 1

    def state(self, resource: str, *, at: int | None = None, namespace: str | None = None) -> dict[str, dict[str, Any]]:
        """Bodies by path, in order."""
        state: dict[str, dict[str, Any]] = {}
        for entry in self.log:
            if entry.resource != resource or (at is not None and entry.revision > at):
                continue
            if entry.after is None:
                state.pop(entry.path)
            else:
                state[entry.path] = entry.after
        inside = f"{namespace}/" if namespace else ""
        return {path: body for path, body in sorted(state.items()) if path.startswith(inside)}

    def write(self, resource: str, path: str, *, revision: int, after: dict[str, Any] | None) -> None:
        before = self.state(resource).get(path)
        assert revision > self.revision
        self.revision = revision
        self.log.append(Entry(revision, resource, path, before, None if after is None else stamped(after, revision)))

    def events(self, resource: str, *, since: int, namespace: str | None, selecting: bool) -> list[ModelEvent]:
        inside = f"{namespace}/" if namespace else ""
        reported = []
        for entry in self.log:
            if entry.resource == resource and entry.revision > since and entry.path.startswith(inside):
                event = _reported(entry, selecting=selecting)
                if event is not None:
                    reported.append(event)
        return reported


def _reported(entry: Entry, *, selecting: bool) -> ModelEvent | None:
    was = entry.before is not None if not selecting else is_selected(entry.before)
    now = entry.after is not None if not selecting else is_selected(entry.after)
    if now:
        assert entry.after is not None
        return ModelEvent("MODIFIED" if was else "ADDED", entry.revision, entry.after)
    if was:
        assert entry.before is not None
        return ModelEvent("DELETED", entry.revision, stamped(entry.before, entry.revision))
    return None
