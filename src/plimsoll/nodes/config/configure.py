"""Changes the options of a running autoscaler, in the program's ConfigMap.

`plimsoll nodes configure` writes what `config.source` reads in every loop iteration. Options are checked together with
those in force before anything is written. A concurrent change is never overwritten: it is read, and checked, again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.config.flags import InvalidOptions
from plimsoll.nodes.config.options import find_flag, read_options
from plimsoll.nodes.config.source import OPTIONS_KEY, read_config_map_options
from plimsoll.objects.api.meta import Time, format_time
from plimsoll.objects.codec.yaml import dump
from plimsoll.operator.pause import read_pause_annotation
from plimsoll.operator.program_config import CONFIG_MAP, patch_config_map, read_config_map, retry_update

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.nodes.config.flags import Flag

CONFIGURED_AT: Final = "plimsoll.io/configured-at"
"""When `plimsoll nodes configure` last changed options: a loop iteration after that uses them."""
ONLY_AT_START: Final = frozenset(
    {
        *("address", "kubeconfig", "kubernetes", "namespace", "cloud-provider", "cloud-config", "cluster-name"),
        *("clusterapi-cloud-config-authoritative", "node-group-auto-discovery", "profiling", "scheduler-config-file"),
        *("kube-client-qps", "kube-client-burst", "leader-elect", "leader-elect-lease-duration"),
        *("leader-elect-renew-deadline", "leader-elect-retry-period", "leader-elect-resource-name"),
        *("leader-elect-resource-namespace", "grpc-expander-url", "grpc-expander-cert", "status-config-map-name"),
    }
)
"""Flags that a running program does not read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeConfig:
    """The content of the ConfigMap. `problem`: why its options cannot be used."""

    options: Mapping[str, Any] = field(default_factory=dict)
    paused: str = ""
    """Empty if it is not paused; otherwise "true", or the text given for the pause."""
    problem: str = ""
    configured_at: datetime | None = None
    """None if the ConfigMap was written by other means."""
    version: str = ""
    """The resource version; empty without a ConfigMap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """A change: flags to set, flags to unset. `in_force` are the options of the running program, as far as known.

    `now` is noted with the change.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    unset: Sequence[str] = ()
    in_force: Mapping[str, Any] = field(default_factory=dict)
    now: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDiff:
    """Options of the ConfigMap before and after."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def list_differences(self) -> list[tuple[str, Any, Any]]:
        """Flag, value before and after; None where there was or is none."""
        names = sorted({*self.before, *self.after})
        found = [(name, self.before.get(name), self.after.get(name)) for name in names]
        return [(name, before, after) for name, before, after in found if before != after]


async def read_runtime_config(client: Client, namespace: str) -> RuntimeConfig:
    found = await read_config_map(client, namespace)
    if found is None:
        return RuntimeConfig()
    options: Mapping[str, Any] = {}
    problem = ""
    try:
        options = read_config_map_options(found)
        read_options(options, path=OPTIONS_KEY)
    except (InvalidInput, InvalidOptions) as error:
        problem = str(error)
    return RuntimeConfig(
        options=options,
        paused=read_pause_annotation(found.metadata.annotations),
        problem=problem,
        configured_at=_parse_time(found.metadata.annotations.get(CONFIGURED_AT, "")),
        version=found.metadata.resource_version,
    )


def _parse_time(written: str) -> datetime | None:
    try:
        return msgspec.convert(written, Time)
    except msgspec.ValidationError:
        return None


async def configure(client: Client, namespace: str, wanted: ConfigChange) -> ConfigDiff:
    """Sets and unsets options; raises `InvalidOptions` or `InvalidInput`, and then nothing is changed."""
    changes = normalize_options(wanted.options)
    _check_running(changes)
    unset = [_get_flag(name).name for name in wanted.unset]

    async def attempt() -> ConfigDiff:
        before = await read_runtime_config(client, namespace)
        if before.problem and not before.options:
            raise InvalidInput(
                f"{before.problem}; correct or delete it first", path=f"ConfigMap {namespace}/{CONFIG_MAP}"
            )
        held = normalize_options(before.options)
        after = {name: value for name, value in {**held, **changes}.items() if name not in unset}
        others = {name: value for name, value in wanted.in_force.items() if name not in held and name not in after}
        read_options({**others, **after}, path="")
        changed = ConfigDiff(before=held, after=dict(sorted(after.items())))
        if not changed.list_differences():
            return changed
        patch: dict[str, Any] = {"data": {OPTIONS_KEY: dump(dict(changed.after)) if changed.after else ""}}
        when = None if wanted.now is None else format_time(wanted.now)
        patch["metadata"] = {"annotations": {CONFIGURED_AT: when}}
        await patch_config_map(client, namespace, patch, version=before.version)
        return changed

    return await retry_update(namespace, attempt)


def normalize_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options by the main name of each flag, whatever its spelling; values as plain YAML."""
    found: dict[str, Any] = {}
    for spelling, value in options.items():
        flag = find_flag(spelling)
        found[spelling if flag is None else flag.name] = value if flag is None else _to_plain(flag, value)
    return found


def _to_plain(flag: Flag, value: Any) -> Any:
    """Numbers and switches as such; an unreadable value stays as it is, and validation reports it."""
    if isinstance(value, str) and flag.kind == "count" and value.strip().isdecimal():
        return int(value)
    if isinstance(value, str) and flag.kind == "true or false" and value in {"true", "false"}:
        return value == "true"
    return value


def _get_flag(name: str) -> Flag:
    flag = find_flag(name)
    if flag is None:
        raise InvalidInput("unknown option; plimsoll run nodes --list-flags lists them", path=name)
    return flag


def _check_running(options: Mapping[str, Any]) -> None:
    fixed = [name for name in options if name in ONLY_AT_START]
    if fixed:
        message = "is read at startup only; pass it to plimsoll run nodes and restart that"
        raise InvalidOptions((f"--{name}", message) for name in fixed)
