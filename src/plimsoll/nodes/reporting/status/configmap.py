"""Writes the status ConfigMap: created if missing, updated on changes, deleted on exit (docs/design/nodes.md 11).

Without changes it is written once per minute, so that its age shows whether the autoscaler is alive. The document comes
from `cluster_state.build_status_document`; transition times survive a restart, because the old document is read first.
Annotations hold the log line of the last loop and the options in force; readers of Cluster Autoscaler's status ignore
them. A failed write is logged and returned; it does not stop scaling.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.kube.config_maps import put_config_map
from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.nodes.cluster_state import status_document as documents
from plimsoll.nodes.config.options import list_policy_flags
from plimsoll.nodes.reporting.log_line import build_log_line
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.nodes.config.policy import Operation
    from plimsoll.nodes.loop_result import LoopResult


log = structlog.get_logger(__name__)


_AT_LEAST_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """The last status that was written."""

    document: documents.Document
    notes: dict[str, str]
    at: datetime


class StatusConfigMapWriter:
    """Writes one status ConfigMap."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last: documents.Document | None = None
        self._has_read = False
        self._written: _Written | None = None
        self.uid = ""
        """The uid of the ConfigMap, once it was read or written."""

    async def write(self, loop: LoopResult) -> ApiCallFailed | None:
        """Write the status; returns the error, or None if it is written or the operator turned it off."""
        operation = loop.policy.operation
        if not operation.write_status:
            return None
        try:
            await self._read_once(operation)
            document = _build_document(loop, self._last)
            notes = build_annotations(loop)
            if self._is_unchanged(document, notes, loop.at):
                return None
            written = await put_config_map(
                self._client,
                operation.status_name,
                namespace=operation.namespace,
                data={documents.STATUS_KEY: documents.format_status(document)},
                annotations={**documents.build_last_updated(loop.at), **notes},
            )
        except ApiCallFailed as error:
            log.warning("status.not_written", name=operation.status_name, problem=str(error))
            return error
        self.uid = written.metadata.uid
        self._written = _Written(document=document, notes=notes, at=loop.at)
        if loop.health is not None:
            self._last = document
        return None

    def _is_unchanged(self, document: documents.Document, notes: dict[str, str], now: datetime) -> bool:
        last = self._written
        if last is None or now - last.at >= _AT_LEAST_EVERY:
            return False
        return notes == last.notes and documents.without_probe_times(document) == documents.without_probe_times(
            last.document
        )

    async def write_progress(self, operation: Operation, started_at: datetime, now: datetime) -> ApiCallFailed | None:
        """Write that a loop iteration is under way; its end writes the status, and that none is."""
        if not operation.write_status:
            return None
        notes = {**documents.build_last_updated(now), LOOP_STARTED_ANNOTATION: started_at.isoformat(timespec="seconds")}
        # Written before the answer is known: the next status must be written even if it is unchanged.
        self._written = None
        try:
            await put_config_map(
                self._client, operation.status_name, namespace=operation.namespace, data={}, annotations=notes
            )
        except ApiCallFailed as error:
            log.warning("status.not_written", name=operation.status_name, problem=str(error))
            return error
        return None

    async def delete(self, operation: Operation) -> ApiCallFailed | None:
        """Delete the status on a clean exit; it would become stale."""
        if not operation.write_status:
            return None
        try:
            await self._client.delete(ConfigMap, operation.status_name, namespace=operation.namespace)
        except NotFound:
            return None
        except ApiCallFailed as error:
            log.warning("status.not_deleted", name=operation.status_name, problem=str(error))
            return error
        self._last, self._written, self.uid = None, None, ""
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


def _build_document(loop: LoopResult, before: documents.Document | None) -> documents.Document:
    reason = loop.ended_early or loop.held_back
    message = "" if reason is None else str(reason)
    if loop.health is None:
        return documents.build_initializing_document(loop.at, message)
    candidates = Counter(unneeded_node.group for unneeded_node in loop.scale_down.unneeded)
    return documents.build_status_document(
        loop.health, documents.LoopSummary(candidates=candidates, message=message), before
    )


LAST_LOOP_ANNOTATION: Final = "plimsoll.io/last-turn"
LOOP_STARTED_ANNOTATION: Final = "plimsoll.io/loop-started"
"""When the loop iteration started that is under way; empty: none is, or it has just started."""
OTHER_AUTOSCALER_ANNOTATION: Final = "plimsoll.io/other-autoscaler"
"""The other autoscalers beside which this one does nothing; empty: there are none."""
OPTIONS_ANNOTATION: Final = "plimsoll.io/options"
_LONGEST_SENTENCE: Final = 2_000
_LONGEST_OPTIONS: Final = 64 * 1024
"""All annotations of an object together may have four times as much."""
_PRIVATE: Final = ("kubeconfig", "cloud-config")
"""Paths on the autoscaler's machine: of no use to readers."""


def build_annotations(loop: LoopResult) -> dict[str, str]:
    sentence = build_log_line(loop)
    notes = {
        LAST_LOOP_ANNOTATION: sentence
        if len(sentence) <= _LONGEST_SENTENCE
        else f"{sentence[: _LONGEST_SENTENCE - 1]}…",
        LOOP_STARTED_ANNOTATION: "",
        OTHER_AUTOSCALER_ANNOTATION: str(loop.held_back.facts.get("autoscalers", "")) if loop.held_back else "",
    }
    in_force = {name: value for name, value in list_policy_flags(loop.policy).items() if name not in _PRIVATE}
    written = json.dumps(in_force, ensure_ascii=False)
    # Written empty: the options of an earlier loop are not in force.
    notes[OPTIONS_ANNOTATION] = written if len(written.encode()) <= _LONGEST_OPTIONS else ""
    return notes


def read_options_annotation(annotations: Mapping[str, str]) -> dict[str, Any] | None:
    """The options in force; None: absent or overwritten by hand."""
    try:
        found = json.loads(annotations.get(OPTIONS_ANNOTATION, ""))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
