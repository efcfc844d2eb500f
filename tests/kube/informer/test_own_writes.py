"""Own writes are remembered until the cache shows them: as expectations, and on top of the cache."""

from __future__ import annotations

from typing import Any

from plimsoll.kube.informer.events import Key
from plimsoll.kube.informer.own_writes import Expectations, MutationCache, Mutations
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod


class _Informer:
    """An informer at version 5 with an empty cache."""

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


def _writes(clock: _Clock) -> Expectations[Any]:
    informer: Any = _Informer()
    ticking: Any = clock
    return Expectations(informer, clock=ticking)


def test_a_write_is_observed_when_the_cache_has_reached_its_version():
    writes = _writes(_Clock())
    writes.expect_write("early", _pod("a", "5"))
    writes.expect_write("late", _pod("b", "6"))
    assert (writes.are_fulfilled("early"), writes.are_fulfilled("late")) == (True, False)


def test_a_write_that_is_never_observed_expires_after_five_minutes():
    clock = _Clock()
    writes = _writes(clock)
    writes.expect_write("o", _pod("a", "6"))
    clock.now_s = 300
    assert not writes.are_fulfilled("o")
    clock.now_s = 301
    assert writes.are_fulfilled("o")


def test_expired_writes_of_owners_that_are_never_checked_are_forgotten():
    clock = _Clock()
    writes = _writes(clock)
    writes.expect_write("gone", _pod("a", "6"))
    clock.now_s = 200
    writes.expect_write("there", _pod("b", "7"))
    clock.now_s = 301
    writes.expect_write("other", _pod("c", "8"))
    assert not writes.is_awaiting("gone", Key("here", "a"))
    assert writes.is_awaiting("there", Key("here", "b"))
    assert writes.is_awaiting("other", Key("here", "c"))


class _Pods:
    """An informer whose cache and position the test sets."""

    def __init__(self, *pods: Pod, position: str = "1") -> None:
        self.position = position
        self.pods = pods
        self.cache = self

    def list(self) -> tuple[Pod, ...]:
        return self.pods

    def get(self, name: str, namespace: str) -> Pod | None:
        return next(
            (pod for pod in self.pods if (pod.metadata.name, pod.metadata.namespace) == (name, namespace)), None
        )


def _cache(informer: _Pods) -> MutationCache[Any]:
    given: Any = informer
    return MutationCache(given)


def test_own_writes_are_read_on_top_of_the_cache_until_it_shows_them():
    informer = _Pods(_pod("a", "1"))
    cache = _cache(informer)
    cache.record_write(_pod("a", "2"))
    cache.record_write(_pod("b", "3"))
    assert cache.list() == (_pod("a", "2"), _pod("b", "3"))
    assert (cache.get("a", "here"), cache.get("b", "here")) == (_pod("a", "2"), _pod("b", "3"))
    informer.pods, informer.position = (_pod("a", "4"),), "4"
    assert cache.list() == (_pod("a", "4"),)
    assert (cache.get("a", "here"), cache.get("b", "here")) == (_pod("a", "4"), None)
    assert len(cache) == 0


def test_a_newer_version_of_another_writer_replaces_an_own_write():
    cache = _cache(_Pods(_pod("a", "9"), position="9"))
    cache.record_write(_pod("a", "7"))
    assert cache.get_newest(_pod("a", "9")) == _pod("a", "9")
    assert cache.get("a", "here") == _pod("a", "9")


def test_a_removed_object_is_not_read_while_the_cache_still_shows_it():
    informer = _Pods(_pod("a", "1"))
    cache = _cache(informer)
    cache.record_deletion(_pod("a", "1"))
    assert cache.list() == ()
    assert cache.get("a", "here") is None


def test_writes_to_objects_that_are_deleted_do_not_accumulate():
    informer = _Pods()
    cache = _cache(informer)
    for number in range(1000):
        informer.position = str(number)
        cache.record_write(_pod(f"pod-{number}", str(number + 1)))
    assert len(cache._written) <= 65


def test_a_write_that_is_answered_after_its_object_is_deleted_is_not_read():
    cache = _cache(_Pods(position="9"))
    cache.record_write(_pod("a", "7"))
    assert cache.get("a", "here") is None
    assert len(cache) == 0


def test_the_delivery_of_an_own_write_is_recognized_once():
    cache = _cache(_Pods())
    cache.record_write(_pod("a", "7"))
    assert cache.is_own_write(_pod("a", "7"))
    assert not cache.is_own_write(_pod("a", "7"))


def test_the_write_of_another_is_delivered_as_such_also_over_an_own_write():
    cache = _cache(_Pods())
    assert not cache.is_own_write(_pod("a", "6"))
    cache.record_write(_pod("a", "7"))
    assert not cache.is_own_write(_pod("a", "8"))


def test_only_the_last_of_several_own_writes_is_recognized_and_none_after_a_removal():
    cache = _cache(_Pods())
    cache.record_write(_pod("a", "7"))
    cache.record_write(_pod("a", "8"))
    assert [cache.is_own_write(_pod("a", version)) for version in "78"] == [False, True]
    cache.record_write(_pod("a", "9"))
    cache.record_deletion(_pod("a", "9"))
    assert not cache.is_own_write(_pod("a", "9"))


def test_versions_that_are_no_numbers_are_distinguished_by_what_a_write_replaced():
    mutations: Mutations[Pod] = Mutations()
    mutations.record_write(_pod("a", "y"), replaced="x")
    assert mutations.overlay([_pod("a", "x")]) == (_pod("a", "y"),)
    assert mutations.get_newest(_pod("a", "y")) == _pod("a", "y")
    assert mutations.overlay([_pod("a", "x")]) == (_pod("a", "y"),)
    assert mutations.overlay([_pod("a", "z")]) == (_pod("a", "z"),)
    assert mutations.overlay([_pod("a", "x")]) == (_pod("a", "x"),)


def test_writes_to_objects_that_are_not_listed_are_forgotten():
    mutations: Mutations[Pod] = Mutations()
    mutations.record_write(_pod("a", "2"), replaced="1")
    assert mutations.overlay([]) == ()
    assert mutations.get_newest(_pod("a", "1")) == _pod("a", "1")
