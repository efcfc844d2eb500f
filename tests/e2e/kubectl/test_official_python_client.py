"""The official Python client against our server: it lists, watches, patches, defines and elects as it does anywhere."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.kubectl.server_processes import has_apiserver_command, running_server
from tests.e2e.timeouts import PATIENCE_S

kubernetes = pytest.importorskip("kubernetes", reason="NOT TESTED: the official Python client is not installed")
if not has_apiserver_command():
    pytest.skip("NOT TESTED: there is no `plimsoll apiserver`", allow_module_level=True)

from kubernetes import client, config, dynamic, watch  # noqa: E402 - only where it is installed
from kubernetes.client.exceptions import ApiException  # noqa: E402
from kubernetes.leaderelection import electionconfig, leaderelection  # noqa: E402
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.filterwarnings("default")

_GROUP = "client.example.com"
_DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gadgets.{_GROUP}"},
    "spec": {
        "group": _GROUP,
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running_server(tmp_path_factory.mktemp("client") / "data") as server:
        configured = config.new_client_from_config(config_file=str(server.kubeconfig))
        yield configured
        configured.close()


@pytest.fixture(scope="module")
def core(api: Any) -> Any:
    return client.CoreV1Api(api)


def _configmap(name: str, **data: str) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"from": "client"}), data=data)


def test_it_creates_reads_replaces_and_deletes(core: Any):
    made = core.create_namespaced_config_map("default", _configmap("crud", a="1"))
    made.data["a"] = "2"
    assert core.replace_namespaced_config_map("crud", "default", made).data == {"a": "2"}
    with pytest.raises(ApiException) as conflict:
        core.replace_namespaced_config_map("crud", "default", made)
    assert conflict.value.status == 409
    assert core.delete_namespaced_config_map("crud", "default")["status"] == "Success"
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("crud", "default")
    assert gone.value.status == 404


def test_it_lists_page_by_page(core: Any):
    for number in range(5):
        core.create_namespaced_config_map("default", _configmap(f"page-{number}"))
    names: list[str] = []
    following = None
    while True:
        page = core.list_namespaced_config_map("default", label_selector="from=client", limit=2, _continue=following)
        names += [item.metadata.name for item in page.items]
        following = page.metadata._continue
        if not following:
            break
    assert [name for name in names if name.startswith("page-")] == [f"page-{number}" for number in range(5)]


def test_it_watches_from_a_list_on(core: Any):
    listed = core.list_namespaced_config_map("default")
    core.create_namespaced_config_map("default", _configmap("watched"))
    core.patch_namespaced_config_map("watched", "default", {"data": {"a": "1"}})
    core.delete_namespaced_config_map("watched", "default")
    stream = watch.Watch().stream(
        core.list_namespaced_config_map,
        "default",
        resource_version=listed.metadata.resource_version,
        timeout_seconds=2,
    )
    seen = [(event["type"], event["object"].metadata.name) for event in stream]
    assert seen == [("ADDED", "watched"), ("MODIFIED", "watched"), ("DELETED", "watched")]


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        ("application/json-patch+json", [{"op": "add", "path": "/data/b", "value": "2"}]),
        ("application/merge-patch+json", {"data": {"b": "2"}}),
        ("application/strategic-merge-patch+json", {"data": {"b": "2"}}),
        (
            "application/apply-patch+yaml",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patched"}, "data": {"b": "2"}},
        ),
    ],
)
def test_it_patches_in_every_way(core: Any, content_type: str, patch: Any):
    core.create_namespaced_config_map("default", _configmap("patched", a="1"))
    extra = {"field_manager": "client", "force": True} if "apply" in content_type else {}
    try:
        patched = core.patch_namespaced_config_map("patched", "default", patch, _content_type=content_type, **extra)
        assert patched.data == {"a": "1", "b": "2"}
    finally:
        core.delete_namespaced_config_map("patched", "default")


def test_it_defines_a_resource_and_serves_itself_of_it(api: Any):
    extensions: Any = client.ApiextensionsV1Api(api)
    extensions.create_custom_resource_definition(_DEFINITION)
    custom: Any = client.CustomObjectsApi(api)
    _until_served(custom)
    gadget = {"apiVersion": f"{_GROUP}/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
    made = custom.create_namespaced_custom_object(_GROUP, "v1", "default", "gadgets", gadget)
    assert made["metadata"]["generation"] == 1
    with pytest.raises(ApiException) as invalid:
        custom.patch_namespaced_custom_object(_GROUP, "v1", "default", "gadgets", "g", {"spec": {"size": 0}})
    assert invalid.value.status == 422
    status = custom.patch_namespaced_custom_object_status(
        _GROUP, "v1", "default", "gadgets", "g", {"status": {"ready": True}}
    )
    assert status["status"] == {"ready": True}
    _the_dynamic_client_finds_it(api)


def _until_served(custom: Any) -> None:
    """A definition is served a moment after it is made; asking again is what clients do."""
    for _ in range(1_000):
        try:
            custom.list_namespaced_custom_object(_GROUP, "v1", "default", "gadgets")
        except ApiException as error:
            if error.status != 404:
                raise
        else:
            return
    pytest.fail("the resource was never served")


def _the_dynamic_client_finds_it(api: Any) -> None:
    gadgets = dynamic.DynamicClient(api).resources.get(api_version=f"{_GROUP}/v1", kind="Gadget")
    assert gadgets.get(name="g", namespace="default").spec.size == 1
    merged = gadgets.patch(
        name="g", namespace="default", body={"spec": {"size": 2}}, content_type="application/merge-patch+json"
    )
    assert merged.metadata.generation == 2
    listed = gadgets.get(namespace="default")
    assert [item.metadata.name for item in listed.items] == ["g"]
    events = gadgets.watch(namespace="default", timeout=3)
    assert [(event["type"], event["object"].metadata.name) for event in events] == [("ADDED", "g")]
    gadgets.delete(name="g", namespace="default")


def test_its_leader_election_gives_the_lease_to_one(api: Any):
    leading: list[str] = []
    has_begun, is_over = threading.Event(), threading.Event()

    def lead() -> None:
        leading.append("one")
        has_begun.set()
        is_over.wait(timeout=PATIENCE_S)
        raise RuntimeError("a leader whose work fails gives up its lease")

    leader = threading.Thread(target=_candidate(api, "one", lead).run)
    leader.start()
    assert has_begun.wait(timeout=PATIENCE_S)
    other = _candidate(api, "two", lambda: leading.append("two"))
    assert not other.try_acquire_or_renew(), "the lease is held and was just renewed"
    lease: Any = client.CoordinationV1Api(api).read_namespaced_lease("election", "default")
    assert lease.spec.holder_identity == "one"
    assert leading == ["one"]
    is_over.set()
    leader.join(timeout=PATIENCE_S)
    assert not leader.is_alive()


def _candidate(api: Any, name: str, begin: Callable[[], None]) -> Any:
    lock = LeaseLock("election", "default", name)
    lock.api_instance = client.CoordinationV1Api(api)
    settings = electionconfig.Config(
        lock,
        lease_duration=15,
        renew_deadline=10,
        retry_period=1,
        onstarted_leading=begin,
        onstopped_leading=lambda: None,
    )
    return leaderelection.LeaderElection(settings)
