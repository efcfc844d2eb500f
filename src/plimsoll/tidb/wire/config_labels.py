"""Labels in the configuration of an instance: they carry the group of the instance to PD and TiDB's topology.

The `config` of a component is absent, TOML text or a map, and keeps its form. Comments in TOML are kept.
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


def add_labels(config: Any, labels: Mapping[str, str], component: Component) -> Any:
    """The configuration with these labels added. Raises `InvalidInput` if it cannot be parsed."""
    if not labels:
        return deepcopy(config)
    if not isinstance(config, str):
        found = deepcopy(config) if config is not None else {}
        _merge(found, labels, component)
        return found
    document = _parse(config, component)
    _merge(document, labels, component)
    return tomlkit.dumps(document)


def find_config_problem(config: Any, component: Component) -> str:
    """Why labels cannot be added, with the invalid field; empty: they can."""
    try:
        add_labels(config, {GROUP_LABEL: "any"}, component)
    except InvalidInput as error:
        return str(error)
    return ""


def read_labels(config: Any, component: Component) -> dict[str, str]:
    """The labels in a configuration."""
    part = normalize_config(config, component)
    for name in _PATHS[component]:
        part = part.get(name) if isinstance(part, dict) else None
    return {str(key): str(value) for key, value in part.items()} if isinstance(part, dict) else {}


def normalize_config(config: Any, component: Component) -> Any:
    """A form for comparison: the same for text and map, and for absent and empty."""
    return _parse(config, component).unwrap() if isinstance(config, str) else config or {}


def _parse(text: str, component: Component) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidInput(f"is not valid TOML: {error}", path=f"spec.{component}.config") from error


def _merge(config: Any, labels: Mapping[str, str], component: Component) -> None:
    path = f"spec.{component}.config"
    for name in _PATHS[component]:
        if not isinstance(config, MutableMapping):
            raise InvalidInput("is not a table", path=path)
        if config.get(name) is None:
            config[name] = {}
        config, path = config[name], f"{path}.{name}"
    if not isinstance(config, MutableMapping):
        raise InvalidInput("is not a table", path=path)
    for key, value in labels.items():
        if config.get(key) != value:
            config[key] = value
