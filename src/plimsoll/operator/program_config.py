"""The ConfigMap of Plimsoll's controllers: options of each subsystem, and the pause annotation.

Writers never overwrite a change that was made since they read: a write names the version that was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import GaveUp
from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

CONFIG_MAP: Final = "plimsoll"
"""In the namespace of the program."""
WRITE_ATTEMPTS: Final = 5


async def read_config_map(client: Client, namespace: str) -> ConfigMap | None:
    """None: there is no ConfigMap yet."""
    try:
        return await client.get(ConfigMap, CONFIG_MAP, namespace=namespace)
    except NotFound:
        return None


async def patch_config_map(client: Client, namespace: str, patch: dict[str, Any], *, version: str) -> bool:
    """Patches the ConfigMap at this version, or creates it where `version` is empty. False: it has changed since."""
    metadata = patch.get("metadata", {})
    try:
        if version:
            body = {**patch, "metadata": {**metadata, "resourceVersion": version}}
            await client.merge_patch(ConfigMap, CONFIG_MAP, body, namespace=namespace)
        else:
            body = {**patch, "metadata": {**metadata, "name": CONFIG_MAP, "namespace": namespace}}
            await client.create(ConfigMap, body, namespace=namespace)
    except Conflict:  # AlreadyExists is a Conflict.
        return False
    except NotFound:
        if not version:  # The namespace is missing.
            raise
        return False
    return True


def too_many_conflicts(namespace: str) -> GaveUp:
    return GaveUp(
        f"ConfigMap {namespace}/{CONFIG_MAP} was changed by others {WRITE_ATTEMPTS} times meanwhile; try again"
    )
