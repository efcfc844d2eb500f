"""Objects that exist but cannot be decoded, found by listing, page by page, everything the controllers list.

A controller goes on with such an object (it counts as present and unmovable), so this is a warning. Only kinds that a
controller lists anyway are read; Secrets are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.parallel_requests import request_all
from plimsoll.kube.diagnosis.served_apis import BUILTIN_VERSION
from plimsoll.kube.errors import Expired
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.permissions import Namespaces
    from plimsoll.kube.diagnosis.requirements import Requirements
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.codec.decode_problems import BadObject
    from plimsoll.objects.codec.decoding import DecodedList

_SHOWN: Final = 20
_ATTEMPTS: Final = 2


class ListTarget(Value, frozen=True):
    """One kind of objects in one namespace, or in all."""

    resource: Resource
    namespace: str = ""


class ObjectCount(Value):
    """What a list held."""

    objects: int
    bad: tuple[BadObject, ...] = ()


def list_targets(requirements: Iterable[Requirements], namespaces: Namespaces) -> tuple[ListTarget, ...]:
    """What the controllers list, each once; a kind listed everywhere is not listed in a namespace again."""
    wanted = set(_list_targets(requirements, namespaces))
    everywhere = {target.resource.full_name for target in wanted if not target.namespace}
    kept = (target for target in wanted if not target.namespace or target.resource.full_name not in everywhere)
    return tuple(sorted(kept, key=lambda target: (target.resource.full_name, target.namespace)))


def _list_targets(requirements: Iterable[Requirements], namespaces: Namespaces) -> Iterator[ListTarget]:
    for need in requirements:
        for permission in need.permissions:
            version = f"{permission.group}/{BUILTIN_VERSION}" if permission.group else BUILTIN_VERSION
            resource = KINDS.find_by_plural(version, permission.resource)
            if resource is not None and "list" in permission.verbs and not permission.names:
                for namespace in permission.list_namespaces(namespaces):
                    yield ListTarget(resource=resource, namespace=namespace)


async def check_objects(client: Client, wanted: Iterable[ListTarget]) -> list[Finding]:
    """A summary, and a finding for each kind that holds unreadable objects."""
    looked_at = tuple(wanted)
    counts = await request_all(looked_at, lambda target: _count_objects(client, target))
    seen = {target: count for target, count in zip(looked_at, counts, strict=True) if isinstance(count, ObjectCount)}
    unseen = {
        target: count for target, count in zip(looked_at, counts, strict=True) if isinstance(count, PlimsollError)
    }
    unreadable = [_build_unreadable_finding(target, count) for target, count in seen.items() if count.bad]
    return [_build_summary(seen, unseen), *unreadable]


async def _count_objects(client: Client, target: ListTarget) -> ObjectCount:
    for _ in range(_ATTEMPTS - 1):
        try:
            return await _read(client, target)
        except Expired:  # the list took longer than the server keeps its state: once more
            continue
    return await _read(client, target)


async def _read(client: Client, target: ListTarget) -> ObjectCount:
    objects = 0
    bad: list[BadObject] = []
    pages: AsyncIterator[DecodedList[WireObject]]
    pages = client.iterate_pages(target.resource, Selection(namespace=target.namespace))
    async for page in pages:
        objects += len(page.items) + len(page.bad)
        bad += page.bad
    return ObjectCount(objects=objects, bad=tuple(bad))


def _build_summary(seen: dict[ListTarget, ObjectCount], unseen: dict[ListTarget, PlimsollError]) -> Finding:
    total = sum(count.objects for count in seen.values())
    bad = sum(len(count.bad) for count in seen.values())
    summary = f"{total} objects of {len(seen)} kinds, {'all readable' if not bad else f'{bad} of them not readable'}"
    details = {
        "objects": {_format_name(target): count.objects for target, count in seen.items()},
        "notSeen": {_format_name(target): str(error) for target, error in unseen.items()},
    }
    if not unseen:
        return Finding(check="objects", level=Level.OK, message=summary, details=details)
    names = ", ".join(_format_name(target) for target in unseen)
    message = f"{summary}; not listed: {names}" if seen else f"no kind could be listed: {names}"
    return Finding(check="objects", level=Level.UNKNOWN, message=message, details=details)


def _build_unreadable_finding(target: ListTarget, count: ObjectCount) -> Finding:
    kind = target.resource
    shown = [f"{_format_full_name(bad_object)}: {bad_object.problem}" for bad_object in count.bad[:_SHOWN]]
    more = f" and {len(count.bad) - 1} more" if len(count.bad) > 1 else ""
    return Finding(
        check=f"objects.{_format_name(target)}",
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


def _format_name(target: ListTarget) -> str:
    return target.resource.full_name


def _format_full_name(bad_object: BadObject) -> str:
    return "/".join(part for part in (bad_object.namespace, bad_object.name) if part) or "one without a name"
