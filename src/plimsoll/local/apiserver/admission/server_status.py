"""Status that the server itself writes: the disruptions of a budget, the usage of a quota.

Such a write belongs to no request: it passes no admission, is atomic, and has the server's own field manager.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.apply.field_manager import FieldManager
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from plimsoll.local.apiserver.storage import Decision, Keep, Key, Put, Stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

_MANAGER: Final = "kube-apiserver"


async def write_status(store: Store, key: Key, status_of: Callable[[Json], Json], *, now: datetime) -> bool:
    """Put what `status_of` makes of the newest state in the place of its status; False if the object is gone.

    `status_of` may raise: then nothing is written.
    """

    def change(current: Stored | None) -> Decision:
        if current is None:
            return Keep()
        before = current.decode_body()
        status = status_of(current.decode_body())
        if status == before.get("status"):
            return Keep()
        return Put(
            _build_field_manager(before["apiVersion"], before["kind"]).update(
                before, {**before, "status": status}, manager=_MANAGER, now=now
            )
        )

    return await store.update(key, change) is not None


@cache
def _build_field_manager(api_version: str, kind: str) -> FieldManager:
    schema = TypeSchema.from_builtin(api_version, kind)
    assert schema is not None, f"{kind} is not a built-in kind"
    return FieldManager({api_version: schema}, api_version=api_version, kind=kind, subresource="status")
