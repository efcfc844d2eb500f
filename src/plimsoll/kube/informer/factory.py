"""One informer per kind, shared by the whole process: each object is decoded once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.informer import DEFAULT_SETTINGS, Informer
from plimsoll.kube.requests.options import EVERYTHING
from plimsoll.objects.api.meta import WireObject
from plimsoll.runtime.services import Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.settings import InformerSettings
    from plimsoll.kube.informer.status import InformerStatus
    from plimsoll.kube.requests.options import Selection
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.codec.decoding import RawObject

T = TypeVar("T", bound=WireObject)


class SharedInformerFactory:
    """Gives out informers, the same one for the same question. All are asked for before `services` is."""

    def __init__(
        self, client: Client, *, clock: Clock, entropy: Entropy, settings: InformerSettings = DEFAULT_SETTINGS
    ) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._settings = settings
        self._informers: dict[tuple[str, bool, Selection], Informer[Any]] = {}
        self._is_complete = False

    def of(self, of: type[T] | Resource, selection: Selection = EVERYTHING) -> Informer[T]:
        """Of slim objects. Where somebody keeps the bytes of the same kind, it is cheaper to share `with_raw`."""
        return cast("Informer[T]", self._get_informer(of, selection, keep_raw=False))

    def with_raw(self, of: type[T] | Resource, selection: Selection = EVERYTHING) -> Informer[RawObject[T]]:
        """Of objects with their bytes: for kinds that are copied from."""
        return cast("Informer[RawObject[T]]", self._get_informer(of, selection, keep_raw=True))

    def services(self, *, owner: str = "") -> list[Service]:
        """What the supervisor keeps running; `owner` tells several sets apart. Nothing new can be asked for then."""
        self._is_complete = True
        owner = f"{owner}: " if owner else ""
        return [
            Service(
                name=f"{owner}informer {informer.resource}{' with bytes' if keep_raw else ''} {number}",
                run=informer.run,
            )
            for number, ((_, keep_raw, _), informer) in enumerate(self._informers.items())
        ]

    def statuses(self) -> tuple[InformerStatus, ...]:
        """The state of every informer, in the order in which they were asked for."""
        return tuple(informer.status for informer in self._informers.values())

    async def wait_until_synced(self) -> None:
        """Return once every cache has been complete."""
        for informer in tuple(self._informers.values()):
            await informer.wait_until_synced()

    def _get_informer(self, of: type[Any] | Resource, selection: Selection, *, keep_raw: bool) -> Informer[Any]:
        resource = self._client.calls.resource(of)
        key = (resource.full_name, keep_raw, selection)
        if key in self._informers:
            return self._informers[key]
        if self._is_complete:
            raise InvalidInput(f"the informer of {resource.full_name} is asked for after the others were started")
        self._informers[key] = informer = self._build_informer(of, selection, keep_raw=keep_raw)
        return informer

    def _build_informer(self, of: type[Any] | Resource, selection: Selection, *, keep_raw: bool) -> Informer[Any]:
        # Which of its overloads this is only `keep_raw` knows.
        informer: Callable[..., Informer[Any]] = Informer
        return informer(
            self._client,
            of,
            clock=self._clock,
            entropy=self._entropy,
            selection=selection,
            settings=self._settings,
            keep_raw=keep_raw,
        )
