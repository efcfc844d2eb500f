"""One informer per kind, shared by the whole process: each object is decoded once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.informer import DEFAULT_SETTINGS, Informer
from plimsoll.kube.requests.options import EVERYTHING
from plimsoll.objects.api.meta import WireObject
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.settings import InformerSettings
    from plimsoll.kube.informer.status import InformerStatus
    from plimsoll.kube.requests.options import Selection
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.codec.decode_problems import BadObject
    from plimsoll.objects.codec.decoding import RawObject

T = TypeVar("T", bound=WireObject)


class SharedInformerFactory:
    """Informers by kind and selection, each built once. All are requested before `list_services` is called."""

    def __init__(
        self, client: Client, *, clock: Clock, entropy: Entropy, settings: InformerSettings = DEFAULT_SETTINGS
    ) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._informers: dict[tuple[str, bool, Selection], Informer[Any]] = {}
        self._is_complete = False

    def get_informer(self, kind: type[T] | Resource, selection: Selection = EVERYTHING) -> Informer[T]:
        """The informer of decoded objects. Share `get_raw_informer` where the bytes of the kind are stored anyway."""
        return cast("Informer[T]", self._get_informer(kind, selection, keep_raw=False))

    def get_raw_informer(self, kind: type[T] | Resource, selection: Selection = EVERYTHING) -> Informer[RawObject[T]]:
        """The informer of objects with their bytes, for kinds whose objects are copied."""
        return cast("Informer[RawObject[T]]", self._get_informer(kind, selection, keep_raw=True))

    def list_services(self, *, owner: str = "") -> list[Service]:
        """The services that the supervisor runs, named by `owner`. No informer can be added afterwards."""
        self._is_complete = True
        prefix = f"{owner}: " if owner else ""
        return [
            Service(
                name=f"{prefix}informer {informer.resource}{' with bytes' if keep_raw else ''} {number}",
                run=informer.run,
            )
            for number, ((_, keep_raw, _), informer) in enumerate(self._informers.items())
        ]

    def set_aside(self, found: WireObject, problem: str) -> BadObject | None:
        """Treat an object as bad in all caches that have it, until it changes; None if none has it."""
        bad = [informer.set_aside(found, problem) for informer in self._informers.values()]
        return next(filter(None, bad), None)

    def list_bad(self) -> tuple[BadObject, ...]:
        """The bad objects of all caches, each once."""
        bad = (found for informer in self._informers.values() for found in informer.cache.bad.values())
        return tuple({(found.kind, found.namespace, found.name): found for found in bad}.values())

    def list_statuses(self) -> tuple[InformerStatus, ...]:
        """The state of every informer, in the order of first request."""
        return tuple(informer.status for informer in self._informers.values())

    async def wait_until_synced(self) -> None:
        """Return once every cache has been complete once."""
        for informer in tuple(self._informers.values()):
            await informer.wait_until_synced()

    def _get_informer(self, kind: type[Any] | Resource, selection: Selection, *, keep_raw: bool) -> Informer[Any]:
        resource = self._client.calls.get_resource(kind)
        key = (resource.full_name, keep_raw, selection)
        if key in self._informers:
            return self._informers[key]
        if self._is_complete:
            raise InvalidInput(f"the informer of {resource.full_name} is requested after the others were started")
        self._informers[key] = informer = self._build_informer(kind, selection, keep_raw=keep_raw)
        return informer

    def _build_informer(self, kind: type[Any] | Resource, selection: Selection, *, keep_raw: bool) -> Informer[Any]:
        # The overload depends on the value of `keep_raw`.
        informer: Callable[..., Informer[Any]] = Informer
        return informer(
            self._client,
            kind,
            clock=self._clock,
            entropy=self._entropy,
            selection=selection,
            settings=self._settings,
            keep_raw=keep_raw,
        )
