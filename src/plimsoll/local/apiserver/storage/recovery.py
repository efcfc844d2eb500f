"""Recovery of collections from a driver: states older than the history first, then the history, change by change."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from plimsoll.local.apiserver.storage.objects import Key, Stored
from plimsoll.local.apiserver.storage.watch_cache.events import Change

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.storage.drivers.interface import Recovered
    from plimsoll.local.apiserver.storage.watch_cache.collection import Collection


def rebuild(recovered: Recovered, collection_of: Callable[[str], Collection], *, now_s: float) -> list[int]:
    """Fill the collections; returns the revisions of rows that should have been forgotten before, and were not."""
    unneeded: list[int] = []
    for row in recovered.rows:
        collection = collection_of(row.resource)
        path = Key(row.resource, row.namespace, row.name).path
        before = collection.objects.get(path)
        after = None
        if row.data is not None:
            after = Stored(collection.traits, sys.intern(row.namespace), row.name, row.revision, row.data)
        if row.revision > collection.history.floor and (before or after):
            # The clock of the last run means nothing here: what was kept counts as new.
            collection.apply(Change(row.revision, path, before, after, now_s))
            continue
        if before is not None:
            unneeded.append(before.revision)
        if after is None:
            unneeded.append(row.revision)
        collection.put(path, after)
    return unneeded
