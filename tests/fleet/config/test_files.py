"""Configuration files: docs/design/fleet.md 2. All mistakes of all files are found at once, with their paths."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.fleet.config.files import (
    ACCESS_LIST,
    DENY_LIST,
    FILE_NAMES,
    QUOTA_LIST,
    Configuration,
    FleetFiles,
    InvalidConfiguration,
    read_configuration,
)
from plimsoll.fleet.config.policy_documents import (
    DYNAMIC_SCALING,
    INSTANCE_TYPES,
    MANUAL_CLUSTERS,
    NODE_PREWARMING,
    PROVIDERS,
    load_shipped_instance_types,
)
from plimsoll.fleet.model.statuses import ScalingType

EXAMPLES = Path(__file__).parents[3] / "examples" / "fleet" / "config"
STANDARD: list[str | int] = ["supported_providers", 0, "regions", 0, "supported_instance_type", "standard"]
STANDARD_PATH = "supported_providers[0].regions[0].supported_instance_type.standard"
MACHINES: list[str | int] = ["compute_machine_per_cloud_provider", "aws"]
SIZE: list[str | int] = ["supported_instance_types", 0, "sizes", 0]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES, tmp_path / "config"))


def read(directory: Path, scaling_type: ScalingType = ScalingType.AUTO, **settings: Any) -> Configuration:
    return read_configuration(FleetFiles(scaling_type=scaling_type, directory=str(directory), **settings))


def find_mistakes(directory: Path, scaling_type: ScalingType = ScalingType.AUTO, **settings: Any) -> list[str]:
    """The mistakes without the directory."""
    with pytest.raises(InvalidConfiguration) as caught:
        read(directory, scaling_type, **settings)
    return [line.removeprefix(f"{directory}/") for line in caught.value.list_lines()]


def change(directory: Path, key: str, path: list[str | int], value: Any) -> None:
    """Sets a value of a file; `...` removes it."""
    file = directory / FILE_NAMES[key]
    document = yaml.safe_load(file.read_text())
    inner = document
    for part in path[:-1]:
        inner = inner[part]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    file.write_text(yaml.safe_dump(document, sort_keys=False))


# ---- the examples


@pytest.mark.parametrize("scaling_type", sorted(ScalingType))
def test_the_examples_are_valid_with_every_scaling_type(scaling_type: ScalingType):
    found = read(EXAMPLES, scaling_type, enforces_quota=True, uses_deny_list=True, uses_access_list=True)
    assert found.policy.scaling_type is scaling_type


def test_the_policy_has_what_the_examples_say():
    policy = read(EXAMPLES).policy
    assert [provider.name for provider in policy.providers] == ["aws", "gcp"]
    assert [(size.id, size.capacity_consumed) for size in policy.instance_types["standard"].sizes] == [
        ("x1", 1),
        ("x2", 2),
    ]
    assert policy.instance_types["developer"].sizes[0].lifespan_seconds == 172800
    assert policy.machines["aws"].per_type["standard"].machine_type == "r5.xlarge"
    assert (policy.creation.retry_initial_s, policy.creation.retry_max_s) == (30, 1800)
    assert not policy.scale_up_enabled


def test_the_shipped_instance_types_are_those_of_the_examples():
    assert load_shipped_instance_types() == yaml.safe_load((EXAMPLES / FILE_NAMES[INSTANCE_TYPES]).read_text())


def test_files_that_are_not_used_are_not_read(directory: Path):
    for key in (MANUAL_CLUSTERS, QUOTA_LIST, DENY_LIST, ACCESS_LIST):
        (directory / FILE_NAMES[key]).write_text("][")
    assert read(directory).policy.manual_clusters == ()


# ---- missing, unreadable, empty


def test_d9_a_missing_file_of_reserves_is_a_warning_and_a_malformed_one_a_mistake(directory: Path):
    file = directory / FILE_NAMES[NODE_PREWARMING]
    file.unlink()
    found = read(directory)
    assert found.policy.reserves == {}
    assert len(found.warnings[str(file)]) == 1
    file.write_text("standard: [")
    assert len(find_mistakes(directory)) == 1


@pytest.mark.parametrize("text", ["", "{}", "# nothing\n"])
def test_an_empty_file_of_reserves_reserves_nothing(directory: Path, text: str):
    (directory / FILE_NAMES[NODE_PREWARMING]).write_text(text)
    assert read(directory).policy.reserves == {}


def test_missing_files_are_mistakes(directory: Path):
    for key in (PROVIDERS, DYNAMIC_SCALING):
        (directory / FILE_NAMES[key]).unlink()
    assert find_mistakes(directory) == [
        "provider-configuration.yaml: does not exist",
        "dynamic-scaling-configuration.yaml: does not exist",
    ]


def test_without_a_file_of_instance_types_the_shipped_ones_are_used(directory: Path):
    (directory / FILE_NAMES[INSTANCE_TYPES]).unlink()
    assert list(read(directory).policy.instance_types) == ["standard", "developer"]


def test_a_file_may_be_given_by_its_own_path(directory: Path, tmp_path: Path):
    other = tmp_path / "other.yaml"
    other.write_text("standard: {num_reserved_instances: 7}")
    found = read(directory, paths={NODE_PREWARMING: str(other)})
    assert (found.policy.reserves["standard"].instances, found.policy.reserves["standard"].size_id) == (7, "x1")


def test_d18_triggers_that_are_absent_are_off_with_a_warning(directory: Path):
    change(directory, DYNAMIC_SCALING, ["enable_dynamic_data_plane_scale_up"], ...)
    found = read(directory)
    assert not found.policy.scale_up_enabled
    assert len(found.warnings[str(directory / FILE_NAMES[DYNAMIC_SCALING])]) == 1


def test_all_mistakes_of_all_files_are_found_at_once(directory: Path):
    change(directory, PROVIDERS, [*STANDARD, "limit"], -1)
    change(directory, PROVIDERS, ["supported_providers", 1, "colour"], "blue")
    change(directory, NODE_PREWARMING, ["premium"], {})
    change(directory, INSTANCE_TYPES, [*SIZE, "maxPartitions"], 0)
    change(directory, DYNAMIC_SCALING, ["placement"], "random")
    found = find_mistakes(directory)
    assert [line.partition(": ")[2].partition(": ")[0] for line in found] == [
        f"{STANDARD_PATH}.limit",
        "supported_providers[1].colour",
        "supported_instance_types[0].sizes[0].maxPartitions",
        "placement",
    ]


# ---- rules, one by one

REJECTED: list[tuple[str, list[str | int], Any, str]] = [
    (PROVIDERS, ["supported_providers", 0, "name"], "ibm", "supported_providers[0].name"),
    (PROVIDERS, ["supported_providers", 0, "default"], False, "supported_providers"),
    (PROVIDERS, ["supported_providers", 1, "default"], True, "supported_providers"),
    (PROVIDERS, ["supported_providers", 1, "name"], "aws", "supported_providers"),
    (PROVIDERS, ["supported_providers", 0, "regions", 0, "default"], False, "supported_providers[0].regions"),
    (PROVIDERS, ["supported_providers", 0, "regions", 1, "default"], True, "supported_providers[0].regions"),
    (PROVIDERS, [*STANDARD, "min_available_capacity_slack_streaming_units"], -1, f"{STANDARD_PATH}.min_available"),
    (PROVIDERS, [*STANDARD, "min_available_capacity_slack_streaming_units"], 51, f"{STANDARD_PATH}.min_available"),
    (PROVIDERS, [*STANDARD, "limit"], True, f"{STANDARD_PATH}.limit"),
    (PROVIDERS, [*STANDARD, "limit"], 2**64, f"{STANDARD_PATH}.limit"),
    (PROVIDERS, [*STANDARD, "limits"], 1, f"{STANDARD_PATH}.limits"),
    (DYNAMIC_SCALING, ["compute_machine_per_cloud_provider"], ..., "compute_machine_per_cloud_provider"),
    (DYNAMIC_SCALING, ["compute_machine_per_cloud_provider"], None, "compute_machine_per_cloud_provider"),
    (DYNAMIC_SCALING, MACHINES, ..., "compute_machine_per_cloud_provider.aws"),
    (DYNAMIC_SCALING, [*MACHINES, "cluster_wide_workload"], ..., "compute_machine_per_cloud_provider.aws.cluster_wide"),
    (DYNAMIC_SCALING, [*MACHINES, "kafka_workload_per_instance_type"], ..., "compute_machine_per_cloud_provider.aws.k"),
    (
        DYNAMIC_SCALING,
        [*MACHINES, "kafka_workload_per_instance_type", "developer"],
        ...,
        "compute_machine_per_cloud_provider.aws.kafka_workload_per_instance_type.developer",
    ),
    (
        DYNAMIC_SCALING,
        [*MACHINES, "kafka_workload_per_instance_type", "premium"],
        {"compute_machine_type": "m", "compute_node_autoscaling": {"min_compute_nodes": 1, "max_compute_nodes": 1}},
        "compute_machine_per_cloud_provider.aws.kafka_workload_per_instance_type.premium",
    ),
    (DYNAMIC_SCALING, ["agent_silence"], 10, "agent_silence"),
    (DYNAMIC_SCALING, ["cluster_creation", "retry_initial"], "soon", "cluster_creation.retry_initial"),
    (DYNAMIC_SCALING, ["cluster_creation", "max_parallel"], 0, "cluster_creation.max_parallel"),
    (DYNAMIC_SCALING, ["cluster_removal", "cool_down"], "-1s", "cluster_removal.cool_down"),
    (NODE_PREWARMING, ["standard", "num_reserved_instances"], -1, "standard.num_reserved_instances"),
    (NODE_PREWARMING, ["standard", "num_reserved_instances"], 10**6, "standard.num_reserved_instances"),
    (NODE_PREWARMING, ["standard", "base_streaming_unit_size"], "x9", "standard.base_streaming_unit_size"),
    (NODE_PREWARMING, ["premium"], {"num_reserved_instances": 1}, "premium"),
    (INSTANCE_TYPES, ["supported_instance_types", 0, "id"], "premium", "supported_instance_types[0].id"),
    (INSTANCE_TYPES, ["supported_instance_types", 1, "id"], "standard", "supported_instance_types"),
    (INSTANCE_TYPES, ["supported_instance_types", 0, "sizes"], [], "supported_instance_types[0].sizes"),
    (INSTANCE_TYPES, ["supported_instance_types", 0, "display_name"], "", "supported_instance_types[0].display_name"),
]
WORKLOAD: list[str | int] = [*MACHINES, "cluster_wide_workload"]
WORKLOAD_PATH = "compute_machine_per_cloud_provider.aws.cluster_wide_workload"
NODES = f"{WORKLOAD_PATH}.compute_node_autoscaling"
REJECTED += [
    (DYNAMIC_SCALING, [*WORKLOAD, "compute_machine_type"], "", f"{WORKLOAD_PATH}.compute_machine_type"),
    (DYNAMIC_SCALING, [*WORKLOAD, "compute_node_autoscaling"], ..., NODES),
    (DYNAMIC_SCALING, [*WORKLOAD, "compute_node_autoscaling", "min_compute_nodes"], 0, f"{NODES}.min_compute_nodes"),
    (DYNAMIC_SCALING, [*WORKLOAD, "compute_node_autoscaling", "min_compute_nodes"], 2, f"{NODES}.min_compute_nodes"),
    (DYNAMIC_SCALING, [*WORKLOAD, "compute_node_autoscaling", "max_compute_nodes"], 0, f"{NODES}.max_compute_nodes"),
    (DYNAMIC_SCALING, [*WORKLOAD, "compute_node_autoscaling", "max_compute_nodes"], 2, f"{NODES}.max_compute_nodes"),
]
SIZE_PATH = "supported_instance_types[0].sizes[0]"
REJECTED += [
    (INSTANCE_TYPES, [*SIZE, name], value, f"{SIZE_PATH}.{name}")
    for name, value in [
        *((name, ...) for name in ("quotaType", "capacityConsumed", "maxMessageSize")),
        *((name, 0) for name in ("totalMaxConnections", "maxPartitions", "quotaConsumed", "capacityConsumed")),
        *((name, 0) for name in ("minInSyncReplicas", "replicationFactor", "maxConnectionAttemptsPerSec")),
        *((name, "0") for name in ("ingressThroughputPerSec", "egressThroughputPerSec", "maxDataRetentionSize")),
        ("ingressThroughputPerSec", "fast"),
        ("maxMessageSize", "-1"),
        ("maxDataRetentionPeriod", "14 days"),
        ("maxDataRetentionPeriod", "P0D"),
        ("maxDataRetentionPeriod", "P"),
        ("maxDataRetentionPeriod", "PT"),
        ("supportedAZModes", []),
        ("maturityStatus", "old"),
        ("lifespanSeconds", 0),
        ("colour", "blue"),
    ]
]
REJECTED += [
    (INSTANCE_TYPES, [*SIZE, "supportedAZModes"], ["triple"], f"{SIZE_PATH}.supportedAZModes[0]"),
    (INSTANCE_TYPES, ["supported_instance_types", 0, "sizes", 1, "id"], "x1", "supported_instance_types[0].sizes"),
    (INSTANCE_TYPES, ["supported_instance_types", 0, "sizes", 0, "capacityConsumed"], 9, "supported_instance_types[0]"),
    (INSTANCE_TYPES, ["supported_instance_types", 0, "supported_billing_models"], [], "supported_instance_types[0].su"),
]
BILLING: list[str | int] = ["supported_instance_types", 0, "supported_billing_models", 0]
REJECTED += [
    (INSTANCE_TYPES, [*BILLING, name], value, f"supported_instance_types[0].supported_billing_models{path}")
    for name, value, path in [
        ("id", "eval", ""),
        ("ams_resource", "other", "[0].ams_resource"),
        ("ams_product", "OTHER", "[0].ams_product"),
        ("ams_billing_models", [], "[0].ams_billing_models"),
        ("ams_billing_models", ["free"], "[0].ams_billing_models[0]"),
        ("ams_billing_models", ["standard", "standard"], "[0].ams_billing_models"),
        ("grace_period_days", -1, "[0].grace_period_days"),
    ]
]


@pytest.mark.parametrize(
    ("key", "path", "value", "expected"),
    REJECTED,
    ids=[f"{path}={value!r}" for _, _, value, path in REJECTED],
)
def test_each_rule_refuses_with_the_path(directory: Path, key: str, path: list[str | int], value: Any, expected: str):
    change(directory, key, path, value)
    found = find_mistakes(directory)
    assert len(found) == 1
    assert found[0].startswith(f"{FILE_NAMES[key]}: {expected}")


@pytest.mark.parametrize("name", ["aws", "AWS", "Aws"])
def test_names_of_providers_are_read_in_any_case(directory: Path, name: str):
    change(directory, PROVIDERS, ["supported_providers", 0, "name"], name)
    assert read(directory).policy.providers[0].name == "aws"


@pytest.mark.parametrize("limit", [None, 0])
def test_slack_is_not_compared_with_an_absent_limit_or_0(directory: Path, limit: int | None):
    change(
        directory,
        PROVIDERS,
        STANDARD,
        {"min_available_capacity_slack_streaming_units": 9} | ({} if limit is None else {"limit": limit}),
    )
    offer = read(directory).policy.providers[0].regions[0].types[0]
    assert (offer.limit, offer.slack) == (limit, 9)


def test_an_offered_type_that_is_not_configured_is_left_to_the_evaluation(directory: Path):
    change(directory, PROVIDERS, [*STANDARD[:-1], "premium"], {})
    assert read(directory).policy.providers[0].regions[0].find_type("premium") is not None


# ---- manual clusters


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (["clusters", 0, "cluster_id"], "", "clusters[0].cluster_id"),
        (["clusters", 1, "cluster_id"], "1m3d5h8k0p2r4t6v8x0z1b3d5f7h9k1m", "clusters"),
        (["clusters", 0, "status"], "failed", "clusters[0].status"),
        (["clusters", 0, "provider_type"], "eks", "clusters[0].provider_type"),
        (["clusters", 0, "provider_type"], "standalone", "clusters[0].cluster_dns"),
        (["clusters", 0, "kafka_instance_limit"], -2, "clusters[0].kafka_instance_limit"),
    ],
)
def test_manual_clusters_are_checked(directory: Path, path: list[str | int], value: Any, expected: str):
    change(directory, MANUAL_CLUSTERS, path, value)
    assert find_mistakes(directory, ScalingType.MANUAL)[0].startswith(f"{FILE_NAMES[MANUAL_CLUSTERS]}: {expected}: ")


@pytest.mark.parametrize(("limit", "is_valid"), [(49, False), (50, True), (51, False), (-1, True)])
def test_the_limit_of_a_region_agrees_with_its_manual_clusters(directory: Path, limit: int, *, is_valid: bool):
    change(directory, PROVIDERS, STANDARD[:-1], {"standard": {"limit": 50}})
    change(directory, MANUAL_CLUSTERS, ["clusters", 0, "kafka_instance_limit"], limit)
    if is_valid:
        assert read(directory, ScalingType.MANUAL).policy.manual_clusters[0].kafka_instance_limit == limit
    else:
        assert find_mistakes(directory, ScalingType.MANUAL)[0].startswith(
            f"{FILE_NAMES[PROVIDERS]}: {STANDARD_PATH}.limit"
        )


def test_limits_of_several_types_lie_between_dedicated_and_shared_clusters(directory: Path):
    change(directory, PROVIDERS, STANDARD[:-1], {"standard": {"limit": 30}, "developer": {"limit": 20}})
    assert len(read(directory, ScalingType.MANUAL).policy.manual_clusters) == 2
    change(directory, PROVIDERS, STANDARD[:-1], {"standard": {"limit": 30}, "developer": {"limit": 21}})
    assert len(find_mistakes(directory, ScalingType.MANUAL)) == 1


# ---- callers


def test_lists_of_callers_are_read(directory: Path):
    (directory / FILE_NAMES[DENY_LIST]).write_text("[mallory]")
    (directory / FILE_NAMES[ACCESS_LIST]).write_text("['1', '2']")
    access = read(directory, enforces_quota=True, uses_deny_list=True, uses_access_list=True).access
    assert access.denied_users == {"mallory"}
    assert access.accepted_organisations == {"1", "2"}
    assert access.quota.is_enforced
    assert access.quota.organisations["13640203"].instances == 5
    quota = access.quota.organisations["13640203"].granted[0].billing_models[0]
    assert quota.expires_at is not None
    assert quota.expires_at.isoformat() == "2030-12-31T00:00:00+00:00"
    assert access.admin_roles["DELETE"] == ("kas-fleet-manager-admin-full",)


def test_lists_that_are_off_are_none():
    access = read(EXAMPLES).access
    assert (access.denied_users, access.accepted_organisations, access.quota.is_enforced) == (None, None, False)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (DENY_LIST, "{a: b}"),
        (ACCESS_LIST, "[1]"),
        (QUOTA_LIST, "registered_service_accounts: [{username: a}, {username: a}]"),
        (QUOTA_LIST, "registered_users_per_organisation: [{id: '1', granted_quota: [{instance_type_id: ''}]}]"),
    ],
)
def test_mistakes_in_lists_of_callers_are_found(directory: Path, key: str, text: str):
    (directory / FILE_NAMES[key]).write_text(text)
    found = find_mistakes(directory, enforces_quota=True, uses_deny_list=True, uses_access_list=True)
    assert len(found) == 1
    assert found[0].startswith(FILE_NAMES[key])


def test_rules_about_a_list_are_reported_beside_mistakes_in_its_items(directory: Path):
    region = {"name": "us-east-1", "default": True, "supported_instance_type": {"standard": {"limit": -1}}}
    providers = [
        {"name": "aws", "default": True, "regions": [region, region]},
        {"name": "AWS", "default": True, "regions": 7},
    ]
    (directory / FILE_NAMES[PROVIDERS]).write_text(yaml.safe_dump({"supported_providers": providers}))
    change(directory, INSTANCE_TYPES, ["supported_instance_types", 0, "sizes", 0, "quotaConsumed"], 0)
    change(directory, INSTANCE_TYPES, ["supported_instance_types", 0, "sizes", 1, "id"], "x1")
    prefix = f"{FILE_NAMES[PROVIDERS]}: supported_providers"
    types = f"{FILE_NAMES[INSTANCE_TYPES]}: supported_instance_types[0]"
    assert find_mistakes(directory) == [
        f"{prefix}[0].regions[0].supported_instance_type.standard.limit: must be at least 0",
        f"{prefix}[0].regions[1].supported_instance_type.standard.limit: must be at least 0",
        f"{prefix}[0].regions: 2 regions of aws are the default; it must be one",
        f"{prefix}[0].regions: the region 'us-east-1' occurs twice",
        f"{prefix}[1].regions: must be a list",
        f"{prefix}: 2 providers are the default; it must be one",
        f"{prefix}: the provider 'aws' occurs twice",
        f"{types}.sizes[0].quotaConsumed: must be at least 1",
        f"{types}.sizes: the size 'x1' occurs twice",
    ]


@pytest.mark.parametrize("odd", [None, 7, [], [7], [{}], [[]], "x", {"a": 1}, [{"name": [], "default": []}]])
def test_a_list_of_another_shape_is_a_mistake(directory: Path, odd: Any):
    change(directory, PROVIDERS, ["supported_providers"], odd)
    assert find_mistakes(directory)
    shutil.copytree(EXAMPLES, directory, dirs_exist_ok=True)
    change(directory, PROVIDERS, ["supported_providers", 0, "regions"], odd)
    assert find_mistakes(directory)


def test_a_file_that_is_not_text_is_named(directory: Path):
    (directory / FILE_NAMES[PROVIDERS]).write_bytes(b"a: \xff")
    assert f"{FILE_NAMES[PROVIDERS]}: is not UTF-8 at byte 3" in find_mistakes(directory)
