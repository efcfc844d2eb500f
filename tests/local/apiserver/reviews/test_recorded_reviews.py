"""Every line of golden/auth.jsonl as far as it concerns who may what.

Left to the HTTP layer, because what they answer with is an object of the store or a page: auth-002 (the version page),
auth-018 (the 404 of a missing pod), auth-020 (an empty list). Here they only have to be let through.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from plimsoll.local.apiserver.auth_types import Attributes, User
from plimsoll.local.apiserver.authorization import check_escalation, forbidden
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.reviews.review import review
from plimsoll.local.apiserver.reviews.token_requests import create_token
from plimsoll.local.apiserver.status_errors import StatusError
from plimsoll.objects.protobuf.decoding import decode_body
from tests.local.apiserver.reviews.builders import (
    RECORDED_BINDING,
    RECORDED_ROLE,
    ReviewHarness,
    review_call,
    token_call,
)

Json = dict[str, Any]
FIXTURES = Path(__file__).parents[3] / "fixtures/kubernetes"
LINES = [json.loads(line) for line in (FIXTURES / "golden/auth.jsonl").read_text().splitlines()]
PASSED_ON = {"auth-002", "auth-018", "auth-020"}
_VERBS = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}


@cache
def court(*, has_role: bool) -> ReviewHarness:
    return ReviewHarness(*((RECORDED_ROLE, RECORDED_BINDING) if has_role else ()))


def request_of(line: Json, at: ReviewHarness) -> Request:
    headers = {}
    asker = line.get("auth", "admin")
    if asker == "admin":
        headers["authorization"] = "Bearer the-admin-token"
    elif asker.startswith("serviceaccount"):
        headers["authorization"] = f"Bearer {at.account_token()}"
    elif asker.startswith("Bearer"):
        headers["authorization"] = "Bearer unknown"
    if line["id"] == "auth-017":
        headers["impersonate-user"] = "bob"
    return Request(method=line["method"], path=line["path"], query=tuple(line["query"].items()), headers=headers)


def attributes_of(request: Request, user: User) -> Attributes:
    """What routing makes of the recorded paths."""
    parts = request.path.strip("/").split("/")
    if parts[0] not in {"api", "apis"} or len(parts) < 3:
        return Attributes(user=user, verb="get", path=request.path, is_resource_request=False)
    group, parts = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    resource, name, subresource = (*parts, "", "")[:3]
    verb = _VERBS[request.method]
    if not name and verb in {"get", "delete"}:
        verb = "deletecollection" if verb == "delete" else "watch" if request.get_parameter("watch") else "list"
    selector = request.get_parameter("fieldSelector") or ""
    return Attributes(
        user=user,
        verb=verb,
        group=group,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name or selector.removeprefix("metadata.name="),
    )


def answer(line: Json, at: ReviewHarness) -> Json | None:
    """The body; None where the HTTP layer goes on."""
    request = request_of(line, at)
    user = at.server.authenticator.authenticate(request)
    attributes = attributes_of(request, user)
    decision = at.server.authorizer.decide(attributes)
    if not decision.allowed:
        raise forbidden(attributes, decision)
    body = line["body"]
    if attributes.group == "rbac.authorization.k8s.io":
        stored_as = f"{attributes.group}/{attributes.resource}"
        refusal = check_escalation(
            at.server.authorizer,  # type: ignore[arg-type]
            user,
            body,
            stored_as=stored_as,
            namespace=attributes.namespace,
        )
        assert refusal is not None
        raise refusal
    if body is None:
        return None
    spec = body.get("spec") or {}
    if "jwt" in spec.get("token", ""):
        spec = {**spec, "token": at.account_token()}
    call = review_call(body["kind"], user=user, group=attributes.group, namespace=attributes.namespace)
    return review(at.server, call, {**body, "spec": spec})


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["id"])
def test_recorded(line: Json):
    at = court(has_role=line["id"] > "auth-017")
    if line["id"] in PASSED_ON:
        assert answer(line, at) is None
    elif line["status"] == 201:
        assert masked(answer(line, at)) == masked(line["response"])
    else:
        with pytest.raises(StatusError) as caught:
            answer(line, at)
        assert as_recorded(caught.value.status, line["response"]) == line["response"]


def as_recorded(status: Json, recorded: Json) -> Json:
    """A long message was cut by the recorder."""
    kept, cut, _ = recorded["message"].partition("…")
    return {**status, "message": status["message"][: len(kept)] + cut} if cut else status


@pytest.mark.parametrize("line", [item for item in LINES if item["status"] == 201], ids=lambda line: line["id"])
def test_answers_have_their_fields_in_the_order_of_go(line: Json):
    got = answer(line, court(has_role=True))
    assert got is not None
    assert list(got) == list(line["response"])
    assert list(got.get("spec", {})) == list(line["response"].get("spec", {}))
    assert list(got["status"]) == list(line["response"]["status"])


def test_the_recorded_review_of_the_administrators_rules():
    recorded = kubectl("141-protobuf-auth-can-i-list")
    call = review_call("SelfSubjectRulesReview")
    got = review(court(has_role=False).server, call, {"spec": {"namespace": "kc"}})
    assert masked(got) == masked(recorded)


def test_kubectl_is_answered_yes():
    recorded = kubectl("140-protobuf-auth-can-i")
    recorded["metadata"]["managedFields"][0]["manager"] = "golden"
    got = review(court(has_role=False).server, review_call("SelfSubjectAccessReview"), recorded)
    assert masked(got) == masked(recorded)


def test_the_recorded_token_request():
    lines = map(json.loads, (FIXTURES / "golden/create.jsonl").read_text().splitlines())
    recorded = next(line for line in lines if line["id"] == "create-028")
    got = create_token(court(has_role=False).server, token_call(), recorded["body"])
    expected = recorded["response"]
    assert list(got["metadata"]) == list(expected["metadata"])
    assert list(got["spec"]) == list(expected["spec"])
    assert got["status"].pop("token").count(".") == 2
    expected["status"].pop("token")
    expected["metadata"]["namespace"] = "auth"
    assert masked(got) == masked(expected)


def kubectl(name: str) -> Json:
    recorded = json.loads((FIXTURES / f"kubectl/{name}.json").read_text())
    return next(request["response"] for request in recorded["requests"] if request["method"] == "POST")


def masked(value: Any, name: str = "") -> Any:
    """Without what no two servers share: times, uids, token ids; and with rules in one order."""
    if isinstance(value, dict):
        return {key: masked(item, key) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        items = [masked(item, name) for item in value]
        return sorted(items, key=json.dumps) if name in {"resourceRules", "nonResourceRules"} else items
    if name in {"time", "creationTimestamp", "expirationTimestamp", "uid", "token"} or str(value).startswith("JTI="):
        return "…"
    return value


@pytest.mark.parametrize(
    "name",
    [
        "140-protobuf-auth-can-i",
        "141-protobuf-auth-can-i-list",
        "142-protobuf-auth-whoami",
        "143-protobuf-create-token",
    ],
)
def test_what_kubectl_sends_in_protobuf_is_answered_as_recorded(name: str):
    recorded = json.loads((FIXTURES / f"kubectl/{name}.json").read_text())
    sent = next(request for request in recorded["requests"] if request["method"] == "POST")
    body = decode_body(base64.b64decode(sent["body_base64"])).value
    server, kind = court(has_role=False).server, body["kind"]
    group = body["apiVersion"].partition("/")[0]
    call = token_call() if kind == "TokenRequest" else review_call(kind, group=group)
    answer_to = create_token if kind == "TokenRequest" else review
    got, expected = masked(answer_to(server, call, body)), masked(sent["response"])
    assert got.get("spec") == expected.get("spec")
    assert list(got["metadata"]) == list(expected["metadata"])
    if name != "142-protobuf-auth-whoami":  # the recorded administrator came with a certificate
        assert got["status"] == expected["status"]
