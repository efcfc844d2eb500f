"""The last plan of each object in a ConfigMap, for `plimsoll why` in a cluster whose journal is out of reach.

Each controller has a ConfigMap of its own, of at most 256 KiB (`build_last_plans`). Only changed keys are written, at
most every ten seconds; what comes in between is written with the next. The content from before a restart is read first.
A failed write is logged, returned and retried.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.journal.last_plans import build_last_plans
from plimsoll.kube.config_maps import put_config_map
from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.journal.entries import Entry
    from plimsoll.kube.client import Client

log = structlog.get_logger(__name__)

_PAUSE_S: Final = 10.0
_MOST_WAITING: Final = 100
"""The number of unwritten entries that are retained while the server refuses writes."""


class LastPlansWriter:
    """One ConfigMap, by its name."""

    def __init__(self, client: Client, name: str, *, pause_s: float = _PAUSE_S) -> None:
        self._client = client
        self._name = name
        self._pause_s = pause_s
        self._data: dict[str, str] | None = None
        self._waiting: deque[Entry] = deque(maxlen=_MOST_WAITING)
        self._tried_at: datetime | None = None

    async def keep(self, entry: Entry, namespace: str) -> ApiCallFailed | None:
        """Write now, or with the next entries."""
        self._waiting.append(entry)
        return await self.catch_up(namespace, entry.at)

    async def catch_up(self, namespace: str, now: datetime) -> ApiCallFailed | None:
        """Write the waiting entries if the pause since the last write is over."""
        if not self._is_due(now):
            return None
        self._tried_at = now if self._waiting else self._tried_at
        return await self.write(namespace)

    async def write(self, namespace: str) -> ApiCallFailed | None:
        """Writes what waits."""
        if not self._waiting:
            return None
        try:
            before = await self._read(namespace) if self._data is None else self._data
            after = build_last_plans(before, self._waiting)
            gone: dict[str, str | None] = dict.fromkeys(before.keys() - after.keys())
            changed = {key: value for key, value in after.items() if before.get(key) != value}
            if gone or changed:
                await put_config_map(self._client, self._name, namespace=namespace, data={**gone, **changed})
        except ApiCallFailed as error:
            # The content of the ConfigMap is no longer known.
            self._data = None
            log.warning("last_plans.not_written", name=self._name, problem=str(error))
            return error
        self._data = after
        self._waiting.clear()
        return None

    def _is_due(self, now: datetime) -> bool:
        """A clock that was set back does not delay the write."""
        return self._tried_at is None or not 0 <= (now - self._tried_at).total_seconds() < self._pause_s

    async def _read(self, namespace: str) -> dict[str, str]:
        try:
            return dict((await self._client.get(ConfigMap, self._name, namespace=namespace)).data)
        except NotFound:
            return {}
