"""`--scheduler-config-file`: pods are planned as the cluster's own scheduler places them, or the file is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.nodes.config.scheduler_profiles import SchedulerProfile, load_profiles, read_profiles
from plimsoll.nodes.observing.pod_store import PodStore
from plimsoll.nodes.observing.scheduler_profile_pods import SchedulerProfilePods, apply_profile
from plimsoll.objects.api.pods import Pod
from plimsoll.scheduling import ClusterView, DoesNotFit, check_node
from tests.nodes.planning.scaledown.builders import node
from tests.simulation.builders import group, outcome, template

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences

ZONE = "topology.kubernetes.io/zone"
DO_NOT = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}


def written(*profiles: dict[str, Any], **more: Any) -> bytes:
    whole = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles),
        **more,
    }
    return msgspec.json.encode(whole)


def read(**profile: Any) -> SchedulerProfile:
    [found] = read_profiles(written(profile), source="file")
    return found


def with_arguments(name: str, **arguments: Any) -> SchedulerProfile:
    return read(pluginConfig=[{"name": name, "args": arguments}])


def without(*filters: str) -> SchedulerProfile:
    return read(plugins={"filter": {"disabled": [{"name": name} for name in filters]}})


def pod(*, owner: str = "ReplicaSet", labels: dict[str, str] | None = None, **spec: Any) -> Pod:
    owners = [{"kind": owner, "name": "rs", "controller": True, "apiVersion": "apps/v1"}] if owner else []
    metadata = {"name": "p", "namespace": "default", "labels": labels or {}, "ownerReferences": owners}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    return msgspec.convert({"metadata": metadata, "spec": {"containers": containers, **spec}}, Pod)


def fits(one: Pod, **of_node: Any) -> bool:
    on = node("n1", **of_node)
    view = ClusterView.from_objects([on])
    return not isinstance(check_node(one, on, view), DoesNotFit)


# ---- what the file may hold


def test_a_file_that_only_scores_changes_nothing():
    scoring = [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 5}}]
    plugins = {"score": {"disabled": [{"name": "*"}]}, "multiPoint": {"enabled": [{"name": "ImageLocality"}]}}
    assert read(pluginConfig=scoring, plugins=plugins).is_plain


def test_every_filter_off_but_those_that_are_on_again():
    known = ("NodeResourcesFit", "NodeName", "VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")
    enabled = [{"name": name} for name in (*known, "TaintToleration", "NodeAffinity")]
    profile = read(plugins={"filter": {"disabled": [{"name": "*"}], "enabled": enabled}})
    assert profile.off == {"NodePorts", "PodTopologySpread", "InterPodAffinity", "NodeUnschedulable"}


def test_filters_alone_go_before_all_extension_points():
    plugins = {
        "multiPoint": {"disabled": [{"name": "NodePorts"}, {"name": "PodTopologySpread"}]},
        "filter": {"enabled": [{"name": "NodePorts"}]},
    }
    assert read(plugins=plugins).off == {"PodTopologySpread"}


@pytest.mark.parametrize(
    ("profile", "reported"),
    [
        ({"plugins": {"filter": {"enabled": [{"name": "Capacity"}]}}}, "filter.enabled[0]: Capacity is not known here"),
        ({"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}, "NodeResourcesFit cannot be left out"),
        ({"plugins": {"filter": []}}, "profiles[0].plugins.filter: must be a map"),
        ({"pluginConfig": {}}, "profiles[0].pluginConfig: must be a list"),
        (
            {"pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultConstraints": [DO_NOT]}}]},
            "defaultConstraints: needs defaultingType: List",
        ),
        (
            {
                "pluginConfig": [
                    {
                        "name": "PodTopologySpread",
                        "args": {
                            "defaultingType": "List",
                            "defaultConstraints": [{**DO_NOT, "labelSelector": {"matchLabels": {"a": "b"}}}],
                        },
                    }
                ]
            },
            "defaultConstraints[0]: must not have a labelSelector",
        ),
        (
            {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": [7]}}]},
            "args.ignoredResources: Expected",
        ),
    ],
)
def test_what_cannot_be_simulated_or_read_is_refused_with_its_place(
    profile: dict[str, Any], reported: str, reviewed: ReviewedSentences
):
    with pytest.raises(InvalidInput) as refused:
        read_profiles(written(profile), source="file")
    reviewed(str(refused.value))
    assert reported in str(refused.value)


def test_a_file_of_another_kind_and_a_missing_one(tmp_path: Path, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as refused:
        read_profiles(b"{apiVersion: apps/v1, kind: Deployment}", source="file")
    reviewed(str(refused.value))
    with pytest.raises(InvalidInput) as refused:
        read_profiles(written({}, {"schedulerName": "default-scheduler"}), source="file")
    reviewed(str(refused.value))
    with pytest.raises(InvalidInput) as refused:
        load_profiles(str(tmp_path / "none.yaml"), path="scheduler-config-file")
    reviewed(str(refused.value))
    assert load_profiles("", path="scheduler-config-file") == ()


# ---- what it means for pods


def test_taints_are_not_asked_where_that_filter_is_off():
    tainted = {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]}
    assert not fits(pod(), **tainted)
    assert fits(apply_profile(pod(), without("TaintToleration")), **tainted)


def test_node_affinity_is_not_asked_where_that_filter_is_off():
    one = pod(nodeSelector={"disk": "ssd"})
    assert not fits(one)
    assert fits(apply_profile(one, without("NodeAffinity")))


def test_added_affinity_holds_besides_the_pods_own():
    def required(key: str, *values: str) -> dict[str, Any]:
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]} for value in values]
        return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}

    profile = with_arguments("NodeAffinity", addedAffinity=required("pool", "a", "b"))
    plain = apply_profile(pod(), profile)
    picky = apply_profile(pod(affinity={"nodeAffinity": required("disk", "ssd")}), profile)

    assert [fits(plain, labels={"pool": pool}) for pool in ("a", "b", "c")] == [True, True, False]
    assert [fits(picky, labels={"pool": pool, "disk": "ssd"}) for pool in ("b", "c")] == [True, False]
    assert not fits(picky, labels={"pool": "a"})


def test_ports_are_free_where_that_filter_is_off():
    one = pod(containers=[{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}])
    assert apply_profile(one, without("NodePorts")).spec.containers[0].ports[0].host_port == 0


def test_affinity_between_pods_is_dropped_where_that_filter_is_off():
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    one = pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    assert apply_profile(one, without("InterPodAffinity")).spec.affinity is None


def test_resources_that_the_scheduler_ignores_are_not_asked_for():
    one = pod(
        containers=[
            {
                "name": "c",
                "resources": {
                    "requests": {"cpu": "1", "example.com/fpga": "1", "example.com/nic": "1", "other.io/x": "1"},
                    "limits": {"example.com/fpga": "1"},
                },
            }
        ]
    )
    by_name = apply_profile(one, with_arguments("NodeResourcesFit", ignoredResources=["example.com/fpga", "cpu"]))
    by_group = apply_profile(one, with_arguments("NodeResourcesFit", ignoredResourceGroups=["example.com"]))

    assert set(by_name.spec.containers[0].resources.requests) == {"cpu", "example.com/nic", "other.io/x"}
    assert by_name.spec.containers[0].resources.limits == {}
    assert set(by_group.spec.containers[0].resources.requests) == {"cpu", "other.io/x"}


def test_default_constraints_are_for_pods_of_an_owner_that_name_none():
    wish = {**DO_NOT, "whenUnsatisfiable": "ScheduleAnyway"}
    profile = with_arguments("PodTopologySpread", defaultingType="List", defaultConstraints=[DO_NOT, wish])
    labels = {"app": "db", "statefulset.kubernetes.io/pod-name": "db-0"}

    [spread] = apply_profile(pod(owner="StatefulSet", labels=labels), profile).spec.topology_spread_constraints
    assert (spread.topology_key, spread.max_skew) == (ZONE, 1)
    assert spread.label_selector is not None
    assert spread.label_selector.match_labels == {"app": "db"}
    alone, own = pod(owner="", labels=labels), pod(labels=labels, topologySpreadConstraints=[wish])
    assert apply_profile(alone, profile) is alone
    assert apply_profile(own, profile) is own


def test_one_profile_is_everybodys_and_of_several_each_scheduler_has_its_own():
    off = {"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}
    mine, theirs = pod(schedulerName="mine"), pod(schedulerName="theirs")
    only = SchedulerProfilePods(read_profiles(written({**off, "schedulerName": "mine"}), source="file"))
    several = SchedulerProfilePods(read_profiles(written({}, {**off, "schedulerName": "mine"}), source="file"))

    assert [bool(only.apply(pod).spec.tolerations) for pod in (mine, theirs)] == [True, True]
    assert [bool(several.apply(pod).spec.tolerations) for pod in (mine, theirs)] == [True, False]


def test_a_pod_that_did_not_change_is_the_same_object_in_the_next_turn():
    cache: WritableCache[Pod] = WritableCache()
    cache.put(("default", "p"), pod())
    book = PodStore(cache, as_scheduled=SchedulerProfilePods([without("TaintToleration")]).apply)
    book.renew()
    [first] = book
    cache.put(("default", "other"), pod())
    book.renew()

    assert book.get(("default", "p")) is first
    assert first.spec.tolerations
    assert SchedulerProfilePods([]).apply(first) is first


# ---- in the loop


def test_the_autoscaler_plans_by_the_schedulers_own_rules(tmp_path: Path):
    file = tmp_path / "scheduler.yaml"
    file.write_bytes(written({"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}}))
    tainted = {
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}],
    }
    groups = [{key: value for key, value in group(template=tainted).items() if key != "machineType"}]
    pods = [{"name": "web", "count": 1, "template": template()}]

    def grown(**options: str) -> Any:
        return outcome({"loop": 1}, nodeGroups=groups, pods=pods, options=options)["nodeGroups"]["g"]["target"]

    assert grown() == 0
    assert grown(**{"scheduler-config-file": str(file)}) == 1
