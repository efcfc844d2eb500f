"""The file of `--scheduler-config-file`: the parts of the scheduler's profiles that decide where pods may run.

The file is a KubeSchedulerConfiguration and is read at start; `observing.scheduler_profile_pods` applies it to pods.
Plugins that only score, order or preempt are ignored. A setting that changes where pods fit and that cannot be
simulated is refused with its path: a plan that the scheduler does not accept would be repeated for ever
(docs/design/nodes.md 6.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.objects.api.affinity import NodeSelector, NodeSelectorTerm, TopologySpreadConstraint
from plimsoll.objects.codec.manifests import read_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

Json = dict[str, Any]

DEFAULT_SCHEDULER: Final = "default-scheduler"
TAINTS: Final = "TaintToleration"
NODE_AFFINITY: Final = "NodeAffinity"
PORTS: Final = "NodePorts"
SPREAD: Final = "PodTopologySpread"
POD_AFFINITY: Final = "InterPodAffinity"
RESOURCES: Final = "NodeResourcesFit"
_CORDONED: Final = "NodeUnschedulable"
"""May be left out as well: nodes that are cordoned have a taint too, which is what counts then."""
_MAY_BE_OFF: Final = frozenset({TAINTS, NODE_AFFINITY, PORTS, SPREAD, POD_AFFINITY, _CORDONED})
_ALWAYS_ON: Final = frozenset(
    {RESOURCES, "NodeName", "VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"}
)
_NO_BEARING: Final = frozenset(
    {
        *("DefaultBinder", "DefaultPreemption", "DynamicResources", "ImageLocality", "NodeResourcesBalancedAllocation"),
        *("PrioritySort", "SchedulingGates", "EBSLimits", "GCEPDLimits", "AzureDiskLimits"),
    }
)
_EVERY: Final = "*"
_GROUP: Final = "kubescheduler.config.k8s.io/"
_KIND: Final = "KubeSchedulerConfiguration"
_DO_NOT: Final = "DoNotSchedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerProfile:
    """How one scheduler differs from the default one."""

    scheduler: str = DEFAULT_SCHEDULER
    off: frozenset[str] = frozenset()
    """Filters that it does not ask."""
    default_spread: tuple[TopologySpreadConstraint, ...] = ()
    """Constraints of pods without constraints of their own; only those that must hold."""
    added_terms: tuple[NodeSelectorTerm, ...] = ()
    """One of these must match a node as well, whatever the pod says."""
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()

    @property
    def is_plain(self) -> bool:
        """Whether nothing in the profile changes where pods fit."""
        return self == SchedulerProfile(scheduler=self.scheduler)


def load_profiles(filename: str, *, path: str) -> tuple[SchedulerProfile, ...]:
    """What the file holds, nothing without a name; `path` is the option that names it."""
    if not filename:
        return ()
    try:
        return read_profiles(Path(filename).read_bytes(), source=filename)
    except OSError as error:
        raise InvalidInput(f"{filename} cannot be read: {error.strerror}", path=path) from error


def read_profiles(data: bytes, *, source: str) -> tuple[SchedulerProfile, ...]:
    """Raises `InvalidInput` with the file and the place in it."""
    documents = [document for _, document in read_documents(data, source=source)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput(f"must be one {_KIND}", path=source)
    [document] = documents
    version, kind = str(document.get("apiVersion")), document.get("kind")
    if kind != _KIND or not version.startswith(_GROUP):
        raise InvalidInput(f"is {kind} of {version}, not {_KIND} of {_GROUP}v1", path=source)
    listed = _get_list(document, "profiles", path=source)
    found = tuple(_read_profile(profile, path=f"{source}: profiles[{index}]") for index, profile in enumerate(listed))
    names = [profile.scheduler for profile in found]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InvalidInput(f"there is another profile of {name}", path=f"{source}: profiles[{index}].schedulerName")
    return found


def _read_profile(written: Any, *, path: str) -> SchedulerProfile:
    one = _map(written, path=path)
    plugins = _map(one.get("plugins"), path=f"{path}.plugins")
    arguments = {
        str(config.get("name")): (_map(config.get("args"), path=f"{place}.args"), f"{place}.args")
        for place, config in _iterate_entries(one, "pluginConfig", path=path)
    }
    spread, spread_path = arguments.get(SPREAD, ({}, path))
    affinity, affinity_path = arguments.get(NODE_AFFINITY, ({}, path))
    fit, fit_path = arguments.get(RESOURCES, ({}, path))
    return SchedulerProfile(
        scheduler=str(one.get("schedulerName") or DEFAULT_SCHEDULER),
        off=_find_disabled(plugins, path=f"{path}.plugins"),
        default_spread=_read_default_spread(spread, path=spread_path),
        added_terms=_read_added_terms(affinity, path=affinity_path),
        ignored_resources=_read_names(fit, "ignoredResources", path=fit_path),
        ignored_resource_groups=_read_names(fit, "ignoredResourceGroups", path=fit_path),
    )


# ---- plugins


def _find_disabled(plugins: Json, *, path: str) -> frozenset[str]:
    """Settings of the filters take precedence over settings of all extension points."""
    known = _MAY_BE_OFF | _ALWAYS_ON
    on = known
    for point in ("multiPoint", "filter"):
        place = f"{path}.{point}"
        part = _map(plugins.get(point), path=place)
        disabled = [str(plugin.get("name")) for _, plugin in _iterate_entries(part, "disabled", path=place)]
        enabled = [str(plugin.get("name")) for _, plugin in _iterate_entries(part, "enabled", path=place)]
        for index, name in enumerate(enabled):
            if name not in known | _NO_BEARING:
                message = f"{name} is not known here: what it lets through cannot be simulated"
                raise InvalidInput(message, path=f"{place}.enabled[{index}]")
        on = (frozenset() if _EVERY in disabled else on - set(disabled)) | (known & set(enabled))
    for name in sorted(_ALWAYS_ON - on):
        raise InvalidInput(f"{name} cannot be left out here; pods are always planned by it", path=path)
    return _MAY_BE_OFF - on


# ---- arguments


def _read_default_spread(arguments: Json, *, path: str) -> tuple[TopologySpreadConstraint, ...]:
    """The system defaults are ScheduleAnyway and never keep a pod off a node: only a configured list counts."""
    listed = _get_list(arguments, "defaultConstraints", path=path)
    if listed and arguments.get("defaultingType") != "List":
        raise InvalidInput("needs defaultingType: List", path=f"{path}.defaultConstraints")
    found = _convert(listed, tuple[TopologySpreadConstraint, ...], path=f"{path}.defaultConstraints")
    for index, constraint in enumerate(found):
        place = f"{path}.defaultConstraints[{index}]"
        if constraint.label_selector is not None:
            raise InvalidInput("must not have a labelSelector: each pod gets its own", path=place)
        if constraint.max_skew < 1 or not constraint.topology_key:
            raise InvalidInput("needs a topologyKey, and a maxSkew of at least 1", path=place)
    return tuple(constraint for constraint in found if constraint.when_unsatisfiable == _DO_NOT)


def _read_added_terms(arguments: Json, *, path: str) -> tuple[NodeSelectorTerm, ...]:
    added = _map(arguments.get("addedAffinity"), path=f"{path}.addedAffinity")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    place = f"{path}.addedAffinity.{required}"
    found: NodeSelector = _convert(_map(added.get(required), path=place), NodeSelector, path=place)
    return found.node_selector_terms


def _read_names(arguments: Json, key: str, *, path: str) -> frozenset[str]:
    return frozenset(_convert(_get_list(arguments, key, path=path), tuple[str, ...], path=f"{path}.{key}"))


# ---- reading


def _convert(value: Any, kind: Any, *, path: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error), path=path) from error


def _map(value: Any, *, path: str) -> Json:
    if value is not None and not isinstance(value, dict):
        raise InvalidInput("must be a map", path=path)
    return value or {}


def _get_list(parent: Mapping[str, Any], key: str, *, path: str) -> list[Any]:
    value = parent.get(key)
    if value is not None and not isinstance(value, list):
        raise InvalidInput("must be a list", path=f"{path}.{key}")
    return value or []


def _iterate_entries(parent: Mapping[str, Any], key: str, *, path: str) -> Iterator[tuple[str, Json]]:
    entries: Iterable[Any] = _get_list(parent, key, path=path)
    for index, entry in enumerate(entries):
        place = f"{path}.{key}[{index}]"
        yield place, _map(entry, path=place)
