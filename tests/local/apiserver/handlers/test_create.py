from __future__ import annotations

from unittest import mock

import pytest

from tests.local.apiserver.builders import ApiServerHarness, config_map, deployment, pod

SECRET = 'Secret in version "v1" cannot be handled as a ConfigMap:'
FOO = 'Foo in version "v1" cannot be handled as a ConfigMap:'


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        yield made


@pytest.fixture
def maps(world: ApiServerHarness) -> str:
    return f"{world.namespace()}/configmaps"


def test_a_created_object_has_an_identity_and_an_owner_of_its_fields(world: ApiServerHarness, maps: str):
    made = world.made(maps, config_map(data={"k": "v"}))
    metadata = made["metadata"]
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["namespace"] == "here"
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    (entry,) = metadata["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("tester", "Update")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}


def test_a_body_may_leave_out_what_the_url_says(world: ApiServerHarness, maps: str):
    made = world.made(maps, {"metadata": {"name": "a"}})
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")


def test_identity_that_a_client_sends_is_replaced(world: ApiServerHarness, maps: str):
    sent = {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "2001-01-01T00:00:00Z"}
    made = world.made(maps, config_map(metadata=sent))["metadata"]
    assert made["uid"] != "mine"
    assert made["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert "deletionTimestamp" not in made


def test_a_resource_version_is_refused_without_a_reason(world: ApiServerHarness, maps: str):
    reply = world.ask("POST", maps, config_map(metadata={"resourceVersion": "5"}))
    assert (reply.status, reply.message) == (500, "resourceVersion should not be set on objects to be created")
    assert "reason" not in reply.body


def test_names_are_generated_from_a_prefix(world: ApiServerHarness, maps: str):
    made = world.made(maps, {"metadata": {"generateName": "gen-"}})["metadata"]
    assert made["generateName"] == "gen-"
    assert made["name"].startswith("gen-")
    assert len(made["name"]) == len("gen-") + 5


def test_a_generated_name_that_is_taken_is_tried_again(
    world: ApiServerHarness, maps: str, monkeypatch: pytest.MonkeyPatch
):
    world.made(maps, config_map("gen-aaaaa"))
    suffixes = iter(["aaaaa", "bbbbb"])
    monkeypatch.setattr(world.server.entropy, "generate_suffix", lambda: next(suffixes))
    assert world.made(maps, {"metadata": {"generateName": "gen-"}})["metadata"]["name"] == "gen-bbbbb"


def test_after_eight_taken_names_the_client_is_reported(
    world: ApiServerHarness, maps: str, monkeypatch: pytest.MonkeyPatch
):
    world.made(maps, config_map("gen-aaaaa"))
    suffix = mock.Mock(return_value="aaaaa")
    monkeypatch.setattr(world.server.entropy, "generate_suffix", suffix)
    reply = world.ask("POST", maps, {"metadata": {"generateName": "gen-"}})
    assert (reply.status, reply.body["reason"], suffix.call_count) == (409, "AlreadyExists", 8)
    assert reply.message.endswith("the server was not able to generate a unique name for the object")


def test_a_name_is_taken_once(world: ApiServerHarness, maps: str):
    world.made(maps, config_map())
    reply = world.ask("POST", maps, config_map())
    assert (reply.status, reply.message) == (409, 'configmaps "a" already exists')


def test_a_name_is_still_taken_while_its_object_waits_for_finalizers(world: ApiServerHarness, maps: str):
    world.made(maps, config_map(metadata={"finalizers": ["ex.com/hold"]}))
    world.ask("DELETE", f"{maps}/a")
    reply = world.ask("POST", maps, config_map())
    assert reply.message == 'object is being deleted: configmaps "a" already exists'


def test_a_dry_run_answers_and_stores_nothing(world: ApiServerHarness, maps: str):
    reply = world.ask("POST", f"{maps}?dryRun=All", config_map())
    assert reply.status == 201
    assert reply.body["metadata"]["uid"]
    assert world.ask("GET", f"{maps}/a").status == 404


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dryRun=Some", 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        ("fieldValidation=Foo", 'fieldValidation: Unsupported value: "Foo": supported values: "", "Ignore", "Strict"'),
        (f"fieldManager={'m' * 129}", "fieldManager: Too long: may not be more than 128 bytes"),
    ],
)
def test_options_that_mean_nothing_are_refused(world: ApiServerHarness, maps: str, query: str, message: str):
    reply = world.ask("POST", f"{maps}?{query}", config_map())
    assert reply.status == 422
    assert message in reply.message
    assert reply.body["details"]["kind"] == "CreateOptions"


def test_unknown_and_repeated_fields_are_warnings(world: ApiServerHarness, maps: str):
    body = b'{"metadata":{"name":"a","name":"a"},"data":{"k":"1","k":"2"},"foo":1}'
    reply = world.ask("POST", maps, body)
    assert reply.status == 201
    assert reply.warnings == (
        '299 - "duplicate field \\"metadata.name\\""',
        '299 - "duplicate field \\"data.k\\""',
        '299 - "unknown field \\"foo\\""',
    )
    assert reply.body["data"] == {"k": "2"}


def test_strict_validation_refuses_them(world: ApiServerHarness, maps: str):
    reply = world.ask("POST", f"{maps}?fieldValidation=Strict", b'{"metadata":{"name":"a"},"foo":1,"foo":2}')
    stated = 'strict decoding error: duplicate field "foo", unknown field "foo"'
    assert (reply.status, reply.message) == (
        400,
        f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {stated}',
    )


def test_yaml_is_read_with_its_last_key_winning(world: ApiServerHarness, maps: str):
    text = 'metadata:\n  name: yd\ndata:\n  a: "ä"\n  b: "x"\n  a: "2"\n'.encode()
    reply = world.ask("POST", maps, text, content="application/yaml")
    assert (reply.status, reply.body["data"]) == (201, {"a": "2", "b": "x"})
    assert reply.warnings == ('299 - "line 6: key \\"a\\" already set in map"',)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"hello", "json parse error: invalid character 'h' looking for beginning of value (68656c6c6f)"),
        (b"", "json parse error: unexpected end of JSON input (<empty>)"),
        (b'{"kind":', 'json parse error: unexpected end of JSON input ({"kind":)'),
        (b"[" * 20_000, "json parse error"),
    ],
)
def test_a_body_that_is_no_json_is_unrecognized(world: ApiServerHarness, maps: str, body: bytes, problem: str):
    reply = world.ask("POST", maps, body)
    assert reply.status == 400
    assert problem in reply.message


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (
            {"apiVersion": "v1", "kind": "Secret"},
            f"{SECRET} converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            {"apiVersion": "v1", "kind": "Foo"},
            f'{FOO} no kind "Foo" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
        ),
    ],
)
def test_another_kind_than_the_urls_is_refused(world: ApiServerHarness, maps: str, sent: dict[str, str], message: str):
    reply = world.ask("POST", maps, {**sent, "metadata": {"name": "x"}})
    assert (reply.status, reply.message) == (400, message)


def test_an_unknown_content_type_is_refused(world: ApiServerHarness, maps: str):
    assert world.ask("POST", maps, b"x", content="text/plain").status == 415


def test_the_namespace_of_the_body_must_be_the_urls(world: ApiServerHarness, maps: str):
    reply = world.ask("POST", maps, config_map(metadata={"namespace": "there"}))
    assert reply.message == "the namespace of the provided object does not match the namespace sent on the request"


def test_status_and_generation_are_the_servers(world: ApiServerHarness):
    here = world.namespace()
    sent = pod()
    sent["status"] = {"phase": "Running"}
    made = world.made(f"{here}/pods", sent)
    assert (made["status"]["phase"], made["metadata"]["generation"]) == ("Pending", 1)


def test_a_job_selects_its_pods_by_its_uid(world: ApiServerHarness):
    world.namespace()
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    made = world.made(
        "/apis/batch/v1/namespaces/here/jobs", {"metadata": {"name": "j"}, "spec": {"template": template}}
    )
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "j"


def test_an_invalid_object_is_reported_every_error(world: ApiServerHarness):
    world.namespace()
    sent = deployment(replicas=-1)
    del sent["spec"]["selector"]
    reply = world.ask("POST", "/apis/apps/v1/namespaces/here/deployments", sent)
    assert (reply.status, reply.body["details"]["group"]) == (422, "apps")
    fields = [cause["field"] for cause in reply.body["details"]["causes"]]
    assert {"spec.selector", "spec.replicas"} <= set(fields)
