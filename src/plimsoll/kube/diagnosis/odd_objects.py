"""Objects that are there but cannot be read: found by listing, page by page, everything the controllers list.

A controller goes on with such an object (it counts as present and unmovable), so this is a warning. Only kinds that a
controller lists anyway are looked at; nobody's secrets are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.batches import ask_each
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.served_apis import BUILTIN_VERSION
from plimsoll.kube.errors import Expired
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.permissions import Places
    from plimsoll.kube.diagnosis.requirements import Requirements
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.codec.decode_problems import BadObject
    from plimsoll.objects.codec.decoding import DecodedList

_SHOWN: Final = 20
_ATTEMPTS: Final = 2


class Shelf(Value, frozen=True):
    """One kind of objects in one namespace, or in all."""

    resource: Resource
    namespace: str = ""


class Count(Value):
    """What a list held."""

    objects: int
    bad: tuple[BadObject, ...] = ()


def shelves(requirements: Iterable[Requirements], places: Places) -> tuple[Shelf, ...]:
    """What the controllers list, each once; a kind listed everywhere is not listed in a namespace again."""
    wanted = set(_wanted(requirements, places))
    everywhere = {shelf.resource.full_name for shelf in wanted if not shelf.namespace}
    kept = (shelf for shelf in wanted if not shelf.namespace or shelf.resource.full_name not in everywhere)
    return tuple(sorted(kept, key=lambda shelf: (shelf.resource.full_name, shelf.namespace)))


def _wanted(requirements: Iterable[Requirements], places: Places) -> Iterator[Shelf]:
    for need in requirements:
        for permission in need.permissions:
            version = f"{permission.group}/{BUILTIN_VERSION}" if permission.group else BUILTIN_VERSION
            resource = KINDS.by_plural(version, permission.resource)
            if resource is not None and "list" in permission.verbs and not permission.names:
                for namespace in permission.namespaces_in(places):
                    yield Shelf(resource=resource, namespace=namespace)


async def look_through(client: Client, wanted: Iterable[Shelf]) -> list[Finding]:
    """A summary, and a finding for each kind that holds odd objects."""
    looked_at = tuple(wanted)
    counts = await ask_each(looked_at, lambda shelf: _counted(client, shelf))
    seen = {shelf: count for shelf, count in zip(looked_at, counts, strict=True) if isinstance(count, Count)}
    unseen = {shelf: count for shelf, count in zip(looked_at, counts, strict=True) if isinstance(count, PlimsollError)}
    odd = [_odd(shelf, count) for shelf, count in seen.items() if count.bad]
    return [_summary(seen, unseen), *odd]


async def _counted(client: Client, shelf: Shelf) -> Count:
    for _ in range(_ATTEMPTS - 1):
        try:
            return await _read(client, shelf)
        except Expired:  # the list took longer than the server keeps its state: once more
            continue
    return await _read(client, shelf)


async def _read(client: Client, shelf: Shelf) -> Count:
    objects = 0
    bad: list[BadObject] = []
    pages: AsyncIterator[DecodedList[WireObject]]
    pages = client.pages(shelf.resource, Selection(namespace=shelf.namespace))
    async for page in pages:
        objects += len(page.items) + len(page.bad)
        bad += page.bad
    return Count(objects=objects, bad=tuple(bad))


def _summary(seen: dict[Shelf, Count], unseen: dict[Shelf, PlimsollError]) -> Finding:
    total = sum(count.objects for count in seen.values())
    bad = sum(len(count.bad) for count in seen.values())
    told = f"{total} objects of {len(seen)} kinds, {'all readable' if not bad else f'{bad} of them not readable'}"
    details = {
        "objects": {_name(shelf): count.objects for shelf, count in seen.items()},
        "notSeen": {_name(shelf): str(error) for shelf, error in unseen.items()},
    }
    if not unseen:
        return Finding(check="objects", level=Level.OK, message=told, details=details)
    names = ", ".join(_name(shelf) for shelf in unseen)
    message = f"{told}; not listed: {names}" if seen else f"no kind could be listed: {names}"
    return Finding(check="objects", level=Level.UNKNOWN, message=message, details=details)


def _odd(shelf: Shelf, count: Count) -> Finding:
    kind = shelf.resource
    shown = [f"{_who(bad_object)}: {bad_object.problem}" for bad_object in count.bad[:_SHOWN]]
    more = f" and {len(count.bad) - 1} more" if len(count.bad) > 1 else ""
    return Finding(
        check=f"objects.{_name(shelf)}",
        level=Level.WARN,
        message=f"{len(count.bad)} of {count.objects} {kind.plural} cannot be read: {shown[0]}{more}",
        fix=f"look at it with kubectl get {kind.full_name} -o yaml; until then it counts as present and unmovable",
        details={
            "objects": [
                {
                    "namespace": bad_object.namespace,
                    "name": bad_object.name,
                    "uid": bad_object.uid,
                    "problem": bad_object.problem,
                }
                for bad_object in count.bad[:_SHOWN]
            ],
            "total": len(count.bad),
        },
    )


def _name(shelf: Shelf) -> str:
    return shelf.resource.full_name


def _who(one: BadObject) -> str:
    return "/".join(part for part in (one.namespace, one.name) if part) or "one without a name"
