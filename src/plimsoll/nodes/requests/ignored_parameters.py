"""Tells of parameters of requests that cannot be read and are ignored (specs/nodes.md 3.2): in the log, once each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.requests.seen import Seen

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class IgnoredParameters:
    """Remembers of whom it told, as long as they are there."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[str, ...]] = {}

    def tell(self, requests: Iterable[Seen]) -> None:
        """Of all there are in this turn."""
        odd = {one.request.metadata.uid or one.name: one for one in requests if one.parameters.problems}
        for uid, one in odd.items():
            if self._told.get(uid) != one.parameters.problems:
                log.error("request.parameters_ignored", request=one.name, problems=list(one.parameters.problems))
        self._told = {uid: one.parameters.problems for uid, one in odd.items()}
