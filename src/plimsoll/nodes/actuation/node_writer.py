"""Writes to nodes without losing the changes of others: `NodeWriter.change`.

`spec.taints` is one list to the API server, so a patch of it replaces the taints of others. Every write names the
resource version that it is based on. After a conflict, or without an answer, the node is read again and the change is
computed from what is there now. A change that is already there is not written again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import AnswerLost, ApiCallFailed, Conflict, NotFound, ServerFailed
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.objects.api.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.actuation.timing import Pacing

WRITE_FAILED: Final = "NodeWriteFailed"
READ_FAILED: Final = "NodeReadFailed"
_ATTEMPTS: Final = 12
_RETRIABLE: Final = (Conflict, AnswerLost, ServerFailed)
"""A write without an answer may have taken effect: the node is read again, and the change found there."""


@dataclass(frozen=True, slots=True)
class NodeGone:
    """The node no longer exists; a node of the same name may."""

    name: str


class NodeWriter:
    """Changes nodes with retries."""

    def __init__(self, client: Client, *, clock: Clock, pacing: Pacing) -> None:
        self._client = client
        self._clock = clock
        self._pacing = pacing

    async def read(self, name: str) -> Node | NodeGone | Reason:
        """The node as the server has it now."""
        try:
            return await self._client.get(Node, name)
        except NotFound:
            return NodeGone(name)
        except ApiCallFailed as error:
            return Reason(code=READ_FAILED, message=f"node {name} could not be read: {error}")

    async def change(self, node: Node, change: Callable[[Node], dict[str, Any] | None]) -> Node | NodeGone | Reason:
        """The node as it is afterwards. `change` gives a merge patch, or None for a node that needs none.

        The node may come from a cache: that it needs no change is believed only after a look at the server.
        """
        is_stale = change(node) is None
        current = node

        async def attempt() -> Node | NodeGone:
            nonlocal current, is_stale
            if is_stale:
                current = await self._client.get(Node, node.metadata.name)
            is_stale = True
            if current.metadata.uid != node.metadata.uid:
                return NodeGone(node.metadata.name)
            body = change(current)
            return current if body is None else await self._write(current, body)

        async def wait(failures: int) -> None:
            await self._clock.sleep(self._pacing.conflict_s * failures)

        try:
            return await retry_on_conflict(attempt, attempts=_ATTEMPTS, retriable=_RETRIABLE, before_retry=wait)
        except NotFound:
            return NodeGone(node.metadata.name)
        except ApiCallFailed as error:
            return _build_failure(node, error)

    async def _write(self, current: Node, body: dict[str, Any]) -> Node:
        meta = current.metadata
        version = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        patch = {**body, "metadata": {**body.get("metadata", {}), **version}}
        return await self._client.merge_patch(Node, meta.name, patch)


def _build_failure(node: Node, error: Exception) -> Reason:
    return Reason(code=WRITE_FAILED, message=f"node {node.metadata.name} could not be written: {error}")
