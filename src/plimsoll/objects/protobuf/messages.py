"""The messages: field numbers with JSON names and types, and the message of an apiVersion and kind."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final

from plimsoll.core.values import Value

CORE: Final = "k8s.io.api.core.v1."
META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1."
RUNTIME: Final = "k8s.io.apimachinery.pkg.runtime."
EXTENSIONS: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."

# Fields that are inline in the JSON object, as with Go's `json:",inline"`.
_INLINE: Final = frozenset(
    {"localObjectReference", "ephemeralContainerCommon", "persistentVolumeSource", "handler", "volumeSource"}
)
# Names that the table spells as protobuf does.
_JSON_NAMES: Final = {
    (f"{EXTENSIONS}JSONSchemaProps", "schema"): "$schema",
    (f"{EXTENSIONS}JSONSchemaProps", "ref"): "$ref",
    ("k8s.io.api.authentication.v1.BoundObjectReference", "uID"): "uid",
}


class FieldType(Value):
    """One field of a message; `type` is a scalar's name or a message's, and of a map that of its values."""

    name: str
    type: str
    is_repeated: bool = False
    is_map: bool = False
    is_inline: bool = False


@cache
def find_message(name: str) -> dict[int, FieldType] | None:
    """The fields by number; None for a message that is not in the table."""
    table = _load_table().get(name)
    return None if table is None else {int(number): _build_field(name, entry) for number, entry in table.items()}


@cache
def find_message_of_kind(api_version: str, kind: str) -> str | None:
    """The message that a kind is sent as. Options and reviews of metadata are registered in every group."""
    group, _, version = api_version.rpartition("/")
    package = f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}."
    candidates = (EXTENSIONS if group == "apiextensions.k8s.io" and version == "v1" else package, META)
    return next((prefix + kind for prefix in candidates if prefix + kind in _load_table()), None)


@cache
def _load_table() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = json.loads((resources.files(__package__) / "fields.json").read_bytes())
    return table


def _build_field(owner: str, entry: list[Any]) -> FieldType:
    name, type_, *flags = entry
    is_map = isinstance(type_, dict)
    return FieldType(
        name=_JSON_NAMES.get((owner, name)) or _build_extension_name(name),
        type=type_["map"] if is_map else type_,
        is_repeated="repeated" in flags,
        is_map=is_map,
        is_inline=name in _INLINE,
    )


def _build_extension_name(name: str) -> str:
    """`xKubernetesListMapKeys` → `x-kubernetes-list-map-keys`; others are spelled as in JSON."""
    if not name.startswith("xKubernetes"):
        return name
    return "".join(f"-{character.lower()}" if character.isupper() else character for character in name)
