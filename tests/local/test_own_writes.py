"""Own writes are remembered until they are seen, and not for ever where nobody looks."""

from __future__ import annotations

from typing import Any

from plimsoll.kube.informer.events import Key
from plimsoll.local.own_writes import OwnWrites
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod


class _Informer:
    """Has come as far as version 5 and holds nothing."""

    position = "5"

    class cache:  # noqa: N801 -- stands for an attribute
        @staticmethod
        def get(_name: str, _namespace: str) -> None:
            return None


class _Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s


def _pod(name: str, version: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="here", uid=name, resource_version=version))


def _writes(clock: _Clock) -> OwnWrites[Any]:
    informer: Any = _Informer()
    ticking: Any = clock
    return OwnWrites(informer, clock=ticking)


def test_a_write_is_seen_when_the_cache_has_come_as_far():
    writes = _writes(_Clock())
    writes.wrote("early", _pod("a", "5"))
    writes.wrote("late", _pod("b", "6"))
    assert (writes.are_seen("early"), writes.are_seen("late")) == (True, False)


def test_a_write_that_is_never_seen_is_given_up_after_five_minutes():
    clock = _Clock()
    writes = _writes(clock)
    writes.wrote("o", _pod("a", "6"))
    clock.now_s = 300
    assert not writes.are_seen("o")
    clock.now_s = 301
    assert writes.are_seen("o")


def test_writes_for_owners_nobody_asks_about_are_forgotten_and_recent_ones_are_not():
    clock = _Clock()
    writes = _writes(clock)
    writes.wrote("gone", _pod("a", "6"))
    clock.now_s = 200
    writes.wrote("there", _pod("b", "7"))
    clock.now_s = 301
    writes.wrote("other", _pod("c", "8"))
    assert not writes.awaits("gone", Key("here", "a"))
    assert writes.awaits("there", Key("here", "b"))
    assert writes.awaits("other", Key("here", "c"))
