"""The version of an API server, and the groups and resources it serves."""

from __future__ import annotations

from functools import cache
from types import new_class
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from plimsoll.core.values import Value, Wire
from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.resource import Resource
from plimsoll.objects.codec.nulls import strip_nulls

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

W = TypeVar("W", bound=Wire)


class ServerVersion(Wire):
    """`/version`."""

    major: str = ""
    minor: str = ""
    git_version: str = ""
    platform: str = ""

    @property
    def number(self) -> tuple[int, int]:
        """(1, 34); providers write `34+`. Zeros where nothing can be read."""
        return _parse_leading_number(self.major), _parse_leading_number(self.minor)


class ServedResource(Wire):
    """One line of a version's discovery document. A subresource has a slash in its name."""

    name: str = ""
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()


class Group(Value, frozen=True):
    """An API group and its versions, the preferred one first."""

    name: str
    versions: tuple[str, ...]


class _ResourceList(Wire):
    resources: tuple[ServedResource, ...] = ()


async def fetch_groups(client: Client) -> tuple[Group, ...]:
    """All groups, the core one (whose name is empty) first."""
    core = _select_strings(_get_list(await client.get_json("/api"), "versions"))
    listed = _get_list(await client.get_json("/apis"), "groups")
    return (Group(name="", versions=core), *(_parse_group(group) for group in listed if isinstance(group, dict)))


async def fetch_resources(client: Client, api_version: str) -> tuple[ServedResource, ...]:
    """What is served in a version (`v1`, `apps/v1`), subresources included. Nothing if it is not served at all."""
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    try:
        return _read(_ResourceList, path, await client.get_json(path)).resources
    except NotFound:
        return ()


def build_metadata_resource(api_version: str, served: ServedResource) -> Resource:
    """A line of discovery as a kind of which only the metadata is read."""
    group, _, version = api_version.rpartition("/")
    return Resource(
        group=group,
        version=version,
        kind=served.kind,
        plural=served.name,
        singular=served.kind.lower(),
        namespaced=served.namespaced,
        struct=build_metadata_struct(served.kind),
    )


@cache
def build_metadata_struct(kind: str) -> type[WireObject]:
    """A struct that reads objects of a kind and nothing of them but their metadata."""

    def fill(namespace: dict[str, object]) -> None:
        namespace |= {"KIND": kind, "__module__": __name__}

    return new_class(f"{kind}Metadata", (WireObject,), exec_body=fill)


def _parse_group(value: dict[str, Any]) -> Group:
    listed = [str(version.get("version", "")) for version in _get_list(value, "versions") if isinstance(version, dict)]
    preferred = value.get("preferredVersion")
    first = str(preferred.get("version", "")) if isinstance(preferred, dict) else ""
    versions = sorted(listed, key=lambda version: version != first)
    return Group(name=str(value.get("name", "")), versions=tuple(versions))


def _read(struct: type[W], path: str, value: Any) -> W:
    try:
        return msgspec.convert(strip_nulls(value, msgspec.inspect.type_info(struct)), struct)
    except msgspec.ValidationError as error:
        raise UnreadableAnswer(f"GET {path}: {error}") from error


def _get_list(value: Any, name: str) -> list[Any]:
    member = value.get(name) if isinstance(value, dict) else None
    return member if isinstance(member, list) else []


def _select_strings(values: list[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def _parse_leading_number(text: str) -> int:
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return int(digits) if digits else 0
