"""Handlers that check what they receive: every history must be one that can have happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.informer import Added, BecameUnreadable, Deleted, UnreadableDeleted, Updated
from plimsoll.kube.informer.events import get_view
from plimsoll.objects.codec.decode_problems import BadObject
from tests.kube.informer.widget_server import BAD, identity_of

if TYPE_CHECKING:
    from plimsoll.kube.informer import Change
    from tests.kube.informer.widget_server import WidgetCluster


class CheckingHandler:
    """Remembers what it received of each object. A task that fails a check fails the test at its end."""

    def __init__(self, world: WidgetCluster, *, takes_s: float = 0.0, fails_every: int = 0) -> None:
        self._world = world
        self._takes_s = takes_s
        self._fails_every = fails_every
        self._calls = 0
        self.complaints: list[str] = []
        self.reported: dict[str, Any] = {}

    async def __call__(self, change: Change[Any]) -> None:
        self._note(change)
        self._calls += 1
        if self._takes_s:
            await self._world.clock.sleep(self._takes_s)
        if self._fails_every and self._calls % self._fails_every == 0:
            raise RuntimeError("as it happens")

    def _note(self, change: Change[Any]) -> None:
        name, last = change.key.name, self.reported.get(change.key.name)
        match change:
            case Added(new=new):
                self._check(last is None or isinstance(last, BadObject), change)
                self.reported[name] = new
            case Updated(old=old, new=new):
                # Equal, not identical: a restored server lists again an object that a slow handler still knows.
                self._check(old == last, change)
                self._check(identity_of(old)[0] == identity_of(new)[0], change)
                self._check(self._world.has_gone_back or _number(new) > _number(old), change)
                self._check(identity_of(new) != identity_of(old) or _content(new) != _content(old), change)
                self.reported[name] = new
            case Deleted(last=final):
                self._check(last is not None and not isinstance(last, BadObject), change)
                self._check(identity_of(final)[0] == identity_of(last)[0], change)
                self._check(self._world.has_gone_back or _number(final) >= _number(last), change)
                del self.reported[name]
            case BecameUnreadable(bad=bad, last=known):
                self._check(known == (None if isinstance(last, BadObject) else last), change)
                self._check(identity_of(bad) != identity_of(last) if isinstance(last, BadObject) else True, change)
                self.reported[name] = bad
            case UnreadableDeleted():
                self._check(isinstance(last, BadObject), change)
                del self.reported[name]

    def _check(self, holds: bool, change: Change[Any]) -> None:
        if not holds:
            self.complaints.append(f"{change} after {self.reported.get(change.key.name)}")

    @property
    def known(self) -> dict[str, tuple[str, str, Any]]:
        return {
            name: (*identity_of(item), BAD if isinstance(item, BadObject) else get_view(item).spec.size)  # type: ignore[attr-defined]
            for name, item in self.reported.items()
        }


def _content(value: Any) -> tuple[Any, Any]:
    """All that can differ between two states of a widget."""
    return get_view(value).metadata, get_view(value).spec  # type: ignore[attr-defined]


def _number(value: Any) -> int:
    return int(identity_of(value)[1])
