"""What a cluster refuses: to those who may not, and about what it has forgotten."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.kube.access import Credential
from plimsoll.kube.configuration.credentials import FixedCredentials
from plimsoll.kube.errors import Forbidden, Unauthorized
from plimsoll.kube.informer import Informer
from plimsoll.kube.requests.options import Selection
from plimsoll.kube.transport import JSON, Request
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.rbac import Role, RoleBinding, ServiceAccount
from tests.e2e.kube.clusters import CLOCK, ENTROPY, connected, until
from tests.e2e.kube.pods_and_maps import config_map
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client

pytestmark = pytest.mark.asyncio

RBAC = "rbac.authorization.k8s.io"


async def reader_token(client: Client, namespace: str) -> str:
    """The token of a ServiceAccount that may read config maps here and nothing else."""
    await client.create(ServiceAccount, {"metadata": {"name": "reader"}}, namespace=namespace)
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    await client.create(Role, {"metadata": {"name": "reader"}, "rules": [rule]}, namespace=namespace)
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    }
    await client.create(RoleBinding, binding, namespace=namespace)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/reader/token"
    call = Request("POST", path, headers={"Content-Type": JSON, "Accept": JSON}, body=msgspec.json.encode(body))
    return msgspec.json.decode((await client.call(call)).body)["status"]["token"]


def as_bearer(access: Access, token: str) -> Access:
    return dataclasses.replace(
        access, credentials=FixedCredentials(Credential(headers={"Authorization": f"Bearer {token}"}))
    )


async def test_a_reader_is_forbidden_to_write(access: Access, client: Client, namespace: str):
    await client.create(ConfigMap, config_map("settings", colour="red"), namespace=namespace)
    token = await reader_token(client, namespace)
    async with connected(as_bearer(access, token)) as reader:

        async def may_read() -> bool:
            """A cluster takes a moment to hear of a new binding."""
            try:
                return (await reader.get(ConfigMap, "settings", namespace=namespace)).data == {"colour": "red"}
            except Forbidden:
                return False

        await until(may_read)
        with pytest.raises(Forbidden) as refused:
            await reader.create(ConfigMap, config_map("other"), namespace=namespace)
    assert refused.value.reason == "Forbidden"
    assert f"system:serviceaccount:{namespace}:reader" in str(refused.value)


async def test_an_unknown_token_is_unauthorized_and_not_repeated_in_the_error(access: Access):
    token = "no-such-token-0123456789"
    async with connected(as_bearer(access, token)) as stranger:
        with pytest.raises(Unauthorized) as refused:
            await stranger.list(ConfigMap, Selection(namespace="default"))
    assert token not in str(refused.value)


async def test_an_informer_whose_version_is_forgotten_starts_over(access: Access, client: Client, namespace: str):
    """Writes more than a server of ours remembers. A cluster that remembers more cannot be asked this question."""
    first = await client.create(ConfigMap, config_map("large"), namespace=namespace)
    for number in range(48):
        large = {"data": {"text": f"{number:02d}" * 450_000}}
        await client.merge_patch(ConfigMap, "large", large, namespace=namespace)
    selection = Selection(namespace=namespace)
    event = await first_event(client, selection, since=first.metadata.resource_version)
    if event["type"] != "ERROR":
        pytest.skip("this cluster still has the version")
    assert event["object"]["code"] == 410
    assert event["object"]["reason"] == "Expired"
    async with connected(
        access, wrapped=lambda transport: ExpiredWatchTransport(transport, first.metadata.resource_version)
    ) as late:
        informer = Informer(late, ConfigMap, selection=selection, clock=CLOCK, entropy=ENTROPY)
        running = asyncio.create_task(informer.run())

        async def has_started_over() -> bool:
            return informer.status.relists == 1

        await until(has_started_over)
        assert informer.cache.get("large", namespace) is not None
        running.cancel()
        await asyncio.wait((running,))


async def first_event(client: Client, selection: Selection, *, since: str) -> Any:
    stream = await client.watch(ConfigMap, selection, resource_version=since)
    try:
        text = b""
        async with asyncio.timeout(PATIENCE_S):
            while b"\n" not in text:
                text += await anext(stream)
    finally:
        await stream.aclose()
    return msgspec.json.decode(text.split(b"\n")[0])


class ExpiredWatchTransport:
    """A transport whose first watch begins at another version than it was asked for: one that is forgotten."""

    def __init__(self, transport: Any, version: str) -> None:
        self._transport = transport
        self._version = version

    async def send(self, call: Request) -> Any:
        if call.is_stream and self._version:
            version, self._version = self._version, ""
            query = [(key, version if key == "resourceVersion" else value) for key, value in call.query]
            call = call._replace(query=query)
        return await self._transport.send(call)

    async def aclose(self) -> None:
        await self._transport.aclose()
