"""Storage of the API server: one contract, two drivers, a watch cache and its history.

Handlers use `Store`; `SqliteDriver` and `MemoryDriver` make its writes durable or not. Below them: `objects` (stored
bytes with labels and fields for selectors) and `watch_cache` (events, history, lists and watchers).
"""

from plimsoll.local.apiserver.storage.drivers.memory import MemoryDriver
from plimsoll.local.apiserver.storage.drivers.sqlite import Durability, SqliteDriver
from plimsoll.local.apiserver.storage.errors import (
    Compacted,
    Expired,
    NotStored,
    RevisionAhead,
    SchemaTooNew,
    StorageError,
    StoreClosed,
    StoreCorrupt,
    StoreInUse,
    StoreUnusable,
    TooLarge,
)
from plimsoll.local.apiserver.storage.objects import LARGEST_OBJECT_BYTES, Key, Stored, compute_encoded_size
from plimsoll.local.apiserver.storage.store import Decision, Delete, Keep, Put, Store
from plimsoll.local.apiserver.storage.watch_cache.collection import ListQuery, Page, select_from
from plimsoll.local.apiserver.storage.watch_cache.events import Event, EventType
from plimsoll.local.apiserver.storage.watch_cache.history import HistoryLimits
from plimsoll.local.apiserver.storage.watch_cache.watchers import Watch

__all__ = [
    "LARGEST_OBJECT_BYTES",
    "Compacted",
    "Decision",
    "Delete",
    "Durability",
    "Event",
    "EventType",
    "Expired",
    "HistoryLimits",
    "Keep",
    "Key",
    "ListQuery",
    "MemoryDriver",
    "NotStored",
    "Page",
    "Put",
    "RevisionAhead",
    "SchemaTooNew",
    "SqliteDriver",
    "StorageError",
    "Store",
    "StoreClosed",
    "StoreCorrupt",
    "StoreInUse",
    "StoreUnusable",
    "Stored",
    "TooLarge",
    "Watch",
    "compute_encoded_size",
    "select_from",
]
