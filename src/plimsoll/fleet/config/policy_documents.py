"""The documents that decisions depend on, checked together, and the policy that they give."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeVar

from plimsoll.fleet.config.dynamic_scaling import DynamicScalingDocument
from plimsoll.fleet.config.instance_types import TYPE_IDS, InstanceTypesDocument
from plimsoll.fleet.config.manual_clusters import ManualClustersDocument, find_limit_mistakes
from plimsoll.fleet.config.node_prewarming import NodePrewarmingDocument, find_reserve_mistakes
from plimsoll.fleet.config.providers import ProvidersDocument
from plimsoll.fleet.config.strict import Mistake, parse_document
from plimsoll.fleet.model.policy import FleetPolicy
from plimsoll.fleet.model.statuses import ScalingType
from plimsoll.objects.codec.yaml import load_first

if TYPE_CHECKING:
    from pydantic import BaseModel

    from plimsoll.fleet.model.policy import InstanceType

    Parsed = TypeVar("Parsed", bound=BaseModel)

DYNAMIC_SCALING: Final = "dynamic_scaling"
NODE_PREWARMING: Final = "node_prewarming"
PROVIDERS: Final = "providers"
INSTANCE_TYPES: Final = "kafka_instance_types"
MANUAL_CLUSTERS: Final = "dataplane_clusters"
SHIPPED: Final = "shipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDocuments:
    """Parsed YAML by document, under the keys above. One that is absent, or None, has its default."""

    scaling_type: ScalingType
    documents: dict[str, Any]


@dataclass(slots=True)
class PolicyResult:
    """The policy, or None with all mistakes by document."""

    policy: FleetPolicy | None = None
    mistakes: defaultdict[str, list[Mistake]] = field(default_factory=lambda: defaultdict(list))
    warnings: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def load_shipped_instance_types() -> Any:
    """The instance types that are used if no file is given."""
    text = (
        files("plimsoll.fleet.config").joinpath(SHIPPED, "kafka-instance-types-configuration.yaml").read_text("utf-8")
    )
    return load_first(text)


def build_policy(given: PolicyDocuments) -> PolicyResult:
    """Checks every document, and then the documents with each other."""
    result = PolicyResult()
    reader = _Reader(given, result)
    is_auto = given.scaling_type is ScalingType.AUTO
    is_manual = given.scaling_type is ScalingType.MANUAL
    scaling = reader.read(DYNAMIC_SCALING, DynamicScalingDocument, required=is_auto)
    prewarming = reader.read(NODE_PREWARMING, NodePrewarmingDocument)
    providers = reader.read(PROVIDERS, ProvidersDocument, required=True)
    types = reader.read(INSTANCE_TYPES, InstanceTypesDocument, default=load_shipped_instance_types())
    manual = reader.read(MANUAL_CLUSTERS, ManualClustersDocument)
    instance_types = None if types is None else types.build_instance_types()
    if instance_types is not None:
        result.mistakes[NODE_PREWARMING] += find_reserve_mistakes(given.documents.get(NODE_PREWARMING), instance_types)
    if prewarming is not None:
        result.warnings[NODE_PREWARMING] += prewarming.list_warnings()
    if is_auto and scaling is not None:
        result.warnings[DYNAMIC_SCALING] += scaling.list_warnings()
        if providers is not None and instance_types is not None:
            result.mistakes[DYNAMIC_SCALING] += _find_machine_mistakes(scaling, providers, instance_types)
    if is_manual and manual is not None and providers is not None:
        result.mistakes[PROVIDERS] += find_limit_mistakes(providers.build_providers(), manual.build_clusters())
    if not any(result.mistakes.values()) and providers is not None and instance_types is not None:
        result.policy = FleetPolicy(
            scaling_type=given.scaling_type,
            providers=providers.build_providers(),
            instance_types=instance_types,
            reserves={} if prewarming is None else prewarming.build_reserves(),
            manual_clusters=() if manual is None or not is_manual else manual.build_clusters(),
            **({} if scaling is None else _build_scaling(scaling)),
        )
    return result


class _Reader:
    """Reads documents, and collects their mistakes."""

    def __init__(self, given: PolicyDocuments, result: PolicyResult) -> None:
        self._given = given
        self._result = result

    def read(self, key: str, model: type[Parsed], *, required: bool = False, default: Any = None) -> Parsed | None:
        document = self._given.documents.get(key)
        if document is None:
            document = default
        if document is None:
            if required:
                self._result.mistakes[key].append(Mistake("", "is missing"))
            return None
        parsed = parse_document(model, document)
        if isinstance(parsed, list):
            self._result.mistakes[key] += parsed
            return None
        return parsed


def _find_machine_mistakes(
    scaling: DynamicScalingDocument, providers: ProvidersDocument, instance_types: dict[str, InstanceType]
) -> list[Mistake]:
    """Providers without machines, offered types without machines, and machines for types that cannot exist."""
    machines = {name.lower(): found for name, found in scaling.compute_machine_per_cloud_provider.items()}
    path = "compute_machine_per_cloud_provider"
    mistakes = [
        Mistake(f"{path}.{name}.kafka_workload_per_instance_type.{instance_type}", "is not a known instance type")
        for name, found in machines.items()
        for instance_type in found.kafka_workload_per_instance_type
        if instance_type not in TYPE_IDS
    ]
    for provider in providers.supported_providers:
        found = machines.get(provider.name)
        if found is None:
            mistakes.append(Mistake(f"{path}.{provider.name}", "is missing: the provider is supported"))
            continue
        offered = {name for region in provider.regions for name in region.supported_instance_type}
        missing = [
            name for name in instance_types if name in offered and name not in found.kafka_workload_per_instance_type
        ]
        where = f"{path}.{provider.name}.kafka_workload_per_instance_type"
        mistakes += [Mistake(f"{where}.{name}", "is missing: a region offers this type") for name in missing]
    return mistakes


def _build_scaling(scaling: DynamicScalingDocument) -> dict[str, Any]:
    machines = scaling.compute_machine_per_cloud_provider
    return {
        "machines": {name.lower(): found.build_machines() for name, found in machines.items()},
        "openshift_version": scaling.new_data_plane_openshift_version,
        "scale_up_enabled": scaling.enable_dynamic_data_plane_scale_up,
        "scale_down_enabled": scaling.enable_dynamic_data_plane_scale_down,
        "creation": scaling.cluster_creation.build_policy(),
        "removal": scaling.cluster_removal.build_policy(),
        "agent_silence_s": scaling.agent_silence,
        "placement": scaling.build_strategy(),
    }
