"""The ConfigMap of Plimsoll's controllers: options of each subsystem, and the pause annotation.

Writers never overwrite a change that was made since they read: a write names the version that was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import GaveUp
from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from plimsoll.kube.client import Client

    T = TypeVar("T")

CONFIG_MAP: Final = "plimsoll"
"""The ConfigMap of the program, in the namespace of the program."""
_ATTEMPTS: Final = 5


async def read_config_map(client: Client, namespace: str) -> ConfigMap | None:
    """None: there is no ConfigMap yet."""
    try:
        return await client.get(ConfigMap, CONFIG_MAP, namespace=namespace)
    except NotFound:
        return None


async def patch_config_map(client: Client, namespace: str, patch: dict[str, Any], *, version: str) -> None:
    """Patches the ConfigMap at this version, or creates it where `version` is empty.

    Raises `Conflict` if the ConfigMap has changed since it was read.
    """
    metadata = patch.get("metadata", {})
    if not version:
        body = {**patch, "metadata": {**metadata, "name": CONFIG_MAP, "namespace": namespace}}
        await client.create(ConfigMap, body, namespace=namespace)
        return
    body = {**patch, "metadata": {**metadata, "resourceVersion": version}}
    try:
        await client.merge_patch(ConfigMap, CONFIG_MAP, body, namespace=namespace)
    except NotFound as error:
        # The ConfigMap was deleted after it was read.
        raise Conflict(error.status) from error


async def retry_update(namespace: str, attempt: Callable[[], Awaitable[T]]) -> T:
    """Runs a read-modify-write of the ConfigMap until no other writer is faster; raises `GaveUp` otherwise."""
    problem = f"ConfigMap {namespace}/{CONFIG_MAP} was changed by other writers {_ATTEMPTS} times meanwhile; try again"
    return await retry_on_conflict(attempt, attempts=_ATTEMPTS, on_exhausted=GaveUp(problem))
