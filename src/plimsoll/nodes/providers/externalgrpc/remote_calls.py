"""Calls of a client: reads raise, changes return outcomes, and calls that the server lacks are remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.nodes.model.call_outcomes import CallFailed, Done, NotImplementedByProvider
from plimsoll.nodes.providers.externalgrpc.codes import Code, RpcFailed, to_failure
from plimsoll.nodes.providers.externalgrpc.methods import METHODS
from plimsoll.nodes.providers.values import ProviderFailed

if TYPE_CHECKING:
    from plimsoll.nodes.model.call_outcomes import Outcome
    from plimsoll.nodes.providers.externalgrpc.caches import Caches
    from plimsoll.nodes.providers.externalgrpc.methods import Calls


class RemoteCalls:
    """Calls by the names of `METHODS`, with the fields of their requests. `what` names a call in messages."""

    def __init__(self, calls: Calls, caches: Caches) -> None:
        self._calls = calls
        self.caches = caches

    async def read(self, name: str, **fields: Any) -> Any:
        """The answer; raises `ProviderFailed`."""
        try:
            return await self._send(name, fields)
        except RpcFailed as error:
            raise ProviderFailed(f"{name}: {error}") from error

    async def read_optional(self, name: str, what: str, **fields: Any) -> Any | NotImplementedByProvider:
        """The same for a call that a server need not implement."""
        if self.caches.is_missing(name):
            return NotImplementedByProvider(call=what)
        try:
            return await self._send(name, fields)
        except RpcFailed as error:
            if error.code is not Code.UNIMPLEMENTED:
                raise ProviderFailed(f"{name}: {error}") from error
        # An answer of one group only must not keep the others from being asked.
        if "id" not in fields:
            self.caches.note_missing(name)
        return NotImplementedByProvider(call=what)

    async def change(self, name: str, what: str, **fields: Any) -> Outcome:
        outcome = await self.change_with_answer(name, what, **fields)
        return outcome if isinstance(outcome, NotImplementedByProvider | CallFailed) else Done()

    async def change_with_answer(
        self, name: str, what: str, **fields: Any
    ) -> Any | CallFailed | NotImplementedByProvider:
        try:
            return await self._send(name, fields)
        except RpcFailed as error:
            if error.code is Code.UNIMPLEMENTED:
                return NotImplementedByProvider(call=what)
            return to_failure(error)

    async def probe(self, name: str, **fields: Any) -> bool:
        """Whether the server implements a call: it then refuses the invalid request that is sent."""
        try:
            await self._send(name, fields)
        except RpcFailed as error:
            if error.code is Code.UNIMPLEMENTED:
                return False
            if error.code is not Code.INVALID_ARGUMENT:
                raise ProviderFailed(f"{name}: {error}") from error
        return True

    async def close(self) -> None:
        await self._calls.close()

    async def _send(self, name: str, fields: dict[str, Any]) -> Any:
        method = METHODS[name]
        return await self._calls.call(method, method.request(**fields))
