from __future__ import annotations

import asyncio

from plimsoll.local.apiserver.authorization import RbacAuthorizer
from plimsoll.local.apiserver.storage import Delete, Key, MemoryDriver, Put, Store
from tests.local.apiserver.authorization.builders import BOB, GROUP, binding, role, rule, wish
from tests.local.apiserver.storage.builders import StoppedClock

ROLE = Key(f"{GROUP}/roles", "default", "r")
BINDING = Key(f"{GROUP}/rolebindings", "default", "b")


def test_every_write_of_a_role_or_binding_counts_at_once_and_other_writes_change_nothing():
    async def story() -> list[bool]:
        store = Store.open(MemoryDriver(), clock=StoppedClock())
        authorizer = RbacAuthorizer.build(store)
        answers = []

        async def after(key: Key, decision: Put | Delete) -> None:
            await store.update(key, lambda _current: decision)
            answers.append(authorizer.decide(wish(BOB, "get", "pods", namespace="default")).allowed)

        await after(ROLE, Put(role("r", rule("get", "pods"))))
        await after(BINDING, Put(binding("b", "Role/r", "User bob")))
        await after(Key("pods", "default", "p"), Put({"metadata": {"name": "p", "namespace": "default"}}))
        await after(ROLE, Put(role("r", rule("list", "pods"))))
        await after(ROLE, Put(role("r", rule("get", "pods"))))
        await after(BINDING, Delete())
        await after(BINDING, Put(binding("b", "Role/r", "User bob")))
        await after(ROLE, Delete())
        await store.aclose()
        return answers

    assert asyncio.run(story()) == [False, True, True, False, True, False, True, False]


def test_nothing_is_read_again_while_the_store_stands_still():
    async def story() -> None:
        store = Store.open(MemoryDriver(), clock=StoppedClock())
        await store.update(ROLE, lambda _current: Put(role("r", rule("get", "pods"))))
        await store.update(BINDING, lambda _current: Put(binding("b", "Role/r", "User bob")))
        authorizer = RbacAuthorizer.build(store)
        first = authorizer._source.get_current()
        assert authorizer._source.get_current() is first
        await store.update(Key("pods", "default", "p"), lambda _current: Put({"metadata": {"name": "p"}}))
        assert authorizer._source.get_current() is first, "a write elsewhere makes no new policies"
        await store.aclose()

    asyncio.run(story())
