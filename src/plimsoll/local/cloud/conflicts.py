"""Changes to an object that others change too: read, write under the condition that it is still so, or once more.

Used for everything that is written to the `Cloud` and to NodeGroups from outside of the controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from plimsoll.kube.errors import Conflict
from plimsoll.objects.api.simulated_cloud_errors import CloudFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

_TRIES: Final = 10


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]], what: str) -> T:
    """What `attempt` gives, as soon as nobody is faster; raises CloudFailed if that is always so."""
    for _ in range(_TRIES):
        try:
            return await attempt()
        except Conflict:
            continue
    raise CloudFailed(f"{what} is changed by others all the time")
