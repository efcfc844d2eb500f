"""Lists the TidbClusters of a namespace so that none that is known to exist is missing.

A list may be incomplete, and an object that the list lacks would count as gone: what was created for an autoscaler
would be forgotten, and deleted with it. So every cluster that is known by name and not listed is read by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from plimsoll.core.values import Value
from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.tidb import TidbCluster
from plimsoll.objects.codec.decoding import RawObject

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.kube.client import Client

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class ListedClusters(Value):
    """Clusters in the order of the server, each once. `unreadable` has the problem of each that cannot be decoded."""

    clusters: tuple[RawObject[TidbCluster], ...]
    unreadable: dict[str, str] = {}


async def list_clusters(client: Client, namespace: str, *, known: Collection[str]) -> ListedClusters:
    """All TidbClusters of a namespace. Raises `UnreadableAnswer` for a known cluster that cannot be decoded."""
    found: dict[str, RawObject[TidbCluster]] = {}
    unreadable: dict[str, str] = {}
    async for page in client.iterate_raw_pages(TidbCluster, Selection(namespace=namespace)):
        for bad in page.listed.bad:
            log.warning("object.unreadable", kind=bad.kind, namespace=namespace, name=bad.name, problem=bad.problem)
            unreadable[bad.name] = bad.problem
        for view, raw in zip(page.listed.items, page.raws, strict=True):
            found.setdefault(view.metadata.name, RawObject(view=view, raw=raw))
    for name in sorted(set(known) - found.keys() - unreadable.keys()):
        try:
            found[name] = await client.get_with_raw(TidbCluster, name, namespace=namespace)
        except NotFound:
            continue
        log.warning("list.incomplete", kind="TidbCluster", namespace=namespace, name=name)
    return ListedClusters(clusters=tuple(found.values()), unreadable=unreadable)
