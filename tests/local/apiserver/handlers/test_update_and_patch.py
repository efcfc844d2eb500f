from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.local.apiserver.storage import MemoryDriver, Put
from plimsoll.local.apiserver.storage.drivers.interface import Recovered, Row
from tests.local.apiserver.builders import (
    APPLY,
    JSON,
    JSON_PATCH,
    MERGE,
    STRATEGIC,
    ApiServerHarness,
    config_map,
    deployment,
    pod,
)

if TYPE_CHECKING:
    from plimsoll.local.apiserver.admission import AdmissionAttributes

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
YAML = "application/yaml"
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        yield made


@pytest.fixture
def maps(world: ApiServerHarness) -> str:
    return f"{world.namespace()}/configmaps"


def test_a_put_replaces_and_keeps_the_identity(world: ApiServerHarness, maps: str):
    before = world.made(maps, config_map(data={"x": "1"}))["metadata"]
    reply = world.ask("PUT", f"{maps}/a", config_map(metadata={"creationTimestamp": "2001-01-01T00:00:00Z"}))
    after = reply.body["metadata"]
    assert reply.status == 200
    assert "data" not in reply.body
    assert (after["uid"], after["creationTimestamp"]) == (before["uid"], before["creationTimestamp"])
    assert int(after["resourceVersion"]) > int(before["resourceVersion"])


def test_a_stale_resource_version_is_a_conflict(world: ApiServerHarness, maps: str):
    stale = world.made(maps, config_map())["metadata"]["resourceVersion"]
    world.ask("PUT", f"{maps}/a", config_map(data={"x": "1"}))
    reply = world.ask("PUT", f"{maps}/a", config_map(metadata={"resourceVersion": stale}))
    assert (reply.status, reply.message) == (409, f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}')


@pytest.mark.parametrize("change", ["put", "merge", "apply"])
def test_a_write_that_changes_nothing_keeps_the_resource_version(world: ApiServerHarness, maps: str, change: str):
    apply_url = f"{maps}/a?fieldManager=m&force=true"
    world.ask("PATCH", apply_url, config_map(data={"x": "1"}), content=APPLY)
    before = world.ask("GET", f"{maps}/a").body
    world.run.advance_by(5)
    if change == "put":
        world.ask("PUT", f"{maps}/a", before)
    elif change == "merge":
        world.ask("PATCH", f"{maps}/a", {"data": {"x": "1"}}, content=MERGE)
    else:
        world.ask("PATCH", apply_url, config_map(data={"x": "1"}), content=APPLY)
    assert world.ask("GET", f"{maps}/a").body == before


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (config_map("other"), "the name of the object (other) does not match the name on the URL (a)"),
        ({"metadata": {}}, "the name of the object (a based on URL) was undeterminable: name must be provided"),
        (
            config_map(metadata={"namespace": "there"}),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
)
def test_a_put_is_of_the_object_its_url_names(
    world: ApiServerHarness, maps: str, body: dict[str, object], message: str
):
    world.made(maps, config_map())
    reply = world.ask("PUT", f"{maps}/a", body)
    assert (reply.status, reply.message) == (400, message)


def test_a_put_with_another_uid_means_another_object(world: ApiServerHarness, maps: str):
    world.made(maps, config_map())
    reply = world.ask("PUT", f"{maps}/a", config_map(metadata={"uid": "1"}))
    assert reply.status == 409
    assert "Precondition failed: UID in precondition: 1, UID in object meta:" in reply.message


def test_a_lease_is_created_by_put_and_then_needs_its_version(world: ApiServerHarness):
    world.namespace()
    url = "/apis/coordination.k8s.io/v1/namespaces/here/leases/l"
    body = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "x"}}
    assert world.ask("PUT", url, body).status == 201
    reply = world.ask("PUT", url, {**body, "spec": {"holderIdentity": "y"}})
    assert reply.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in reply.message


def test_times_are_kept_in_utc(world: ApiServerHarness):
    world.namespace()
    url = "/apis/coordination.k8s.io/v1/namespaces/here/leases"
    spec = {"holderIdentity": "x", "renewTime": "2026-01-01T02:00:01.500000+02:00"}
    assert (
        world.made(url, {"metadata": {"name": "l"}, "spec": spec})["spec"]["renewTime"] == "2026-01-01T00:00:01.500000Z"
    )


def test_a_write_in_between_makes_an_unconditional_write_try_again(
    world: ApiServerHarness, maps: str, monkeypatch: pytest.MonkeyPatch
):
    world.made(maps, config_map(data={"x": "0"}))
    store, real = world.server.store, world.server.admission.mutate
    disturbed: list[int] = []

    async def mutate(attempt: AdmissionAttributes) -> Any:
        if not disturbed and attempt.operation == "UPDATE":
            disturbed.append(1)
            other = store.list("configmaps").items[0]
            body = other.decode_body()
            body["data"]["theirs"] = "1"
            await store.update(other.key, lambda _: Put(body))
        return await real(attempt)

    monkeypatch.setattr(world.server.admission, "mutate", mutate)
    reply = world.ask("PATCH", f"{maps}/a", {"data": {"mine": "1"}}, content=MERGE)
    assert reply.body["data"] == {"x": "0", "theirs": "1", "mine": "1"}


# ---- numbers beyond 64 bits

LARGE = ["9223372036854775808", "99999999999999999999", "-99999999999999999999"]
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: NUMBER
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
"""


@pytest.mark.parametrize("number", LARGE)
def test_a_whole_number_beyond_64_bits_is_refused_with_the_path_of_its_field(world: ApiServerHarness, number: str):
    """In JSON, in YAML and in a patch; the number may be rounded in the message."""
    url = world.namespace().replace("/api/v1", "/apis/apps/v1") + "/deployments"
    with_number = json.dumps(yaml.safe_load(DEPLOYMENT)).replace('"NUMBER"', number)
    for body, content in ((DEPLOYMENT.replace("NUMBER", number), YAML), (with_number, JSON)):
        reply = world.ask("POST", url, body.encode(), content=content)
        assert reply.status == 400
        assert "into Go struct field DeploymentSpec.spec.replicas of type int32" in reply.message
    world.made(url, deployment())
    patch = b'{"spec": {"replicas": %s}}' % number.encode()
    merged = world.ask("PATCH", f"{url}/d", patch, content=MERGE)
    assert merged.status == 422
    assert merged.message.endswith("into Go struct field DeploymentSpec.spec.replicas of type int32")
    strategic = world.ask("PATCH", f"{url}/d", patch, content=STRATEGIC)
    assert (strategic.status, strategic.message.rpartition(": ")[2]) == (422, "cannot convert float64 to int32")


class FileWithNumber(MemoryDriver):
    """A store that is found with a number that no request can write in a ConfigMap."""

    def __init__(self, number: str) -> None:
        super().__init__()
        names = '"name": "a", "namespace": "here", "uid": "u", "resourceVersion": "1"'
        metadata = f'{{{names}, "labels": {{"kept": "yes"}}, "generation": NUMBER}}'
        kind = '"kind": "ConfigMap", "apiVersion": "v1"'
        self._data = f'{{{kind}, "metadata": {metadata}, "odd": [NUMBER]}}'.replace("NUMBER", number).encode()

    def recover(self) -> Recovered:
        return Recovered(rows=(Row(1, "configmaps", "here", "a", self._data),), floors={}, revision=1)


@pytest.mark.parametrize(
    ("content", "patch"),
    [
        (MERGE, {"data": {"x": "1"}}),
        (STRATEGIC, {"data": {"x": "1"}}),
        (JSON_PATCH, [{"op": "add", "path": "/data", "value": {"x": "1"}}]),
        (APPLY, config_map(data={"x": "1"})),
    ],
)
@pytest.mark.parametrize("number", ["1e400", "9" * 5000])
def test_a_stored_number_that_no_float_holds_is_unknown_and_stops_no_request(number: str, content: str, patch: Any):
    with ApiServerHarness(driver=FileWithNumber(number)) as world:
        maps = f"{world.namespace()}/configmaps"
        listed = world.ask("GET", f"{maps}?labelSelector=kept%3Dyes", headers={"Accept": TABLE})
        assert (listed.status, listed.body["rows"][0]["cells"][0]) == (200, "a")
        reply = world.ask("PATCH", f"{maps}/a?fieldManager=m", patch, content=content)
        assert reply.status == 200, reply
        assert reply.body["data"] == {"x": "1"}
        assert reply.body["metadata"]["labels"] == {"kept": "yes"}
        assert "generation" not in reply.body["metadata"]
        assert world.ask("DELETE", f"{maps}/a").status == 200


# ---- patches


def test_the_three_plain_formats(world: ApiServerHarness, maps: str):
    world.made(maps, config_map(data={"x": "1", "y": "2"}))
    world.ask("PATCH", f"{maps}/a", {"data": {"x": None, "z": "3"}}, content=MERGE)
    world.ask("PATCH", f"{maps}/a", [{"op": "add", "path": "/data/j", "value": "4"}], content=JSON_PATCH)
    reply = world.ask("PATCH", f"{maps}/a", {"data": {"s": "5"}}, content=STRATEGIC)
    assert reply.body["data"] == {"y": "2", "z": "3", "j": "4", "s": "5"}


@pytest.mark.parametrize(
    ("content", "body", "code"),
    [
        (JSON_PATCH, [{"op": "test", "path": "/data/x", "value": "no"}], 422),
        (JSON_PATCH, {"op": "add"}, 400),
        (MERGE, [1], 400),
        (MERGE, {"data": {"x": 5}}, 422),
        (STRATEGIC, {"data": []}, 422),
        ("application/json", {}, 415),
        ("application/merge-patch+yaml", {}, 415),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(
    world: ApiServerHarness, maps: str, content: str, body: object, code: int
):
    world.made(maps, config_map(data={"x": "1"}))
    assert world.ask("PATCH", f"{maps}/a", body, content=content).status == code


def test_a_patch_cannot_change_the_name(world: ApiServerHarness, maps: str):
    world.made(maps, config_map())
    reply = world.ask("PATCH", f"{maps}/a", {"metadata": {"name": "b"}}, content=MERGE)
    assert (reply.status, reply.message) == (400, "the name of the object (b) does not match the name on the URL (a)")


def test_apply_creates_then_conflicts_and_takes_by_force(world: ApiServerHarness, maps: str):
    first = world.ask("PATCH", f"{maps}/a?fieldManager=one", config_map(data={"x": "1"}), content=APPLY)
    assert first.status == 201
    conflict = world.ask("PATCH", f"{maps}/a?fieldManager=two", config_map(data={"x": "2"}), content=APPLY)
    assert conflict.status == 409
    assert conflict.message == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    forced = world.ask("PATCH", f"{maps}/a?fieldManager=two&force=true", config_map(data={"x": "2"}), content=APPLY)
    assert (forced.status, forced.body["data"]) == (200, {"x": "2"})


def test_apply_needs_a_manager_and_others_no_force(world: ApiServerHarness, maps: str):
    reply = world.ask("PATCH", f"{maps}/a", config_map(), content=APPLY)
    assert "fieldManager: Required value: is required for apply patch" in reply.message
    reply = world.ask("PATCH", f"{maps}/a?force=true", {}, content=MERGE)
    assert "force: Forbidden: may not be specified for non-apply patch" in reply.message


# ---- status and generation


def test_the_main_resource_leaves_the_status_alone_and_counts_the_spec(world: ApiServerHarness):
    world.namespace()
    url = "/apis/apps/v1/namespaces/here/deployments"
    world.made(url, deployment())
    reply = world.ask("PATCH", f"{url}/d", {"spec": {"replicas": 5}, "status": {"replicas": 9}}, content=MERGE)
    assert reply.body["metadata"]["generation"] == 2
    assert reply.body["status"] == {}


def test_the_status_subresource_leaves_the_spec_alone_and_counts_nothing(world: ApiServerHarness):
    world.namespace()
    url = "/apis/apps/v1/namespaces/here/deployments"
    world.made(url, deployment())
    change = {"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}, "spec": {"replicas": 5}}
    reply = world.ask("PATCH", f"{url}/d/status", {**change, "status": {"replicas": 9}}, content=MERGE)
    assert (reply.body["spec"]["replicas"], reply.body["status"]["replicas"]) == (1, 9)
    assert reply.body["metadata"]["generation"] == 1
    assert reply.body["metadata"]["annotations"] == {"a": "1"}
    assert "labels" not in reply.body["metadata"]


def test_annotations_count_for_deployments_and_labels_do_not(world: ApiServerHarness):
    world.namespace()
    url = "/apis/apps/v1/namespaces/here/deployments"
    world.made(url, deployment())
    labelled = world.ask("PATCH", f"{url}/d", {"metadata": {"labels": {"k": "v"}}}, content=MERGE)
    assert labelled.body["metadata"]["generation"] == 1
    annotated = world.ask("PATCH", f"{url}/d", {"metadata": {"annotations": {"k": "v"}}}, content=MERGE)
    assert annotated.body["metadata"]["generation"] == 2


def test_a_pods_status_takes_labels_and_keeps_its_quality_of_service(world: ApiServerHarness):
    here = world.namespace()
    made = world.made(f"{here}/pods", pod())
    made["metadata"]["labels"] = {"via": "status"}
    made["status"] = {"phase": "Running"}
    reply = world.ask("PUT", f"{here}/pods/p/status", made)
    assert reply.body["metadata"]["labels"] == {"via": "status"}
    assert reply.body["status"] == {"phase": "Running", "qosClass": "BestEffort"}


def test_a_namespaces_finalizers_change_only_through_finalize(world: ApiServerHarness):
    world.namespace("n")
    reply = world.ask("PATCH", "/api/v1/namespaces/n", {"spec": {"finalizers": []}}, content=MERGE)
    assert reply.body["spec"] == {"finalizers": ["kubernetes"]}
    body = {"metadata": {"name": "n"}, "spec": {"finalizers": []}}
    assert "finalizers" not in world.ask("PUT", "/api/v1/namespaces/n/finalize", body).body["spec"]
