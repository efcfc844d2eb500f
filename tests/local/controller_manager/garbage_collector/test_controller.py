"""Objects go with their owners: the rule over random graphs, and the collector on objects of all kinds."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.controller_manager.garbage_collector.decisions import DeleteObject, OwnerState, RemoveOwners, plan
from plimsoll.local.controller_manager.services import build_garbage_collector_services
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
RS = "/apis/apps/v1/namespaces/default/replicasets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/ex.com/v1/namespaces/default/widgets"

graphs = st.integers(1, 9).flatmap(
    lambda size: st.lists(st.frozensets(st.integers(0, size + 2), max_size=3), min_size=size, max_size=size)
)


@settings(max_examples=200, deadline=None)
@given(graphs)
def test_exactly_the_objects_without_an_owner_that_stays_are_deleted(owners: list[frozenset[int]]):
    """Numbers beyond the last object are owners that never were. A ring of owners holds itself, as in Kubernetes."""
    objects = {
        str(number): ObjectMeta(
            uid=str(number), owner_references=tuple(OwnerReference(uid=str(item)) for item in sorted(named))
        )
        for number, named in enumerate(owners)
    }
    stays = {str(number) for number in range(len(owners))}
    while True:
        lost = {stay for stay in stays if owners[int(stay)] and not ({str(o) for o in owners[int(stay)]} & stays)}
        if not lost:
            break
        stays -= lost

    while True:
        changed = False
        for uid, item in list(objects.items()):
            states = [
                OwnerState.SOLID if owner.uid in objects else OwnerState.ABSENT for owner in item.owner_references
            ]
            match plan(item, states, ()):
                case DeleteObject():
                    del objects[uid]
                    changed = True
                case RemoveOwners(left=left):
                    objects[uid] = ObjectMeta(uid=uid, owner_references=left)
                    changed = True
        if not changed:
            break

    assert set(objects) == stays
    for uid, item in objects.items():
        assert {owner.uid for owner in item.owner_references} == {str(item) for item in owners[int(uid)]} & set(objects)


class GarbageCollectorCluster(LocalClusterHarness):
    def __init__(self, **more: Any) -> None:
        super().__init__(build_garbage_collector_services, **more)

    def thing(self, name: str, *owners: dict[str, Any], base: str = CONFIG_MAPS, **more: Any) -> dict[str, Any]:
        """A config map with owners, given as reference to be named by others."""
        made = self.made(base, {"metadata": {"name": name, "ownerReferences": list(owners)}, **more})
        kind, version = made["kind"], made["apiVersion"]
        self.run.settle()
        return {"apiVersion": version, "kind": kind, "name": name, "uid": made["metadata"]["uid"]}

    def delete(self, name: str, policy: str = "Background", *, base: str = CONFIG_MAPS) -> None:
        assert self.ask("DELETE", f"{base}/{name}?propagationPolicy={policy}").status == 200
        self.run.settle()

    def names(self, base: str = CONFIG_MAPS) -> list[str]:
        return [item["metadata"]["name"] for item in self.ask("GET", base).body["items"]]

    def widgets(self) -> None:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
        spec = {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        self.made(CRDS, {**kind, "metadata": {"name": "widgets.ex.com"}, "spec": spec})
        self.run.advance_by(1)


def blocking(owner: dict[str, Any]) -> dict[str, Any]:
    return {**owner, "blockOwnerDeletion": True, "controller": True}


def test_dependents_and_their_dependents_go_after_the_owner():
    with GarbageCollectorCluster() as world:
        owner = world.thing("owner")
        child = world.thing("child", owner)
        world.thing("grandchild", child)
        world.thing("stranger")
        world.delete("owner")
        assert world.names() == ["stranger"]


def test_an_object_with_another_owner_stays_and_forgets_the_one_that_went():
    with GarbageCollectorCluster() as world:
        one, other = world.thing("one"), world.thing("other")
        world.thing("child", one, other)
        world.delete("one")
        child = world.ask("GET", f"{CONFIG_MAPS}/child").body
        assert [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["other"]


def test_an_object_of_an_owner_that_never_was_goes():
    with GarbageCollectorCluster() as world:
        world.thing("dangling", {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "none"})
        assert world.names() == []


def test_an_owner_of_the_same_name_but_another_uid_does_not_count():
    with GarbageCollectorCluster() as world:
        owner = world.thing("owner")
        world.thing("child", {**owner, "uid": "another"})
        assert world.names() == ["owner"]


def test_an_owner_of_an_unknown_kind_keeps_its_objects():
    with GarbageCollectorCluster() as world:
        world.thing("child", {"apiVersion": "nobody.io/v1", "kind": "Unknown", "name": "x", "uid": "x"})
        assert world.names() == ["child"]


def test_orphaned_dependents_stay_and_forget_their_owner():
    with GarbageCollectorCluster() as world:
        world.thing("child", world.thing("owner"))
        world.delete("owner", "Orphan")
        assert world.names() == ["child"]
        assert "ownerReferences" not in world.ask("GET", f"{CONFIG_MAPS}/child").body["metadata"]


def test_in_the_foreground_the_owner_waits_for_dependents_that_block():
    with GarbageCollectorCluster() as world:
        owner = world.thing("owner")
        world.thing("child", blocking(owner))
        held = {"metadata": {"finalizers": ["ex.com/slow"]}}
        world.ask("PATCH", f"{CONFIG_MAPS}/child", held, content=MERGE)
        world.delete("owner", "Foreground")
        assert world.names() == ["child", "owner"]
        assert "deletionTimestamp" in world.ask("GET", f"{CONFIG_MAPS}/child").body["metadata"]
        world.ask("PATCH", f"{CONFIG_MAPS}/child", {"metadata": {"finalizers": None}}, content=MERGE)
        world.run.settle()
        assert world.names() == []


def test_in_the_foreground_the_owner_does_not_wait_for_others():
    with GarbageCollectorCluster() as world:
        owner = world.thing("owner")
        world.thing("child", owner)
        held = {"metadata": {"finalizers": ["ex.com/slow"]}}
        world.ask("PATCH", f"{CONFIG_MAPS}/child", held, content=MERGE)
        world.delete("owner", "Foreground")
        assert world.names() == ["child"]


def test_in_the_foreground_deletion_goes_down_to_the_last():
    with GarbageCollectorCluster() as world:
        owner = world.thing("owner")
        child = world.thing("child", blocking(owner))
        world.thing("grandchild", blocking(child))
        world.delete("owner", "Foreground")
        assert world.names() == []


def test_custom_objects_own_and_are_owned():
    with GarbageCollectorCluster() as world:
        world.widgets()
        kind = {"apiVersion": "ex.com/v1", "kind": "Widget"}
        widget = world.thing("w", world.thing("owner"), base=WIDGETS, **kind)
        world.thing("child", widget)
        world.delete("owner")
        world.run.advance_by(1)
        assert world.names(WIDGETS) == []
        assert world.names() == []


def test_objects_of_a_node_go_with_it():
    with GarbageCollectorCluster() as world:
        node = world.thing("n", base="/api/v1/nodes")
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        world.made(leases, {"metadata": {"name": "n", "ownerReferences": [node]}, "spec": {}})
        world.run.settle()
        world.delete("n", base="/api/v1/nodes")
        assert world.names(leases) == []


def test_what_went_while_no_collector_ran_is_collected_afterwards():
    with GarbageCollectorCluster() as world:
        owner = world.thing("owner")
        world.thing("child", owner)
        world.kill()
        world.delete("owner")
        assert world.names() == ["child"]
        world.start()
        assert world.names() == []
