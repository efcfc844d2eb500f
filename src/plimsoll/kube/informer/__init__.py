"""Caches that follow an API server: list, watch, resume, and notify handlers."""

from plimsoll.kube.informer.delivery.handler import HandlerRunner
from plimsoll.kube.informer.events import Added, BadGone, Change, Deleted, Key, TurnedBad, Updated
from plimsoll.kube.informer.informer import Informer
from plimsoll.kube.informer.settings import InformerSettings
from plimsoll.kube.informer.status import HandlerStatus, InformerStatus
from plimsoll.kube.informer.store.cache import Cache

__all__ = [
    "Added",
    "BadGone",
    "Cache",
    "Change",
    "Deleted",
    "HandlerRunner",
    "HandlerStatus",
    "Informer",
    "InformerSettings",
    "InformerStatus",
    "Key",
    "TurnedBad",
    "Updated",
]
