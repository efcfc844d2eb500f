"""A follower of a cache reads only the keys that changed since its last read."""

from __future__ import annotations

from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.kube.informer.store.changed_keys import ChangedKeys
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.codec.decode_problems import BadObject
from tests.narrowing import present


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(namespace="default", name=name, uid=name))


def changed_keys(trail: ChangedKeys) -> list[tuple[str, str]]:
    """The keys that changed; the follower must not have lost count."""
    return list(present(trail.changed))


def test_a_follower_first_looks_everywhere_then_where_something_was_put_removed_or_went_bad():
    cache: WritableCache[Pod] = WritableCache()
    cache.put(("default", "old"), pod("old"))
    trail = cache.track_changes()
    assert trail.changed is None

    trail.clear()
    assert changed_keys(trail) == []
    cache.put(("default", "new"), pod("new"))
    cache.put(("default", "new"), pod("new"))
    cache.remove(("default", "old"))
    cache.put(("default", "odd"), BadObject(kind="Pod", namespace="default", name="odd", problem="odd"))
    assert changed_keys(trail) == [("default", "new"), ("default", "old"), ("default", "odd")]


def test_followers_do_not_wait_for_each_other():
    cache: WritableCache[Pod] = WritableCache()
    one, other = cache.track_changes(), cache.track_changes()
    one.clear()
    other.clear()
    cache.put(("default", "p"), pod("p"))
    one.clear()
    assert (len(changed_keys(one)), len(changed_keys(other))) == (0, 1)


def test_an_unread_trail_stays_small_and_then_everything_is_looked_at():
    trail = ChangedKeys(most=2)
    trail.clear()
    for name in "abc":
        trail.add(("default", name))
    assert trail.changed is None
    trail.clear()
    trail.add(("default", "d"))
    assert changed_keys(trail) == [("default", "d")]
