"""What writers were promised, kept apart from the server: what must be there after a crash, and be sent, in order.

Every key has one writer, and every writer one request under way, so the history of a key is known but for its last
write if that was not answered. What the server shows after its restart settles that one; then nothing is open any more,
and every watcher's events can be written down beforehand, but for the revisions of deletions, which no answer shows.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Json = dict[str, Any]

NAMESPACE = "crash"
KINDS = {"configmaps": "ConfigMap", "secrets": "Secret"}


class Key(NamedTuple):
    resource: str
    name: str

    @property
    def collection(self) -> str:
        return f"/api/v1/namespaces/{NAMESPACE}/{self.resource}"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


class Intent(NamedTuple):
    """A write that was sent."""

    key: Key
    verb: str
    sequence: int

    @property
    def labels(self) -> dict[str, str]:
        return {"parity": "odd" if self.sequence % 2 else "even"}

    @property
    def data(self) -> dict[str, str]:
        """Shows if a part of it is missing or of another write. Digits in fours are base64 too, as Secrets want it."""
        return {"sequence": f"{self.sequence:08d}", "text": f"{self.sequence:08d}" * 150}


class Write(NamedTuple):
    """A write that took place."""

    key: Key
    before: Json | None
    after: Json | None
    revision: int
    """0: not known yet."""


class Event(NamedTuple):
    type: str
    revision: int
    name: str
    object: Json


def revision_of(obj: Json) -> int:
    return int(obj["metadata"]["resourceVersion"])


def is_even(obj: Json) -> bool:
    return bool(obj["metadata"]["labels"]["parity"] == "even")


class WriteLedger:
    def __init__(self) -> None:
        self.objects: dict[Key, Json | None] = {}
        """By key, the last write that is known to have taken place."""
        self.under_way: dict[str, Intent] = {}
        """By writer, the request that was not answered yet, or never."""
        self.newest = 0
        """No revision up to this one may be given to a write any more."""
        self._newest_checked = 0
        self.acknowledged = 0
        self.kept_unanswered = 0
        self.lost_unanswered = 0
        self._since_check: list[Write] = []
        self._uids: set[str] = set()
        self._given: set[int] = set()

    def acknowledge(self, writer: str, answer: Json) -> None:
        intent = self.under_way.pop(writer)
        if intent.verb == "delete":
            before = self.objects[intent.key]
            assert before is not None
            assert answer["status"] == "Success", answer
            assert answer["details"]["uid"] == before["metadata"]["uid"]
            self._record(intent, None)
        else:
            self._record(intent, answer)
        self.acknowledged += 1

    def settle(self, found: Mapping[Key, Json | None]) -> None:
        """After a restart: hold what is there against what was acknowledged, and learn what became of the rest."""
        for intent in self.under_way.values():
            if found[intent.key] == self.objects.get(intent.key):
                self.lost_unanswered += 1
            else:
                self._record(intent, found[intent.key])
                self.kept_unanswered += 1
        self.under_way.clear()
        for key, obj in found.items():
            assert obj == self.objects.get(key), f"{key} is not as it was acknowledged"

    def go_on_from(self, revision: int) -> None:
        """The server stands at `revision`, and has not been asked to write since it was started."""
        assert revision >= self.newest, "a revision was, or would be, given again"
        self.newest = revision

    def _record(self, intent: Intent, after: Json | None) -> None:
        before = self.objects.get(intent.key)
        if after is None:
            assert intent.verb == "delete", f"{intent} left nothing"
            self._since_check.append(Write(intent.key, before, None, 0))
        else:
            self._check_whole(intent, before, after)
            revision = revision_of(after)
            assert revision > self.newest, "a write got a revision of the time before it"
            self._give(revision)
            self._since_check.append(Write(intent.key, before, after, revision))
        self.objects[intent.key] = after

    def _check_whole(self, intent: Intent, before: Json | None, after: Json) -> None:
        metadata = after["metadata"]
        assert (after["kind"], metadata["name"]) == (KINDS[intent.key.resource], intent.key.name)
        assert (after["data"], metadata["labels"]) == (intent.data, intent.labels), f"{intent} left {after}"
        if before is None:
            assert metadata["uid"] not in self._uids, "a uid was given twice"
            self._uids.add(metadata["uid"])
        else:
            assert metadata["uid"] == before["metadata"]["uid"]
            assert revision_of(after) > revision_of(before)

    def _give(self, revision: int) -> None:
        assert revision not in self._given, "a revision was given twice"
        self._given.add(revision)

    # ---- what watchers must have received

    def history(self, reported: Mapping[str, Iterable[Event]]) -> list[Write]:
        """All writes since the last call, in the order of their revisions; called when a restarted server was marked.

        `reported`, by resource, is what watchers of everything received since then, with the revisions of deletions.
        """
        deletions: defaultdict[Key, deque[int]] = defaultdict(deque)
        for resource, events in reported.items():
            for event in events:
                if event.type == "DELETED":
                    deletions[Key(resource, event.name)].append(event.revision)
        writes = [self._with_revision(write, deletions[write.key]) for write in self._since_check]
        assert not any(deletions.values()), "a deletion was told that nobody asked for, or twice"
        self._check_order_by_key(writes)
        self._since_check.clear()
        self._given.clear()
        writes.sort(key=lambda write: write.revision)
        self.newest = self._newest_checked = writes[-1].revision
        return writes

    def _with_revision(self, write: Write, deletions: deque[int]) -> Write:
        if write.revision:
            return write
        assert deletions, f"the deletion of {write.key} was not told"
        revision = deletions.popleft()
        assert self._newest_checked < revision <= self.newest, "a deletion got a revision of another time"
        self._give(revision)
        return write._replace(revision=revision)

    @staticmethod
    def _check_order_by_key(writes: Iterable[Write]) -> None:
        last: dict[Key, int] = {}
        for write in writes:
            assert write.revision > last.get(write.key, 0), f"writes of {write.key} changed places"
            last[write.key] = write.revision


def event_of(write: Write, sees: Callable[[Json], bool]) -> Event | None:
    """What a watcher that sees only some objects receives of a write."""
    was = write.before is not None and sees(write.before)
    shown = write.after
    if shown is not None and sees(shown):
        return Event("MODIFIED" if was else "ADDED", write.revision, write.key.name, shown)
    if not was:
        return None
    assert write.before is not None
    metadata = {**write.before["metadata"], "resourceVersion": str(write.revision)}
    return Event("DELETED", write.revision, write.key.name, {**write.before, "metadata": metadata})
