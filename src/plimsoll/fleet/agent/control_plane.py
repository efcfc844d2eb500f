"""Calls to the control plane (docs/design/fleet.md 3.3). A failure is a value: the next poll tries again."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

import msgspec

from plimsoll.core.values import Value, Wire
from plimsoll.fleet.agent.access_tokens import AgentTokens, NoToken
from plimsoll.fleet.agent.model.instances import KafkaList  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.fleet.agent.wire.kafka_lists import UnreadableList, read_kafka_list
from plimsoll.web.client import Request, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.agent.settings import AgentParameters
    from plimsoll.web.client import HttpClient

BASE: Final = "/api/kafkas_mgmt/v1/agent-clusters"
_MOST_NODES: Final = 100_000


class CallProblem(Value):
    """Why a call had no usable answer."""

    message: str


class ControlPlaneAnswer(Value):
    """A complete answer to a poll. `max_nodes`: the bounds of the pools by instance type; empty: it gives none."""

    kafkas: KafkaList
    max_nodes: dict[str, int] = {}


class _Pool(Wire):
    max_nodes: int | None = None


class _ClusterSpec(Wire):
    capacity: dict[str, _Pool | None] | None = None


class _Configuration(Wire):
    spec: _ClusterSpec | None = None


class ControlPlane:
    """The routes of one cluster."""

    def __init__(self, parameters: AgentParameters, web: HttpClient, clock: Clock) -> None:
        self._url = f"{parameters.control_plane_url}{BASE}/{quote(parameters.cluster_id, safe='')}"
        self._web = web
        self._tokens = AgentTokens(parameters, web, clock)

    async def poll(self) -> ControlPlaneAnswer | CallProblem:
        """The configuration and the list: both or nothing."""
        configuration = await self._call("GET", "")
        if isinstance(configuration, CallProblem):
            return configuration
        listed = await self._call("GET", "/kafkas")
        if isinstance(listed, CallProblem):
            return listed
        try:
            return ControlPlaneAnswer(kafkas=read_kafka_list(listed), max_nodes=_read_max_nodes(configuration))
        except (UnreadableList, msgspec.DecodeError, RecursionError) as error:
            return CallProblem(message=f"the answer of the control plane cannot be read: {error}")

    async def report_cluster(self, document: Mapping[str, Any]) -> CallProblem | None:
        return await self._report("/status", document)

    async def report_kafkas(self, documents: Mapping[str, Any]) -> CallProblem | None:
        return await self._report("/kafkas/status", documents)

    async def _report(self, path: str, document: Mapping[str, Any]) -> CallProblem | None:
        answer = await self._call("PUT", path, msgspec.json.encode(document))
        return answer if isinstance(answer, CallProblem) else None

    async def _call(self, method: Literal["GET", "PUT"], path: str, body: bytes = b"") -> bytes | CallProblem:
        """The body of an answer with a status of success. A refused token is renewed once."""
        answer = await self._exchange(method, path, body)
        if isinstance(answer, Response) and answer.status == HTTPStatus.UNAUTHORIZED:
            self._tokens.discard()
            answer = await self._exchange(method, path, body)
        if isinstance(answer, CallProblem):
            return answer
        if answer.status not in {HTTPStatus.OK, HTTPStatus.NO_CONTENT}:
            return CallProblem(message=f"{method} {self._url}{path} answers {answer.status}: {answer.excerpt}")
        return answer.body

    async def _exchange(self, method: Literal["GET", "PUT"], path: str, body: bytes) -> Response | CallProblem:
        token = await self._tokens.get()
        if isinstance(token, NoToken):
            return CallProblem(message=token.problem)
        answer = await self._web.send(
            Request(
                method=method,
                url=f"{self._url}{path}",
                body=body,
                content_type="application/json" if body else "",
                headers={"Authorization": f"Bearer {token}"},
            )
        )
        return answer if isinstance(answer, Response) else CallProblem(message=answer.problem)


def _read_max_nodes(body: bytes) -> dict[str, int]:
    found = msgspec.json.decode(body, type=_Configuration)
    pools = (found.spec.capacity if found.spec is not None else None) or {}
    return {
        name: min(pool.max_nodes, _MOST_NODES)
        for name, pool in pools.items()
        if pool is not None and pool.max_nodes is not None and pool.max_nodes >= 0
    }
