"""The creation of the bootstrap objects in an empty store: namespaces, roles and bindings, priority classes.

A store that holds a namespace is not empty: what was changed or deleted there stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.bootstrap.objects import build_bootstrap_objects
from plimsoll.local.apiserver.storage import Decision, Keep, Key, Put, Stored
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


async def install_bootstrap_objects(server: Server, *, ca_certificate: str) -> None:
    """All of them or none: a server that ends half-way leaves a store that is still fresh."""
    if not server.store.count("namespaces"):
        await create_missing(server, build_bootstrap_objects(ca_certificate=ca_certificate))


async def create_missing(server: Server, objects: Iterable[Json]) -> None:
    """Store those that are not there, in one write."""
    made = dict(_find_key(server, obj) for obj in objects)

    def decide(found: Sequence[Stored | None]) -> Sequence[Decision]:
        return [Keep() if stored is not None else Put(obj) for stored, obj in zip(found, made.values(), strict=True)]

    await server.store.update_all(list(made), decide)


def _find_key(server: Server, obj: Json) -> tuple[Key, Json]:
    resource = server.registry.find_kind(obj["apiVersion"], obj["kind"])
    assert resource is not None, f"{obj['kind']} is not served"
    metadata = {
        **obj["metadata"],
        "uid": server.entropy.generate_uid(),
        "creationTimestamp": format_time(server.clock.now()),
    }
    return Key(resource.stored_as, metadata.get("namespace", ""), metadata["name"]), {**obj, "metadata": metadata}
