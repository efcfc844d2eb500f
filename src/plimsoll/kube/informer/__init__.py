"""Caches that follow an API server: list, watch, resume, and notify handlers."""

from plimsoll.kube.informer.delivery.handler import HandlerRunner
from plimsoll.kube.informer.events import Added, BecameUnreadable, Change, Deleted, Key, UnreadableDeleted, Updated
from plimsoll.kube.informer.informer import Informer
from plimsoll.kube.informer.settings import InformerSettings
from plimsoll.kube.informer.status import HandlerStatus, InformerStatus
from plimsoll.kube.informer.store.cache import Cache

__all__ = [
    "Added",
    "BecameUnreadable",
    "Cache",
    "Change",
    "Deleted",
    "HandlerRunner",
    "HandlerStatus",
    "Informer",
    "InformerSettings",
    "InformerStatus",
    "Key",
    "UnreadableDeleted",
    "Updated",
]
