"""Objects that exist and cannot be decoded: why, and what can be read and written of them all the same.

Every object has metadata and most have a status with conditions. That is enough to report on the object itself which
field is wrong. The answer to a write cannot be decoded either; the server has accepted it nevertheless.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from plimsoll.core.values import Value
from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.kube.requests.paging import PartialObjectMetadata
from plimsoll.objects.api.meta import ObjectMeta, WireObject
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import RawObject, convert_object, decode_with_raw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.resource import Resource

T = TypeVar("T", bound=WireObject)


class UndecodedObject(Value):
    """The part of an object that every kind has. `status` is empty if it is no object."""

    metadata: ObjectMeta
    status: dict[str, Any]


async def get_or_explain(client: Client, of: type[T], name: str, *, namespace: str) -> RawObject[T] | BadObject:
    """One object, or why it cannot be decoded. Raises `NotFound`.

    An answer that is not this object says nothing about it: it raises `UnreadableAnswer`.
    """
    found = decode_with_raw(of, await client.get_raw(of, name, namespace=namespace))
    if isinstance(found, BadObject) and (found.namespace, found.name) != (namespace, name):
        raise UnreadableAnswer(f"{of.get_kind_name()} {namespace}/{name}: {found.problem}")
    return found


async def read_undecoded(
    client: Client, of: type[WireObject] | Resource, name: str, *, namespace: str
) -> UndecodedObject | None:
    """One object, whatever is wrong with its spec and its status; None: it is gone."""
    try:
        raw = await client.get_raw(of, name, namespace=namespace)
    except NotFound:
        return None
    document = _parse(raw)
    partial = convert_object(PartialObjectMetadata, {"metadata": document.get("metadata")})
    if isinstance(partial, BadObject) or partial.metadata.name != name:
        raise UnreadableAnswer(f"{namespace}/{name}: its metadata cannot be read")
    status = document.get("status")
    return UndecodedObject(metadata=partial.metadata, status=status if isinstance(status, dict) else {})


async def patch_undecoded_status(
    client: Client, of: type[WireObject] | Resource, metadata: ObjectMeta, status: Mapping[str, Any]
) -> None:
    """Patch the status of an object if nothing has changed since it was read. One that is gone needs none."""
    body = {"metadata": {"resourceVersion": metadata.resource_version}, "status": dict(status)}
    with suppress(NotFound, UnreadableAnswer):
        await client.merge_patch(of, metadata.name, body, namespace=metadata.namespace, subresource="status")


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
