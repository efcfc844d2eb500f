"""Get, list, create, patch and delete over real sockets, on whatever cluster there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.kube.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from plimsoll.kube.requests.options import DeleteOptions, Selection
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import Deployment
from tests.e2e.kube.clusters import exists, until
from tests.e2e.kube.pods_and_maps import config_map, make_maps, pod

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

pytestmark = pytest.mark.asyncio


async def test_what_is_created_can_be_got(client: Client, namespace: str):
    made = await client.create(ConfigMap, config_map("settings", colour="red"), namespace=namespace)
    got = await client.get(ConfigMap, "settings", namespace=namespace)
    assert got.data == {"colour": "red"}
    assert (got.metadata.uid, got.metadata.resource_version) == (made.metadata.uid, made.metadata.resource_version)


async def test_the_bytes_of_an_object_hold_what_the_struct_does_not_show(client: Client, namespace: str):
    await client.create(ConfigMap, config_map("settings", colour="red"), namespace=namespace)
    found = await client.get_with_raw(ConfigMap, "settings", namespace=namespace)
    raw = msgspec.json.decode(found.raw)
    assert raw["metadata"]["uid"] == found.view.metadata.uid
    assert raw["metadata"]["managedFields"][0]["manager"] == "plimsoll-e2e"


async def test_a_generated_name_is_completed_by_the_server(client: Client, namespace: str):
    made = await client.create(ConfigMap, {"metadata": {"generateName": "settings-"}}, namespace=namespace)
    assert made.metadata.name.startswith("settings-")
    assert len(made.metadata.name) == len("settings-") + 5


async def test_pages_together_are_the_whole_list(client: Client, namespace: str):
    await make_maps(client, namespace, [f"map-{number}" for number in range(7)])
    selected = Selection(namespace=namespace, labels="made-by=e2e", page_size=3)
    pages = [page async for page in client.iterate_pages(ConfigMap, selected)]
    whole = await client.list(ConfigMap, selected.without_paging())
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert [item for page in pages for item in page.items] == list(whole.items)
    assert len({page.metadata.resource_version for page in pages}) == 1


async def test_a_list_of_small_pages_is_the_list_of_one_page(client: Client, namespace: str):
    await make_maps(client, namespace, [f"map-{number}" for number in range(5)])
    selected = Selection(namespace=namespace, labels="made-by=e2e", page_size=2)
    small, large = await client.list(ConfigMap, selected), await client.list(ConfigMap, selected.without_paging())
    assert len(small.items) == 5
    assert small.items == large.items


async def test_selectors_narrow_a_list(client: Client, namespace: str):
    await make_maps(client, namespace, ["one", "two"])
    by_label = await client.list(ConfigMap, Selection(namespace=namespace, labels="made-by in (e2e)"))
    by_field = await client.list(ConfigMap, Selection(namespace=namespace, fields="metadata.name=two"))
    assert [item.metadata.name for item in by_label.items] == ["one", "two"]
    assert [item.metadata.name for item in by_field.items] == ["two"]


async def test_a_deletion_may_name_the_very_object(client: Client, namespace: str):
    made = await client.create(ConfigMap, config_map("settings"), namespace=namespace)
    other = DeleteOptions(uid="00000000-0000-4000-8000-000000000000")
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "settings", namespace=namespace, options=other)
    assert await exists(client, ConfigMap, "settings", namespace=namespace)
    await client.delete(ConfigMap, "settings", namespace=namespace, options=DeleteOptions(uid=made.metadata.uid))
    assert not await exists(client, ConfigMap, "settings", namespace=namespace)


async def test_a_deletion_may_name_a_version(client: Client, namespace: str):
    made = await client.create(ConfigMap, config_map("settings"), namespace=namespace)
    await client.merge_patch(ConfigMap, "settings", {"data": {"a": "b"}}, namespace=namespace)
    stale = DeleteOptions(uid=made.metadata.uid, resource_version=made.metadata.resource_version)
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "settings", namespace=namespace, options=stale)


# ---- patches


async def test_a_merge_patch_merges_and_null_removes(client: Client, namespace: str):
    await client.create(ConfigMap, config_map("settings", old="1", kept="2"), namespace=namespace)
    patch = {"data": {"old": None, "new": "3"}}
    patched = await client.merge_patch(ConfigMap, "settings", patch, namespace=namespace)
    assert patched.data == {"kept": "2", "new": "3"}


async def test_a_merge_patch_that_names_an_old_version_conflicts(client: Client, namespace: str):
    made = await client.create(ConfigMap, config_map("settings"), namespace=namespace)
    patch = {"metadata": {"resourceVersion": made.metadata.resource_version}, "data": {"a": "b"}}
    await client.merge_patch(ConfigMap, "settings", patch, namespace=namespace)
    with pytest.raises(Conflict):
        await client.merge_patch(ConfigMap, "settings", {**patch, "data": {"a": "c"}}, namespace=namespace)


async def test_a_json_patch_changes_only_what_passes_its_test(client: Client, namespace: str):
    await client.create(ConfigMap, config_map("settings", colour="red"), namespace=namespace)

    def painting(before: str, after: str) -> list[dict[str, Any]]:
        return [
            {"op": "test", "path": "/data/colour", "value": before},
            {"op": "replace", "path": "/data/colour", "value": after},
        ]

    painted = await client.patch_json(ConfigMap, "settings", painting("red", "blue"), namespace=namespace)
    assert painted.data == {"colour": "blue"}
    with pytest.raises(Invalid):
        await client.patch_json(ConfigMap, "settings", painting("red", "green"), namespace=namespace)


async def test_applying_what_another_manager_owns_conflicts_until_it_is_forced(client: Client, namespace: str):
    first = await client.apply(
        ConfigMap, "settings", {"data": {"colour": "red"}}, namespace=namespace, field_manager="one"
    )
    assert first.data == {"colour": "red"}
    wanted = {"data": {"colour": "blue"}}
    with pytest.raises(Conflict) as refused:
        await client.apply(ConfigMap, "settings", wanted, namespace=namespace, field_manager="other")
    assert [cause.field for cause in refused.value.causes] == [".data.colour"]
    taken = await client.apply(ConfigMap, "settings", wanted, namespace=namespace, field_manager="other", force=True)
    assert taken.data == {"colour": "blue"}


async def test_what_a_manager_no_longer_applies_goes(client: Client, namespace: str):
    both = {"data": {"colour": "red", "size": "large"}}
    await client.apply(ConfigMap, "settings", both, namespace=namespace)
    left = await client.apply(ConfigMap, "settings", {"data": {"size": "large"}}, namespace=namespace)
    assert left.data == {"size": "large"}


# ---- trying and validating


async def test_a_dry_run_answers_and_stores_nothing(client: Client, namespace: str):
    tried = await client.create(ConfigMap, config_map("settings"), namespace=namespace, dry_run=True)
    assert tried.metadata.uid
    assert not await exists(client, ConfigMap, "settings", namespace=namespace)
    await client.create(ConfigMap, config_map("settings"), namespace=namespace)
    await client.delete(ConfigMap, "settings", namespace=namespace, options=DeleteOptions(is_dry_run=True))
    assert await exists(client, ConfigMap, "settings", namespace=namespace)


async def test_strict_validation_refuses_a_field_that_the_kind_does_not_have(client: Client, namespace: str):
    odd = {**config_map("settings"), "colour": "red"}
    with pytest.raises(BadRequest, match=r'unknown field "colour"'):
        await client.create(ConfigMap, odd, namespace=namespace, field_validation="Strict")
    made = await client.create(ConfigMap, odd, namespace=namespace, field_validation="Ignore")
    assert made.metadata.name == "settings"


async def test_the_status_of_a_pod_is_written_apart_from_its_spec(client: Client, namespace: str):
    await client.create(Pod, pod("one"), namespace=namespace)
    patch = {"spec": {"priority": 7}, "status": {"phase": "Running", "message": "by hand"}}
    patched = await client.merge_patch(Pod, "one", patch, namespace=namespace, subresource="status")
    assert patched.status.phase == "Running"
    assert patched.spec.priority != 7


# ---- scale


async def test_a_deployment_is_scaled_by_its_part(client: Client, namespace: str):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod("ignored")["spec"]}
    body = {
        "metadata": {"name": "web"},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
    await client.create(Deployment, body, namespace=namespace)
    before = await client.get_scale(Deployment, "web", namespace=namespace)
    scaled = await client.scale(Deployment, "web", 2, namespace=namespace)
    assert (before.spec.replicas, scaled.spec.replicas) == (0, 2)
    assert scaled.status.selector == "app=web"
    got = await client.get(Deployment, "web", namespace=namespace)
    assert got.spec.replicas == 2
    with pytest.raises(Conflict):
        await client.scale(Deployment, "web", 3, namespace=namespace, resource_version=before.metadata.resource_version)


# ---- errors


async def test_what_is_not_there_is_not_found(client: Client, namespace: str):
    with pytest.raises(NotFound) as refused:
        await client.get(ConfigMap, "nobody", namespace=namespace)
    assert (refused.value.status.details.name, refused.value.status.details.kind) == ("nobody", "configmaps")
    assert refused.value.reason == "NotFound"


async def test_a_name_that_is_taken_already_exists(client: Client, namespace: str):
    await client.create(ConfigMap, config_map("settings"), namespace=namespace)
    with pytest.raises(AlreadyExists):
        await client.create(ConfigMap, config_map("settings"), namespace=namespace)


async def test_an_invalid_object_is_refused_by_field(client: Client, namespace: str):
    with pytest.raises(Invalid) as refused:
        await client.create(ConfigMap, config_map("No Name"), namespace=namespace)
    assert [cause.field for cause in refused.value.causes] == ["metadata.name"]


async def test_a_pod_that_is_deleted_goes(client: Client, namespace: str):
    await client.create(Pod, pod("one"), namespace=namespace)
    await client.delete(Pod, "one", namespace=namespace)

    async def is_gone() -> bool:
        return not await exists(client, Pod, "one", namespace=namespace)

    await until(is_gone)
