"""Which objects of Cluster API are node groups, and what they say of themselves (docs/design/nodes.md 9.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.local.cluster_api.definitions import build_definition
from plimsoll.nodes.model.call_outcomes import Done, NotImplementedByProvider
from plimsoll.nodes.providers.clusterapi.annotations import is_propagated, is_synced
from plimsoll.nodes.providers.clusterapi.settings import Discovery, read_discovery, read_settings
from plimsoll.nodes.providers.values import GroupOptions, ProviderFailed
from tests.nodes.providers.clusterapi.capi_clusters import DEFINITIONS, CapiCluster
from tests.nodes.providers.clusterapi.capi_objects import GROUP, HERE, MAX, MIN, bounds, collection, scalable
from tests.nodes.providers.simulated.simulated_clusters import AN_HOUR, DEFAULTS

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

OPTIONS = f"{GROUP}/autoscaling-options-"


def ids(world: CapiCluster) -> list[str]:
    world.do(world.provider.refresh())
    return list(world.groups())


def test_all_three_kinds_with_both_bounds_are_groups():
    with CapiCluster(runs=False) as world:
        for kind in ("MachineSet", "MachineDeployment", "MachinePool"):
            world.made(scalable(kind, "x", replicas=2, annotations=bounds(1, 5)))
        assert ids(world) == [f"{kind}/{HERE}/x" for kind in ("MachineDeployment", "MachinePool", "MachineSet")]
        group = world.groups()[f"MachinePool/{HERE}/x"]
        assert (group.min_size, group.max_size, world.do(group.target_size())) == (1, 5, 2)
        assert (group.exists, group.autoprovisioned, group.autoscaled) == (True, False, True)
        assert group.debug == f"MachinePool/{HERE}/x (min: 1, max: 5, replicas: 2)"


@pytest.mark.parametrize(
    "annotations",
    [{MIN: "0"}, {MAX: "3"}, {}, bounds("one", 3), bounds(0, "3.5"), bounds(-1, 3), bounds(4, 3), bounds(0, 0)],
    ids=["no max", "no min", "neither", "no number", "a fraction", "negative", "inconsistent", "nothing"],
)
def test_without_two_sound_bounds_it_is_no_group_and_others_still_are(annotations: dict[str, str]):
    with CapiCluster(runs=False) as world:
        world.deployment("odd", annotations=annotations)
        world.deployment("sound")
        assert ids(world) == [f"MachineDeployment/{HERE}/sound"]


def test_a_machine_set_of_a_deployment_is_no_group():
    with CapiCluster(runs=False) as world:
        world.deployment("md")
        world.made(scalable("MachineSet", "md-s", owners=[("MachineDeployment", "md")]))
        assert ids(world) == [f"MachineDeployment/{HERE}/md"]


def test_what_is_paused_is_skipped():
    with CapiCluster(runs=False) as world:
        world.deployment("md", annotations={**bounds(), f"{GROUP}/paused": ""})
        assert ids(world) == []


def test_what_is_being_deleted_is_no_group_any_more():
    with CapiCluster(runs=False) as world:
        body = scalable("MachineDeployment", "md")
        body["metadata"]["finalizers"] = ["a.b/c"]
        world.made(body)
        assert ids(world) == [f"MachineDeployment/{HERE}/md"]
        world.kube.ask("DELETE", f"{collection('MachineDeployment')}/md")
        assert ids(world) == []


def test_without_replicas_its_size_is_unknown():
    with CapiCluster(runs=False) as world:
        world.deployment("md", replicas=None)
        assert ids(world) == []


def test_machine_pools_need_not_be_installed():
    with CapiCluster(runs=False, kinds=("MachineDeployment", "MachineSet", "Machine")) as world:
        world.deployment("md")
        assert ids(world) == [f"MachineDeployment/{HERE}/md"]


def test_without_cluster_api_the_provider_says_so(reviewed: ReviewedSentences):
    with CapiCluster(runs=False, kinds=()) as world, pytest.raises(ProviderFailed) as refused:
        world.do(world.provider.refresh())
    reviewed(str(refused.value))


@pytest.mark.parametrize(("group", "version"), [(GROUP, "v1beta2"), ("machines.example.com", "v1beta1")])
def test_group_and_version_are_those_of_the_management_cluster(group: str, version: str):
    with CapiCluster(runs=False, kinds=(), group=group) as world:
        for kind in ("MachineDeployment", "MachineSet", "Machine"):
            world.kube.made(DEFINITIONS, build_definition(kind, group=group, version=version))
        world.run.settle()
        body = scalable(
            replicas=1, annotations={name.replace(GROUP, group): text for name, text in bounds(0, 3).items()}
        )
        url = collection("MachineDeployment", group=group, version=version)
        world.kube.made(url, {**body, "apiVersion": f"{group}/{version}"})
        assert ids(world) == [f"MachineDeployment/{HERE}/md"]
        (found,) = world.groups().values()
        assert world.do(found.increase_size(1, expected=1)) == Done()
        assert world.kube.ask("GET", f"{url}/md")["spec"]["replicas"] == 2


def test_cluster_api_may_come_later():
    with CapiCluster(runs=False, kinds=()) as world:
        with pytest.raises(ProviderFailed):
            world.do(world.provider.refresh())
        for kind in ("MachineDeployment", "MachineSet", "Machine"):
            world.kube.made(DEFINITIONS, build_definition(kind))
        world.run.settle()
        assert ids(world) == []


# ---- which of them


DISCOVERED: list[tuple[str, list[str]]] = [
    ("clusterapi:", ["a", "b"]),
    (f"clusterapi:namespace={HERE}", ["a", "b"]),
    ("clusterapi:namespace=elsewhere", []),
    ("clusterapi:clusterName=one", ["a"]),
    ("clusterapi:team=red", ["b"]),
    ("clusterapi:clusterName=one,team=red", []),
]


@pytest.mark.parametrize(("flag", "found"), DISCOVERED)
def test_discovery_restricts_by_namespace_cluster_and_labels(flag: str, found: list[str]):
    with CapiCluster(runs=False, discoveries=(read_discovery(flag),)) as world:
        world.deployment("a", clusterName="one")
        world.deployment("b", clusterName="two", labels={"team": "red"})
        assert ids(world) == [f"MachineDeployment/{HERE}/{name}" for name in found]


def test_several_discoveries_are_alternatives():
    flags = ("clusterapi:clusterName=one", "clusterapi:team=red")
    with CapiCluster(runs=False, discoveries=tuple(read_discovery(flag) for flag in flags)) as world:
        world.deployment("a", clusterName="one")
        world.deployment("b", clusterName="two", labels={"team": "red"})
        world.deployment("c", clusterName="two")
        assert ids(world) == [f"MachineDeployment/{HERE}/{name}" for name in "ab"]


@pytest.mark.parametrize("flag", ["clusterapi", "asg:tag=x", "clusterapi:a", "clusterapi:a=b=c", "clusterapi:-=x"])
def test_a_discovery_that_cannot_be_read_is_an_error(flag: str):
    with pytest.raises(InvalidInput, match="node-group-auto-discovery"):
        read_discovery(flag)


def test_group_version_and_architecture_come_from_the_environment():
    around = {"CAPI_GROUP": "x.io", "CAPI_VERSION": "v1", "CAPI_SCALE_ZERO_DEFAULT_ARCH": "arm64"}
    settings = read_settings(around, ["clusterapi:namespace=n"])
    assert (settings.group, settings.version, settings.architecture) == ("x.io", "v1", "arm64")
    assert settings.discoveries == (Discovery(namespace="n"),)
    assert settings.keys.min_size == "x.io/cluster-api-autoscaler-node-group-min-size"
    assert read_settings({"CAPI_SCALE_ZERO_DEFAULT_ARCH": "z80"}).architecture == "amd64"


# ---- options


def test_options_of_one_group_come_from_its_annotations():
    reported = {
        "scaledownutilizationthreshold": "0.4",
        "scaledowngpuutilizationthreshold": "0.3",
        "scaledownunneededtime": "1m",
        "scaledownunreadytime": "2m30s",
        "maxnodeprovisiontime": "20m",
        "maxnodestartuptime": "25m",
        "ignoredaemonsetsutilization": "true",
    }
    annotations = {**bounds(), **{f"{OPTIONS}{name}": value for name, value in reported.items()}}
    assert options_with(annotations) == GroupOptions(
        utilization_threshold=0.4,
        gpu_utilization_threshold=0.3,
        unneeded_s=60.0,
        unready_s=150.0,
        provision_s=1200.0,
        startup_s=1500.0,
        ignore_daemon_sets=True,
    )


def test_an_option_that_cannot_be_read_changes_nothing():
    annotations = {**bounds(), f"{OPTIONS}scaledownunneededtime": "soon", f"{OPTIONS}maxnodeprovisiontime": "1m"}
    options = options_with(annotations)
    assert (options.unneeded_s, options.provision_s) == (DEFAULTS.unneeded_s, 60.0)


def options_with(annotations: dict[str, str]) -> GroupOptions:
    with CapiCluster(runs=False) as world:
        world.deployment("md", annotations=annotations)
        options = world.do(world.refreshed().get_options(DEFAULTS))
        assert isinstance(options, GroupOptions)
        return options


def test_there_are_no_prices_and_no_atomic_growth():
    with CapiCluster(runs=False) as world:
        world.deployment("md", replicas=1)
        group = world.refreshed()
        assert world.do(group.can_increase_atomically()) is False
        atomic: Any = world.do(group.atomic_increase_size(1, expected=1))
        assert atomic == NotImplementedByProvider(call="AtomicIncreaseSize")
        price: Any = world.do(world.provider.node_price(None, AN_HOUR))  # type: ignore[arg-type]  # it is not read
        assert price == NotImplementedByProvider(call="Pricing")


@pytest.mark.parametrize(
    ("key", "comes"),
    [
        ("node-role.kubernetes.io/worker", True),
        ("node-restriction.kubernetes.io/x", True),
        ("a.node-restriction.kubernetes.io/x", True),
        ("node.cluster.x-k8s.io/x", True),
        ("x.node.cluster.x-k8s.io/x", True),
        ("team", False),
        ("example.com/team", False),
        ("evilnode.cluster.x-k8s.io/x", False),
    ],
)
def test_only_labels_that_cluster_api_propagates_come_to_nodes(key: str, comes: bool):
    assert is_propagated(key) is comes
    assert is_synced(key, "*")
    assert is_synced("example.com/team", "example.com, other")
