"""Keeps the status ConfigMap: made when missing, written every turn, deleted on a clean exit (specs/nodes.md 11).

What it says comes from `cluster_state.status_document`; times of transitions go on across restarts, because the old
document is read first. An API server that refuses is no reason to stop scaling: it is logged, and given back.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import structlog

from plimsoll.kube.errors import NotFound
from plimsoll.nodes.cluster_state import status_document as documents
from plimsoll.nodes.telling.config_maps import TROUBLES, Trouble, put_config_map
from plimsoll.objects.configuration import ConfigMap

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.nodes.policy import Operation
    from plimsoll.nodes.turns import Turn

log = structlog.get_logger(__name__)


class StatusWriter:
    """One ConfigMap, by the name that the operator gave."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last: documents.Document | None = None
        self._has_read = False
        self.uid = ""
        """Of the ConfigMap, once it was read or written."""

    async def write(self, turn: Turn) -> Trouble | None:
        """The error that kept it from being written; None: it is written, or the operator wants none."""
        operation = turn.policy.operation
        if not operation.write_status:
            return None
        try:
            await self._read_once(operation)
            document = _document_of(turn, self._last)
            written = await put_config_map(
                self._client,
                operation.status_name,
                namespace=operation.namespace,
                data={documents.STATUS_KEY: documents.status_text(document)},
                annotations=documents.last_updated(turn.at),
            )
        except TROUBLES as error:
            log.warning("status.not_written", name=operation.status_name, problem=str(error))
            return error
        self.uid = written.metadata.uid
        if turn.standing is not None:
            self._last = document
        return None

    async def delete(self, operation: Operation) -> Trouble | None:
        """On a clean exit: nobody keeps it up to date from now on."""
        if not operation.write_status:
            return None
        try:
            await self._client.delete(ConfigMap, operation.status_name, namespace=operation.namespace)
        except NotFound:
            return None
        except TROUBLES as error:
            log.warning("status.not_deleted", name=operation.status_name, problem=str(error))
            return error
        self._last, self.uid = None, ""
        return None

    async def _read_once(self, operation: Operation) -> None:
        if self._has_read:
            return
        try:
            found = await self._client.get(ConfigMap, operation.status_name, namespace=operation.namespace)
        except NotFound:
            found = ConfigMap()
        self._last = documents.read_status(found.data.get(documents.STATUS_KEY, ""))
        self.uid = found.metadata.uid
        self._has_read = True


def _document_of(turn: Turn, before: documents.Document | None) -> documents.Document:
    told = "" if turn.ended_early is None else str(turn.ended_early)
    if turn.standing is None:
        return documents.initializing_document(turn.at, told)
    candidates = Counter(one.group for one in turn.scale_down.unneeded)
    return documents.status_document(turn.standing, documents.Turn(candidates=candidates, message=told), before)
