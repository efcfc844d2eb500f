"""The history of ProvisioningRequests: every condition that was written, including repeated ones.

It watches the store and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.local.apiserver.storage import Store

REQUESTS: Final = "autoscaling.x-k8s.io/provisioningrequests"


class RequestHistory:
    """By `namespace/name`; kept when a request is deleted."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._seen: dict[str, list[dict[str, Any]]] = {}
        self._histories: dict[str, list[dict[str, str]]] = {}

    def list_changes(self, known_as: str) -> list[dict[str, str]]:
        return list(self._histories.get(known_as, ()))

    async def run(self) -> None:
        with self._store.watch(REQUESTS) as changes:
            async for event in changes:
                body = event.object.decode_body()
                known_as = f"{event.object.key.namespace}/{event.object.key.name}"
                self._take(known_as, (body.get("status") or {}).get("conditions") or [])

    def _take(self, known_as: str, conditions: list[dict[str, Any]]) -> None:
        before = self._seen.get(known_as, [])
        self._seen[known_as] = conditions
        now = format_time(self._clock.now())
        for condition in conditions:
            if condition not in before:
                entry = {name: str(condition.get(name, "")) for name in ("type", "status", "reason")}
                self._histories.setdefault(known_as, []).append({"time": now, **entry})
