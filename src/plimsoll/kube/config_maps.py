"""ConfigMaps that controllers keep: patched, made when missing; and what may go wrong with that, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import GaveUp, Unreachable
from plimsoll.kube.errors import AlreadyExists, ApiError, CredentialsFailed, NotAllowed, NotFound, UnreadableAnswer
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.client import Client

TROUBLES: Final = (ApiError, Unreachable, UnreadableAnswer, CredentialsFailed, NotAllowed, GaveUp)
"""What a client raises when a server refuses or is not there; anything else is a mistake of ours."""
Trouble = ApiError | Unreachable | UnreadableAnswer | CredentialsFailed | NotAllowed | GaveUp


async def put_config_map(
    client: Client,
    name: str,
    *,
    namespace: str,
    data: Mapping[str, str | None],
    annotations: Mapping[str, str] | None = None,
) -> ConfigMap:
    """Sets these keys (None removes one) and leaves all others alone."""
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
