"""Keeps the status ConfigMap: made when missing, written with news, deleted on a clean exit (specs/nodes.md 11).

Without news it is written once a minute, so that its age tells whether anybody is at work.

What it says comes from `cluster_state.status_document`; times of transitions go on across restarts, because the old
document is read first. `status_notes` adds what is ours. An API server that refuses is no reason to stop scaling: it is
logged, and given back.

What stands beside the status, as annotations of its ConfigMap: the last turn in a sentence, the options in force.

Readers of Cluster Autoscaler's status read the document alone; `plimsoll nodes status` and `configure` read these too.
Pure.
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
from plimsoll.nodes.config.options import flags_of_policy
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
class _Told:
    """What was written last."""

    document: documents.Document
    notes: dict[str, str]
    at: datetime


class StatusConfigMapWriter:
    """One ConfigMap, by the name that the operator gave."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last: documents.Document | None = None
        self._has_read = False
        self._told: _Told | None = None
        self.uid = ""
        """Of the ConfigMap, once it was read or written."""

    async def write(self, turn: LoopResult) -> ApiCallFailed | None:
        """The error that kept it from being written; None: it is written, or the operator wants none."""
        operation = turn.policy.operation
        if not operation.write_status:
            return None
        try:
            await self._read_once(operation)
            document = _document_of(turn, self._last)
            notes = build_annotations(turn)
            if self._is_old_news(document, notes, turn.at):
                return None
            written = await put_config_map(
                self._client,
                operation.status_name,
                namespace=operation.namespace,
                data={documents.STATUS_KEY: documents.status_text(document)},
                annotations={**documents.last_updated(turn.at), **notes},
            )
        except ApiCallFailed as error:
            log.warning("status.not_written", name=operation.status_name, problem=str(error))
            return error
        self.uid = written.metadata.uid
        self._told = _Told(document=document, notes=notes, at=turn.at)
        if turn.health is not None:
            self._last = document
        return None

    def _is_old_news(self, document: documents.Document, notes: dict[str, str], now: datetime) -> bool:
        told = self._told
        if told is None or now - told.at >= _AT_LEAST_EVERY:
            return False
        return notes == told.notes and documents.without_probe_times(document) == documents.without_probe_times(
            told.document
        )

    async def delete(self, operation: Operation) -> ApiCallFailed | None:
        """On a clean exit: nobody keeps it up to date from now on."""
        if not operation.write_status:
            return None
        try:
            await self._client.delete(ConfigMap, operation.status_name, namespace=operation.namespace)
        except NotFound:
            return None
        except ApiCallFailed as error:
            log.warning("status.not_deleted", name=operation.status_name, problem=str(error))
            return error
        self._last, self._told, self.uid = None, None, ""
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


def _document_of(turn: LoopResult, before: documents.Document | None) -> documents.Document:
    told = "" if turn.ended_early is None else str(turn.ended_early)
    if turn.health is None:
        return documents.initializing_document(turn.at, told)
    candidates = Counter(unneeded_node.group for unneeded_node in turn.scale_down.unneeded)
    return documents.status_document(turn.health, documents.LoopSummary(candidates=candidates, message=told), before)


LAST_LOOP_ANNOTATION: Final = "plimsoll.io/last-turn"
OPTIONS_ANNOTATION: Final = "plimsoll.io/options"
_LONGEST_SENTENCE: Final = 2_000
_LONGEST_OPTIONS: Final = 64 * 1024
"""All annotations of an object together may have four times as much."""
_PRIVATE: Final = ("kubeconfig", "cloud-config")
"""Paths on the machine it runs on: of no use to others."""


def build_annotations(turn: LoopResult) -> dict[str, str]:
    sentence = build_log_line(turn)
    notes = {
        LAST_LOOP_ANNOTATION: sentence
        if len(sentence) <= _LONGEST_SENTENCE
        else f"{sentence[: _LONGEST_SENTENCE - 1]}…"
    }
    in_force = {name: value for name, value in flags_of_policy(turn.policy).items() if name not in _PRIVATE}
    written = json.dumps(in_force, ensure_ascii=False)
    # Said empty rather than left as it was: options of an earlier turn are not in force.
    notes[OPTIONS_ANNOTATION] = written if len(written.encode()) <= _LONGEST_OPTIONS else ""
    return notes


def read_options_annotation(annotations: Mapping[str, str]) -> dict[str, Any] | None:
    """The options in force; None where nobody said, or somebody wrote over it."""
    try:
        found = json.loads(annotations.get(OPTIONS_ANNOTATION, ""))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
