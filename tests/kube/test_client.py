"""Objects read, created, patched and deleted through a client of a whole API server."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.client import Client
from plimsoll.kube.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound, UnreadableAnswer
from plimsoll.kube.requests.options import USER_AGENT, DeleteOptions, Selection
from plimsoll.kube.transport import Request, Response
from plimsoll.objects.api.coordination import Lease, LeaseSpec
from plimsoll.objects.api.core import ConfigMap, Namespace, Secret
from plimsoll.objects.api.meta import MicroTime, ObjectMeta
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual
from tests.kube.embedded_api import WIDGETS, EmbeddedApi, ScriptedTransport, Widget, json_reply
from tests.local.apiserver.builders import GUEST, config_map, definition, pod

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

URL = "/api/v1/namespaces/here/configmaps"


@pytest.fixture
def world():
    with EmbeddedApi() as world:
        world.namespace()
        yield world


def sent_by(act: Any, reply: Response | None = None) -> Request:
    """The call that a client makes of what it is asked."""

    async def main(clock: Any) -> Request:
        transport = ScriptedTransport(reply or json_reply({"metadata": {"name": "a"}}))
        await act(Client(transport, clock=clock, entropy=SeededEntropy(1)))
        return transport.sent[0]

    return run_virtual(main)


# ---- reading


def test_an_object_is_read_by_its_struct(world: EmbeddedApi):
    world.made(URL, config_map("a", data={"k": "v"}))
    assert world.do(world.client.get(ConfigMap, "a", namespace="here")).data == {"k": "v"}


def test_what_is_not_there_is_reported_in_the_servers_words(world: EmbeddedApi):
    with pytest.raises(NotFound, match=r'^configmaps "a" not found$'):
        world.do(world.client.get(ConfigMap, "a", namespace="here"))


def test_a_user_without_permission_gets_a_refusal(world: EmbeddedApi):
    guest = world.new_client(token=GUEST)
    with pytest.raises(Forbidden, match="cannot get resource"):
        world.do(guest.get(Secret, "a", namespace="here"))


def test_raw_bytes_are_the_servers(world: EmbeddedApi):
    made = world.made(URL, config_map("a", data={"k": "v"}))
    assert json.loads(world.do(world.client.get_raw(ConfigMap, "a", namespace="here"))) == made
    both = world.do(world.client.get_with_raw(ConfigMap, "a", namespace="here"))
    assert (both.view.data, json.loads(both.raw)) == ({"k": "v"}, made)


def test_any_path_may_be_read_as_json(world: EmbeddedApi):
    assert world.do(world.client.get_json("/api"))["kind"] == "APIVersions"
    listed = world.do(world.client.get_json("/api/v1/namespaces", [("fieldSelector", "metadata.name=here")]))
    assert [item["metadata"]["name"] for item in listed["items"]] == ["here"]


def test_a_custom_resource_is_reached_by_its_resource(world: EmbeddedApi):
    world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    made: Widget = world.do(world.client.create(WIDGETS, {"metadata": {"name": "w"}, "spec": {}}, namespace="here"))
    assert (made.api_version, made.spec) == ("ex.com/v1", {"size": 1})


def test_a_struct_in_no_table_is_named(reviewed: ReviewedSentences):
    with EmbeddedApi() as world, pytest.raises(InvalidInput) as raised:
        world.do(world.client.get(Widget, "w", namespace="here"))
    reviewed(str(raised.value))


def test_a_success_that_cannot_be_read_names_object_and_field(reviewed: ReviewedSentences):
    reply = json_reply({"kind": "Node", "metadata": {"name": "n7"}, "spec": {"taints": [{"key": 1}]}})
    with pytest.raises(UnreadableAnswer) as raised:
        sent_by(lambda client: client.get(Node, "n7"), reply)
    reviewed(str(raised.value))


def test_a_success_of_another_kind_is_no_success(reviewed: ReviewedSentences):
    with pytest.raises(UnreadableAnswer) as raised:
        sent_by(lambda client: client.get(Node, "n"), json_reply({"kind": "Pod", "metadata": {"name": "n"}}))
    reviewed(str(raised.value))


def test_what_is_not_json_is_reported(reviewed: ReviewedSentences):
    with pytest.raises(UnreadableAnswer) as raised:
        sent_by(lambda client: client.get_json("/version"), Response(200, body=b"<html>"))
    reviewed(str(raised.value))


# ---- where


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a%2fb"])
def test_a_name_cannot_lead_elsewhere(name: str):
    with pytest.raises(InvalidInput, match=r"^name: "):
        sent_by(lambda client: client.delete(Node, name))


@pytest.mark.parametrize("namespace", ["..", "a/b", "here/pods/p"])
def test_a_namespace_cannot_lead_elsewhere(namespace: str):
    with pytest.raises(InvalidInput, match=r"^namespace: "):
        sent_by(lambda client: client.list(Pod, Selection(namespace=namespace)))


def test_a_question_mark_in_a_name_stays_in_the_name():
    call = sent_by(lambda client: client.get(Node, "a?b#c d"))
    assert call.url == "/api/v1/nodes/a%3Fb%23c%20d"


@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.get(Pod, "p"),
        lambda client: client.create(Pod, {"metadata": {"name": "p"}}),
        lambda client: client.delete(Pod, "p"),
        lambda client: client.merge_patch(Pod, "p", {}),
    ],
)
def test_a_namespaced_object_needs_its_namespace(act: Any, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        sent_by(act)
    reviewed(str(raised.value))


def test_a_namespace_does_not_count_for_what_lives_in_none():
    assert sent_by(lambda client: client.get(Node, "n", namespace="here")).path == "/api/v1/nodes/n"


def test_every_request_names_its_user_agent():
    call = sent_by(lambda client: client.get(Node, "n"))
    assert call.headers["User-Agent"] == USER_AGENT
    assert USER_AGENT.startswith("plimsoll/0")
    assert sent_by(lambda client: client.call(Request("GET", "/x"))).headers["User-Agent"] == USER_AGENT


# ---- creating


def test_what_is_created_from_a_mapping_gets_its_kind(world: EmbeddedApi):
    made = world.do(world.client.create(ConfigMap, {"metadata": {"name": "a"}, "data": {"k": "v"}}, namespace="here"))
    assert (made.kind, made.metadata.namespace, made.data) == ("ConfigMap", "here", {"k": "v"})


def test_what_is_created_from_a_struct_says_itself_where(world: EmbeddedApi):
    whole = ConfigMap(metadata=ObjectMeta(name="a", namespace="here"), data={"k": "v"})
    assert world.do(world.client.create(ConfigMap, whole)).data == {"k": "v"}


def test_bytes_are_sent_as_they_are(world: EmbeddedApi):
    raw = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}'
    assert world.do(world.client.create(ConfigMap, raw, namespace="here")).data == {"k": "v"}


def test_a_name_may_be_left_to_the_server(world: EmbeddedApi):
    made = world.do(world.client.create(ConfigMap, {"metadata": {"generateName": "a-"}}, namespace="here"))
    assert made.metadata.name.startswith("a-")
    assert len(made.metadata.name) == 7


def test_times_of_leases_are_written_as_kubernetes_reads_them(world: EmbeddedApi):
    now = MicroTime.of(datetime(2026, 1, 1, tzinfo=UTC))
    world.do(
        world.client.create(
            Lease, Lease(metadata=ObjectMeta(name="l"), spec=LeaseSpec(renew_time=now)), namespace="here"
        )
    )
    world.do(world.client.merge_patch(Lease, "l", {"spec": {"acquireTime": now}}, namespace="here"))
    spec = world.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/here/leases/l")["spec"]
    assert spec == {"acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z"}


def test_a_part_of_an_object_is_not_an_object(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        sent_by(lambda client: client.create(Lease, LeaseSpec(), namespace="here"))
    reviewed(str(raised.value))


def test_a_name_that_is_taken_is_reported(world: EmbeddedApi):
    world.made(URL, config_map("a"))
    with pytest.raises(AlreadyExists, match='configmaps "a" already exists'):
        world.do(world.client.create(ConfigMap, config_map("a"), namespace="here"))


def test_a_dry_run_makes_nothing(world: EmbeddedApi):
    made = world.do(world.client.create(ConfigMap, config_map("a"), namespace="here", dry_run=True))
    assert made.metadata.uid
    with pytest.raises(NotFound):
        world.do(world.client.get(ConfigMap, "a", namespace="here"))


def test_unknown_fields_are_refused_where_asked_for(world: EmbeddedApi):
    body = {**config_map("a"), "dat": {}}
    with pytest.raises(BadRequest, match='unknown field "dat"'):
        world.do(world.client.create(ConfigMap, body, namespace="here", field_validation="Strict"))


def test_an_invalid_object_is_refused_field_by_field(world: EmbeddedApi):
    with pytest.raises(Invalid) as caught:
        world.do(world.client.create(ConfigMap, config_map("A"), namespace="here"))
    assert [cause.field for cause in caught.value.causes] == ["metadata.name"]


def test_writes_are_made_in_the_name_of_the_field_manager(world: EmbeddedApi):
    world.do(world.client.apply(ConfigMap, "a", {"data": {"k": "v"}}, namespace="here"))
    world.do(world.client.merge_patch(ConfigMap, "a", {"data": {"l": "w"}}, namespace="here", field_manager="other"))
    entries = world.ask("GET", f"{URL}/a")["metadata"]["managedFields"]
    assert {entry["manager"]: entry["operation"] for entry in entries} == {"plimsoll": "Apply", "other": "Update"}


# ---- patching


def test_a_merge_patch_removes_by_null(world: EmbeddedApi):
    world.made(URL, config_map("a", data={"k": "v", "l": "w"}))
    patched = world.do(world.client.merge_patch(ConfigMap, "a", {"data": {"k": None}}, namespace="here"))
    assert patched.data == {"l": "w"}


def test_a_json_patch_tests_first(world: EmbeddedApi):
    world.made(URL, config_map("a", data={"k": "v"}))
    steps = [{"op": "test", "path": "/data/k", "value": "v"}, {"op": "replace", "path": "/data/k", "value": "w"}]
    assert world.do(world.client.patch_json(ConfigMap, "a", steps, namespace="here")).data == {"k": "w"}
    with pytest.raises(Invalid):
        world.do(world.client.patch_json(ConfigMap, "a", steps, namespace="here"))


def test_a_strategic_patch_merges_lists_by_key(world: EmbeddedApi):
    world.made("/api/v1/namespaces/here/pods", pod("p"))
    body = {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}
    patched = world.do(world.client.patch_strategic(Pod, "p", body, namespace="here"))
    assert [container.name for container in patched.spec.containers] == ["c"]


def test_apply_creates_and_gives_up_what_it_no_longer_names(world: EmbeddedApi):
    world.do(world.client.apply(ConfigMap, "a", {"data": {"k": "v", "l": "w"}}, namespace="here"))
    assert world.do(world.client.apply(ConfigMap, "a", {"data": {"l": "w"}}, namespace="here")).data == {"l": "w"}


def test_apply_takes_fields_of_others_only_by_force(world: EmbeddedApi):
    body = {"data": {"k": "v"}}
    world.do(world.client.apply(ConfigMap, "a", body, namespace="here", field_manager="other"))
    mine = {"data": {"k": "mine"}}
    with pytest.raises(Conflict, match='conflict with "other"'):
        world.do(world.client.apply(ConfigMap, "a", mine, namespace="here"))
    assert world.do(world.client.apply(ConfigMap, "a", mine, namespace="here", force=True)).data == {"k": "mine"}


def test_a_status_is_patched_by_its_own_door(world: EmbeddedApi):
    world.made("/api/v1/nodes", {"metadata": {"name": "n"}})
    conditions = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert not world.do(world.client.merge_patch(Node, "n", conditions)).status.conditions
    patched = world.do(world.client.merge_patch(Node, "n", conditions, subresource="status"))
    assert [condition.type for condition in patched.status.conditions] == ["Ready"]


# ---- deleting


def test_an_object_is_deleted(world: EmbeddedApi):
    world.made(URL, config_map("a"))
    world.do(world.client.delete(ConfigMap, "a", namespace="here"))
    with pytest.raises(NotFound):
        world.do(world.client.delete(ConfigMap, "a", namespace="here"))


def test_a_namespace_that_only_begins_to_go_is_deleted_too(world: EmbeddedApi):
    world.do(world.client.delete(Namespace, "here"))


@pytest.mark.parametrize("options", [DeleteOptions(uid="another"), DeleteOptions(resource_version="1")])
def test_another_object_of_the_name_is_not_deleted(world: EmbeddedApi, options: DeleteOptions):
    world.made(URL, config_map("a"))
    with pytest.raises(Conflict):
        world.do(world.client.delete(ConfigMap, "a", namespace="here", options=options))
    assert world.do(world.client.get(ConfigMap, "a", namespace="here")).metadata.name == "a"


def test_a_deletion_tried_out_deletes_nothing(world: EmbeddedApi):
    made = world.made(URL, config_map("a"))
    options = DeleteOptions(uid=made["metadata"]["uid"], is_dry_run=True)
    world.do(world.client.delete(ConfigMap, "a", namespace="here", options=options))
    assert world.do(world.client.get(ConfigMap, "a", namespace="here")).metadata.name == "a"


def test_all_options_of_a_deletion_are_sent():
    options = DeleteOptions(uid="u", resource_version="7", grace_s=0, propagation="Foreground")
    assert json.loads(sent_by(lambda client: client.delete(Node, "n", options=options)).body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }


@pytest.mark.parametrize("page", [b"<html>please log in</html>", b"", b'"ok"'])
def test_a_page_that_only_looks_like_success_has_deleted_nothing(page: bytes, reviewed: ReviewedSentences):
    with pytest.raises(UnreadableAnswer) as raised:
        sent_by(lambda client: client.delete(Node, "n"), Response(200, body=page))
    reviewed(str(raised.value))


# ---- watching


def test_a_watch_gives_chunks(world: EmbeddedApi):
    world.made(URL, config_map("a"))

    async def read() -> list[Any]:
        selection = Selection(namespace="here", fields="metadata.name=a")
        stream = await world.client.watch(ConfigMap, selection, timeout_seconds=1)
        data = b"".join([chunk async for chunk in stream])
        return [json.loads(line) for line in data.splitlines()]

    events = world.do(read())
    assert (events[0]["type"], events[0]["object"]["metadata"]["name"]) == ("ADDED", "a")


def test_a_watch_says_all_it_wants():
    class Nothing:
        def __aiter__(self) -> Nothing:
            return self

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

        async def aclose(self) -> None:
            """Nothing to let go."""

    def act(client: Client) -> Any:
        selection = Selection(namespace="here", labels="a=b")
        return client.watch(Pod, selection, resource_version="7", timeout_seconds=9, send_initial_events=True)

    call = sent_by(act, Response(200, stream=Nothing()))
    assert call.is_stream
    assert (call.path, dict(call.query)) == (
        "/api/v1/namespaces/here/pods",
        {
            "watch": "true",
            "labelSelector": "a=b",
            "resourceVersion": "7",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "timeoutSeconds": "9",
        },
    )


def test_a_document_is_not_a_watch(reviewed: ReviewedSentences):
    with pytest.raises(UnreadableAnswer) as raised:
        sent_by(lambda client: client.watch(Pod))
    reviewed(str(raised.value))


# ---- warnings


def test_every_warning_is_reported_once():
    header = '299 - "v1 Foo is deprecated, use \\"Bar\\"", 299 - "and another"'
    reply = json_reply({"metadata": {"name": "n"}}, warning=header)

    async def thrice(client: Client) -> None:
        for _ in range(3):
            await client.get(Node, "n")

    with capture_logs() as reported:
        sent_by(thrice, reply)
    assert [line["text"] for line in reported] == ['v1 Foo is deprecated, use "Bar"', "and another"]
