"""Labels in the configuration of an instance: how TiKV tells PD, and TiDB its topology, what group it is in.

A component's `config` is absent, TOML text or a map, and stays what it is: a user's comments in TOML are kept.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from plimsoll.core.errors import InvalidInput
from plimsoll.tidb.model.components import GROUP_LABEL, Component

if TYPE_CHECKING:
    from collections.abc import Mapping

_PATHS: Final = {Component.TIKV: ("server", "labels"), Component.TIDB: ("labels",)}


def with_labels(config: Any, labels: Mapping[str, str], component: Component) -> Any:
    """The same configuration with these labels in it. Raises `InvalidInput` if it cannot be understood."""
    if not labels:
        return deepcopy(config)
    if not isinstance(config, str):
        found = deepcopy(config) if config is not None else {}
        _merge(found, labels, component)
        return found
    document = _parsed(config, component)
    _merge(document, labels, component)
    return tomlkit.dumps(document)


def problem_of_config(config: Any, component: Component) -> str:
    """Why no labels can be put into it, with the field that is wrong; empty: they can."""
    try:
        with_labels(config, {GROUP_LABEL: "any"}, component)
    except InvalidInput as error:
        return str(error)
    return ""


def labels_in(config: Any, component: Component) -> dict[str, str]:
    """The labels that a configuration has."""
    part = meaning_of(config, component)
    for name in _PATHS[component]:
        part = part.get(name) if isinstance(part, dict) else None
    return {str(key): str(value) for key, value in part.items()} if isinstance(part, dict) else {}


def meaning_of(config: Any, component: Component) -> Any:
    """What two configurations are compared by: the same whether text or map, absent or empty."""
    return _parsed(config, component).unwrap() if isinstance(config, str) else config or {}


def _parsed(text: str, component: Component) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidInput(f"is no TOML: {error}", path=f"spec.{component}.config") from error


def _merge(config: Any, labels: Mapping[str, str], component: Component) -> None:
    path = f"spec.{component}.config"
    for name in _PATHS[component]:
        if not isinstance(config, MutableMapping):
            raise InvalidInput("is no table", path=path)
        if config.get(name) is None:
            config[name] = {}
        config, path = config[name], f"{path}.{name}"
    if not isinstance(config, MutableMapping):
        raise InvalidInput("is no table", path=path)
    for key, value in labels.items():
        if config.get(key) != value:
            config[key] = value
