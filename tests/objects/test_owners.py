from __future__ import annotations

from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.owners import find_controller


def test_the_controller_is_the_owner_that_manages_the_object():
    config = OwnerReference(api_version="v1", kind="Kind", name="config")
    replica_set = OwnerReference(api_version="v1", kind="Kind", name="set", controller=True)
    assert find_controller(ObjectMeta(owner_references=(config, replica_set))) == replica_set
    assert find_controller(ObjectMeta(owner_references=(config,))) is None
    assert find_controller(ObjectMeta()) is None
