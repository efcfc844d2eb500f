"""Finished discovery documents, cached until what they describe changes.

kubectl reads several of them before every command, and an OpenAPI document takes tens of milliseconds to build. A new
definition makes a new generation of the registry.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from plimsoll.local.apiserver.discovery import openapi_documents
from plimsoll.local.apiserver.discovery.groups import Versions, list_served_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.resources.registry import ResourceRegistry, ServedResource


class Document(NamedTuple):
    """Bytes to send, and their hash."""

    body: bytes
    hash: str


class DocumentCache:
    """The documents of one registry."""

    def __init__(self, registry: ResourceRegistry) -> None:
        self._generation = registry.generation
        self._groups = list_served_groups(registry)
        self._documents: dict[str, Document] = {}
        self._openapi: dict[str, tuple[tuple[ServedResource, ...], Document]] = {}

    def refresh(self, registry: ResourceRegistry) -> None:
        """Forget what the registry has changed since."""
        if self._generation != registry.generation:
            self._generation = registry.generation
            self._groups = list_served_groups(registry)
            self._documents.clear()
            served = self._collect_addresses()
            self._openapi = {name: made for name, made in self._openapi.items() if name in served}

    @property
    def groups(self) -> dict[str, Versions]:
        return self._groups

    def get_document(self, name: str, make: Callable[[], Any]) -> Document:
        if name not in self._documents:
            self._documents[name] = _encode_document(make())
        return self._documents[name]

    def get_openapi_index(self) -> Document:
        return self.get_document("openapi", self._index)

    def _index(self) -> Any:
        return openapi_documents.index(
            {name: self._make(name, *which).hash for name, which in self._collect_addresses().items()}
        )

    def get_openapi(self, name: str) -> Document | None:
        """The document of `apis/apps/v1`; None for what is not served."""
        which = self._collect_addresses().get(name)
        return None if which is None else self._make(name, *which)

    def _collect_addresses(self) -> dict[str, tuple[str, str]]:
        return {
            openapi_documents.build_address(group, version): (group, version)
            for group, versions in self._groups.items()
            for version in versions
        }

    def _make(self, name: str, group: str, version: str) -> Document:
        resources = self._groups[group][version]
        known = self._openapi.get(name)
        if known is None or not _are_the_same(known[0], resources):
            made = openapi_documents.build_group_version_document(group, version, resources)
            known = self._openapi[name] = (resources, _encode_document(made))
        return known[1]


_PUBLISHED: WeakKeyDictionary[ResourceRegistry, DocumentCache] = WeakKeyDictionary()


def get_document_cache(registry: ResourceRegistry) -> DocumentCache:
    """The documents of a registry, up to date."""
    known = _PUBLISHED.get(registry)
    if known is None:
        known = _PUBLISHED[registry] = DocumentCache(registry)
    known.refresh(registry)
    return known


def _are_the_same(some: tuple[ServedResource, ...], others: tuple[ServedResource, ...]) -> bool:
    return len(some) == len(others) and all(resource is other for resource, other in zip(some, others, strict=True))


def _encode_document(value: Any) -> Document:
    body = msgspec.json.encode(value) + b"\n"
    return Document(body, hashlib.sha512(body).hexdigest().upper())
