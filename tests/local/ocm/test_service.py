"""The simulated OCM from outside: states on the clock, pools, add-ons, limits, deletion, tokens and pages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.ocm.application import TOKEN_PATH
from plimsoll.local.ocm.documents import BASE
from plimsoll.local.ocm.settings import OcmSettings
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response
from tests.local.ocm.ocm_world import STANDARD, build_cluster, play

if TYPE_CHECKING:
    from tests.local.ocm.ocm_world import OcmWorld


def test_a_cluster_becomes_ready_by_the_clock():
    async def story(world: OcmWorld) -> None:
        cluster_id = await world.create()
        seen = []
        for _ in range(12):
            seen.append(await world.get_state(cluster_id))
            await world.clock.sleep(61)
        assert list(dict.fromkeys(seen)) == ["pending", "installing", "ready"]
        answer = await world.call("GET", f"{BASE}/clusters/{cluster_id}")
        assert answer.document["nodes"]["availability_zones"] == ["us-east-1a", "us-east-1b", "us-east-1c"]
        ingresses = await world.call("GET", f"{BASE}/clusters/{cluster_id}/ingresses")
        assert [item["dns_name"] for item in ingresses.document["items"]] == ["apps.mk-1.fleet.example.com"]

    play(story)


def test_a_deletion_takes_time_and_ends_with_404():
    async def story(world: OcmWorld) -> None:
        cluster_id = await world.create_ready()
        for _ in range(2):
            assert (await world.call("DELETE", f"{BASE}/clusters/{cluster_id}")).status == 204
            assert await world.get_state(cluster_id) == "uninstalling"
        await world.clock.sleep(121)
        gone = await world.call("DELETE", f"{BASE}/clusters/{cluster_id}")
        assert (gone.status, gone.document["kind"], gone.document["id"]) == (404, "Error", "404")

    play(story)


def test_a_cluster_that_is_still_installed_can_be_deleted():
    async def story(world: OcmWorld) -> None:
        cluster_id = await world.create()
        await world.clock.sleep(100)
        await world.call("DELETE", f"{BASE}/clusters/{cluster_id}")
        await world.clock.sleep(121)
        assert await world.get_state(cluster_id) == "gone"

    play(story)


def test_a_forced_error_is_shown_with_its_reason():
    async def story(world: OcmWorld) -> None:
        world.ocm.clusters.fail_creations(message="no quota")
        first, second = await world.create("mk-1"), await world.create("mk-2")
        await world.clock.sleep(661)
        answer = await world.call("GET", f"{BASE}/clusters/{first}")
        assert answer.document["status"]["provision_error_message"] == "no quota"
        assert [await world.get_state(cluster_id) for cluster_id in (first, second)] == ["error", "ready"]

    play(story)


def test_a_pool_keeps_its_label_and_taint_and_is_bounded_by_zones_and_workers():
    async def story(world: OcmWorld) -> None:
        pools = f"{BASE}/clusters/{await world.create_ready()}/machine_pools"
        assert (await world.call("GET", f"{pools}/kafka-standard")).status == 404
        created = await world.call("POST", pools, STANDARD)
        assert created.status == 201
        read = await world.call("GET", f"{pools}/kafka-standard")
        assert read.document == created.document
        assert read.document["labels"] == STANDARD["labels"]
        assert read.document["taints"] == STANDARD["taints"]
        assert len(read.document["availability_zones"]) == 3
        assert (await world.call("POST", pools, STANDARD)).status == 409
        patch = {"autoscaling": {"min_replicas": 3, "max_replicas": 17}}
        assert (await world.call("PATCH", f"{pools}/kafka-standard", patch)).status == 400
        patch = {"autoscaling": {"min_replicas": 3, "max_replicas": 165}}
        refused = await world.call("PATCH", f"{pools}/kafka-standard", patch)
        assert (refused.status, "183 workers" in refused.document["reason"]) == (400, True)
        patch = {"autoscaling": {"min_replicas": 3, "max_replicas": 162}}
        assert (await world.call("PATCH", f"{pools}/kafka-standard", patch)).status == 200

    play(story)


def test_an_addon_is_installing_and_then_ready_and_updated_only_then():
    async def story(world: OcmWorld) -> None:
        addons = f"{BASE}/clusters/{await world.create_ready()}/addons"
        body = {"addon": {"id": "managed-kafka"}, "parameters": {"items": [{"id": "a", "value": "1"}]}}
        assert (await world.call("POST", addons, body)).document["state"] == "installing"
        assert (await world.call("PATCH", f"{addons}/managed-kafka", body)).status == 409
        await world.clock.sleep(121)
        assert (await world.call("GET", f"{addons}/managed-kafka")).document["state"] == "ready"
        change = {"parameters": {"items": [{"id": "b", "value": "2"}]}}
        changed = await world.call("PATCH", f"{addons}/managed-kafka", change)
        assert [item["id"] for item in changed.document["parameters"]["items"]] == ["a", "b"]

    play(story)


def test_sync_sets_keep_the_order_of_their_resources():
    async def story(world: OcmWorld) -> None:
        sets = f"{BASE}/clusters/{await world.create_ready()}/external_configuration/syncsets"
        resources = [{"kind": "Namespace"}, {"kind": "Secret"}]
        assert (await world.call("POST", sets, {"id": "ours", "resources": resources})).status == 201
        patch = {"resources": resources[::-1]}
        assert (await world.call("PATCH", f"{sets}/ours", patch)).status == 200
        assert (await world.call("GET", f"{sets}/ours")).document["resources"] == resources[::-1]
        assert (await world.call("DELETE", f"{sets}/ours")).status == 204
        assert (await world.call("DELETE", f"{sets}/ours")).status == 404

    play(story)


def test_an_identity_provider_is_made_once():
    async def story(world: OcmWorld) -> None:
        providers = f"{BASE}/clusters/{await world.create_ready()}/identity_providers"
        body = {"type": "OpenIDIdentityProvider", "name": "Kafka_SRE", "open_id": {"client_id": "x"}}
        assert (await world.call("POST", providers, body)).status == 201
        again = await world.call("POST", providers, body)
        assert "already exists" in again.document["reason"]
        assert [item["name"] for item in (await world.call("GET", providers)).document["items"]] == ["Kafka_SRE"]

    play(story)


def test_lists_are_searched_and_cut_into_pages():
    async def story(world: OcmWorld) -> None:
        for name in ("mk-1", "mk-2", "other", "mk-3"):
            await world.create(name)
            await world.clock.sleep(1)
        query = "search=name%20like%20'mk-%25'&size=2"
        pages = [await world.call("GET", f"{BASE}/clusters?{query}&page={page}") for page in (1, 2, 3)]
        assert [[item["name"] for item in page.document["items"]] for page in pages] == [["mk-1", "mk-2"], ["mk-3"], []]
        assert pages[0].document["total"] == 3
        exact = await world.call("GET", f"{BASE}/clusters?search=name%20%3D%20'other'")
        assert [item["name"] for item in exact.document["items"]] == ["other"]
        assert (await world.call("GET", f"{BASE}/clusters?search=drop")).status == 400

    play(story)


def test_the_name_of_a_live_cluster_is_taken():
    async def story(world: OcmWorld) -> None:
        await world.create()
        again = await world.call("POST", f"{BASE}/clusters", build_cluster())
        assert (again.status, "already exists" in again.document["reason"]) == (400, True)

    play(story)


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        build_cluster("Not a name"),
        build_cluster(nodes={"compute_machine_type": {"id": "m"}}),
        build_cluster(
            nodes={
                "compute_machine_type": {"id": "m"},
                "autoscale_compute": {"min_replicas": 3, "max_replicas": 2},
            }
        ),
    ],
    ids=["list", "empty", "name", "bounds missing", "bounds"],
)
def test_a_bad_body_is_refused(body: Any):
    async def story(world: OcmWorld) -> None:
        answer = await world.call("POST", f"{BASE}/clusters", body)
        assert (answer.status, answer.document["kind"]) == (400, "Error")
        assert world.ocm.clusters.list_clusters() == ()

    play(story)


def test_calls_need_a_token_that_ends():
    async def story(world: OcmWorld) -> None:
        assert (await world.call("GET", f"{BASE}/clusters")).status == 401
        form = b"grant_type=client_credentials&client_id=fleet&client_secret="
        tokens = [await post_form(world, form + secret) for secret in (b"wrong", b"secret")]
        assert [token is None for token in tokens] == [True, False]
        assert (await world.call("GET", f"{BASE}/clusters", token=str(tokens[1]))).status == 200
        await world.clock.sleep(301)
        assert (await world.call("GET", f"{BASE}/clusters", token=str(tokens[1]))).status == 401

    play(story, settings=OcmSettings(client_id="fleet", client_secret="secret"))


async def post_form(world: OcmWorld, form: bytes) -> str | None:
    answer = await call_application(world.ocm.application, "POST", TOKEN_PATH, body=form)
    assert isinstance(answer, Response)
    token: str | None = json.loads(answer.body).get("access_token")
    return token


def test_everything_received_is_kept_without_keys_of_clouds():
    async def story(world: OcmWorld) -> None:
        await world.create(aws={"secret_access_key": "hidden"})
        (received,) = world.ocm.list_calls("clusters.create")
        assert (received.method, received.path, received.status) == ("POST", f"{BASE}/clusters", 201)
        assert received.body["nodes"]["autoscale_compute"]["max_replicas"] == 18
        assert "hidden" not in repr(world.ocm.list_calls())

    play(story)
