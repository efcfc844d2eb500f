"""The recorded protobuf bodies of kubectl, posted: what is stored is what the real server stored."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest

from plimsoll.local.apiserver.bootstrap.objects import build_namespace_contents
from plimsoll.runtime.virtual_run import VirtualRun
from tests.conformance.comparison import body_differences
from tests.conformance.exchanges import ClientRequests, Reply
from tests.conformance.servers import ADMIN_TOKEN, RECORDED_DAY, embedded_server
from tests.conformance.setups.steps import namespace
from tests.e2e.kubectl.recorded_commands import recorded_commands

_DIFFERENT_CREDENTIALS = "142-protobuf-auth-whoami"


class PostedBody(NamedTuple):
    id: str
    request: dict[str, Any]


_POSTED = [
    PostedBody(command.id, request)
    for command in recorded_commands()
    for request in command.requests
    if "body_base64" in request
]


@cache
def _replies() -> dict[str, Reply]:
    with VirtualRun(start=RECORDED_DAY) as run:
        server = run.run_until(embedded_server(run.clock))
        client = ClientRequests(run, server.transport, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        made = namespace("kc")
        client.send("POST", made.path, headers={"Content-Type": "application/json"}, body=made.body)
        # What the controllers of a real cluster put into a namespace.
        for contents in build_namespace_contents("kc"):
            path = f"/api/v1/namespaces/kc/{contents['kind'].lower()}s"
            client.send("POST", path, headers={"Content-Type": "application/json"}, body=contents)
        return {posted.id: _post(client, posted.request) for posted in _POSTED}


def _post(client: ClientRequests, request: dict[str, Any]) -> Reply:
    url = urlsplit(request["path"])
    headers = {"Content-Type": request["content_type"], "Accept": request["accept"], "User-Agent": "kubectl/v1.34.0"}
    body = base64.b64decode(request["body_base64"])
    return client.send(request["method"], url.path, query=dict(parse_qsl(url.query)), headers=headers, body=body)


@pytest.mark.parametrize(
    "posted", [item for item in _POSTED if item.id != _DIFFERENT_CREDENTIALS], ids=lambda item: item.id
)
def test_a_protobuf_body_is_understood(posted: PostedBody):
    reply = _replies()[posted.id]
    assert reply.status == posted.request["status"], reply.text
    assert reply.content_type == "application/json", "every Accept of kubectl includes JSON"
    assert not list(body_differences(posted.request["response"], reply.body, is_cut=False, id_=posted.id))


def test_a_self_subject_review_by_token_has_no_certificate():
    user = _replies()[_DIFFERENT_CREDENTIALS].body["status"]["userInfo"]
    assert (user["username"], user["groups"]) == ("admin", ["system:masters", "system:authenticated"])
