"""Caches that keep themselves up to date with an API server: list, watch, resume, and tell whoever wants to know."""

from plimsoll.kube.informer.cache import Cache
from plimsoll.kube.informer.changes import Added, BadGone, Change, Deleted, Key, TurnedBad, Updated
from plimsoll.kube.informer.handlers import HandlerFeed
from plimsoll.kube.informer.informer import Informer
from plimsoll.kube.informer.settings import InformerSettings
from plimsoll.kube.informer.statuses import HandlerStatus, InformerStatus

__all__ = [
    "Added",
    "BadGone",
    "Cache",
    "Change",
    "Deleted",
    "HandlerFeed",
    "HandlerStatus",
    "Informer",
    "InformerSettings",
    "InformerStatus",
    "Key",
    "TurnedBad",
    "Updated",
]
