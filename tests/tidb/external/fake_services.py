"""An external service in memory: its callers, its address, and its answers."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from plimsoll.objects.api.tidb import ExternalEndpoint, SecretReference
from plimsoll.testing import run_virtual
from plimsoll.tidb.external.recommender import RecommendationFailed, RecommendationRequest, request_recommendation
from plimsoll.tidb.model.components import Component
from plimsoll.web.address_guard import parse_exceptions
from plimsoll.web.client import RequestFailed, Response

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping

    from plimsoll.web.client import PinnedUrl

ADDRESS = "10.4.0.7"


def question(
    *, host: str = "advice.prod", path: str = "/advise", secret: SecretReference | None = None, cluster: str = "db"
) -> RecommendationRequest:
    endpoint = ExternalEndpoint(host=host, port=8080, path=path, tls_secret=secret)
    return RecommendationRequest(
        endpoint=endpoint, autoscaler_namespace="prod", namespace="prod", cluster=cluster, component=Component.TIKV
    )


def advice(replicas: Any = 3, **other: Any) -> bytes:
    return json.dumps(
        {"name": "db", "namespace": "prod", "type": "tikv", "recommendedReplicas": replicas} | other
    ).encode()


class FakeService:
    """A `Caller`. Every resolution takes the next of `addresses`; the last is repeated."""

    def __init__(
        self,
        body: bytes = b"",
        *,
        status: int = 200,
        addresses: Iterable[tuple[str, ...]] = ((ADDRESS,),),
        answers_after_s: float = 0.0,
    ) -> None:
        self.answer: Response | RequestFailed = Response(status=status, body=body or advice())
        self.called: list[PinnedUrl] = []
        self.tls: list[ssl.SSLContext | None] = []
        self._addresses = list(addresses)
        self._answers_after_s = answers_after_s

    async def resolve(self, host: str, port: int) -> tuple[str, ...] | RequestFailed:
        del host, port
        return self._addresses.pop(0) if len(self._addresses) > 1 else self._addresses[0]

    async def get(self, place: PinnedUrl, *, tls: ssl.SSLContext | None) -> Response | RequestFailed:
        self.called.append(place)
        self.tls.append(tls)
        await asyncio.sleep(self._answers_after_s)
        return self.answer


class FakeSecrets:
    """By namespace and name."""

    def __init__(self, held: Mapping[tuple[str, str], dict[str, bytes]] | None = None) -> None:
        self._held = held or {}

    async def read(self, namespace: str, name: str) -> dict[str, bytes] | None:
        return self._held.get((namespace, name))


def asked(
    service: FakeService,
    about: RecommendationRequest | None = None,
    *,
    allowed: Iterable[str] = (),
    secrets: FakeSecrets | None = None,
) -> int | RecommendationFailed:
    return run_virtual(
        request_recommendation(
            about or question(),
            caller=service,
            secrets=secrets or FakeSecrets(),
            exceptions=parse_exceptions(allowed),
        )
    )


def problem_with(service: FakeService, about: RecommendationRequest | None = None, **more: Any) -> str:
    found = asked(service, about, **more)
    assert isinstance(found, RecommendationFailed)
    return found.problem
