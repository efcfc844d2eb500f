"""The strategy of a served resource: built once, kept as long as the resource is served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.apiserver.strategies.builtin import BuiltinStrategy
from plimsoll.local.apiserver.strategies.crds import CrdStrategy
from plimsoll.local.apiserver.strategies.custom import get_custom_strategy

if TYPE_CHECKING:
    from plimsoll.local.apiserver.resources.registry import ServedResource
    from plimsoll.local.apiserver.strategies.interface import Strategy

_builtin: dict[tuple[str, str], BuiltinStrategy] = {}


def find_strategy(resource: ServedResource) -> Strategy:
    if resource.is_custom:
        return get_custom_strategy(resource)
    key = (resource.api_version, resource.kind)
    found = _builtin.get(key)
    if found is None:
        made = CrdStrategy if resource.kind == "CustomResourceDefinition" else BuiltinStrategy
        found = _builtin[key] = made(resource)
    return found
