from __future__ import annotations

import pytest

from plimsoll.local.apiserver.storage import Key, Put, TooLarge
from plimsoll.local.apiserver.storage.objects import LARGEST_OBJECT_BYTES
from tests.local.apiserver.builders import MERGE, ApiServerHarness, config_map

MAPS = "/api/v1/namespaces/here/configmaps"
KEY = Key("configmaps", "here", "a")
# One byte of a value, two of JSON: a config map of less than 1 MiB that is more than etcd takes.
TOO_MUCH = '"' * 900_000


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        made.namespace()
        yield made


def test_the_limit_is_etcds(world: ApiServerHarness):
    assert LARGEST_OBJECT_BYTES == 1.5 * 1024 * 1024
    store = world.server.store

    def padded(size: int) -> Put:
        empty = len(f'{{"metadata":{{"resourceVersion":"{store.revision + 1}"}},"pad":""}}')
        return Put({"metadata": {}, "pad": "x" * (size - empty)})

    stored = world.run.run_until(store.update(KEY, lambda _current: padded(LARGEST_OBJECT_BYTES)))
    assert stored is not None
    assert len(stored.data) == LARGEST_OBJECT_BYTES
    with pytest.raises(TooLarge):
        world.run.run_until(store.update(KEY, lambda _current: padded(LARGEST_OBJECT_BYTES + 1)))
    assert store.get(KEY) is stored


def test_an_object_that_is_too_large_is_refused_in_etcds_words(world: ApiServerHarness):
    reply = world.ask("POST", MAPS, config_map("a", data={"k": TOO_MUCH}))
    assert reply.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "etcdserver: request is too large",
        "code": 500,
    }
    assert world.ask("GET", f"{MAPS}/a").status == 404


def test_an_object_does_not_grow_too_large_either(world: ApiServerHarness):
    world.made(MAPS, config_map("a"))
    assert world.ask("PATCH", f"{MAPS}/a", {"data": {"k": TOO_MUCH}}, content=MERGE).status == 500
    assert world.ask("PATCH", f"{MAPS}/a", {"data": {"k": "v"}}, content=MERGE).status == 200


def test_it_is_not_charged_to_a_quota(world: ApiServerHarness):
    world.made(
        "/api/v1/namespaces/here/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "1"}}}
    )
    assert world.ask("POST", MAPS, config_map("a", data={"k": TOO_MUCH})).status == 500
    world.made(MAPS, config_map("b"))
