"""Writing a ConfigMap that a controller owns: patched, or created when it is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.client import Client


async def put_config_map(
    client: Client,
    name: str,
    *,
    namespace: str,
    data: Mapping[str, str | None],
    annotations: Mapping[str, str] | None = None,
) -> ConfigMap:
    """Set these keys (None removes a key) and leave all others alone."""
    metadata: dict[str, Any] = {"annotations": dict(annotations)} if annotations else {}
    patch = {"metadata": metadata, "data": dict(data)}
    try:
        return await client.merge_patch(ConfigMap, name, patch, namespace=namespace)
    except NotFound:
        written = {key: value for key, value in data.items() if value is not None}
        body = {"metadata": {"name": name, "namespace": namespace, **metadata}, "data": written}
    try:
        return await client.create(ConfigMap, body, namespace=namespace)
    except AlreadyExists:
        return await client.merge_patch(ConfigMap, name, patch, namespace=namespace)
