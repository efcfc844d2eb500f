"""TidbClusters that are made beside a base (docs/design/tidb.md 3.5.2, 3.6), and how they follow it (7)."""

from __future__ import annotations

import copy
import tomllib
from typing import Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.tidb.model.names import FreeName, find_free_name
from plimsoll.tidb.model.reconcile_types import Size
from plimsoll.tidb.wire.annotations import (
    is_made_by,
    read_change_time,
    read_drain_record,
    write_drain_record,
)
from plimsoll.tidb.wire.cluster_manifests import (
    GroupOwner,
    build_external_manifest,
    build_follow_patch,
    build_group_manifest,
    make_name_seed,
)
from plimsoll.tidb.wire.config_labels import add_labels, read_labels
from tests.cli.tidb.tidb_commands import cluster
from tests.tidb.planning.reconcile.builders import KEY, MARK, SMALL_SIZE, START, TIDB, TIKV, plan

LABELS = {"group": KEY, "resource-type": "small", "specialUse": "hotRegion"}


def made_for(component: Any = TIKV, **changes: Any) -> GroupOwner:
    fields = {"autoscaler": "as1", "namespace": "prod", "uid": "u-1", "component": component, "now": START}
    return GroupOwner(**{**fields, **changes})


def group_of(base: dict[str, Any], *, component: Any = TIKV, size: Size = SMALL_SIZE, **changes: Any) -> dict[str, Any]:
    before = copy.deepcopy(base)
    wanted = plan(count=2, component=component)
    name = FreeName(name="auto-x", collision=changes.pop("collision", 0))
    body = build_group_manifest(base, made_for(component, **changes), plan=wanted, size=size, name=name)
    assert base == before
    return body


def test_t19_the_body_of_a_group():
    extra = {"tiflash": {"replicas": 1}, "ticdc": {}, "pump": {}, "tiproxy": {}, "timezone": "UTC", "paused": False}
    body = group_of(cluster(**extra, tikv={"replicas": 3, "requests": {"cpu": "4", "storage": "9Gi"}, "odd": [1]}))
    labels = body["metadata"].pop("labels")
    assert labels == {
        "tidb.pingcap.com/base-tc": "db",
        "tidb.pingcap.com/auto-instance": "as1",
        "tidb.pingcap.com/auto-component": "tikv",
        "tidb.pingcap.com/autoscaling-group": KEY,
        "app.kubernetes.io/auto-instance": "as1",
        "app.kubernetes.io/auto-component": "tikv",
    }
    owner = body["metadata"].pop("ownerReferences")
    assert owner == [
        {
            "apiVersion": "pingcap.com/v1alpha1",
            "kind": "TidbClusterAutoScaler",
            "name": "as1",
            "uid": "u-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert body == {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {
            "name": "auto-x",
            "namespace": "prod",
            "annotations": {"tidb.pingcap.com/last-autoscaling-timestamp": "2026-01-01T00:00:00Z"},
        },
        "spec": {
            "version": "v8.5.0",
            "timezone": "UTC",
            "paused": False,
            "cluster": {"namespace": "prod", "name": "db"},
            "enablePVReclaim": True,
            "tikv": {
                "replicas": 2,
                "requests": {"cpu": "1", "memory": "2Gi", "storage": "10Gi"},
                "limits": {"cpu": "1", "memory": "2Gi"},
                "odd": [1],
                "config": {"server": {"labels": LABELS}},
            },
        },
    }


def test_t19_the_name_of_a_group():
    labels = {"group": "pd-auto-scaling-tikv-storage_small", "resource-type": "storage_small"}
    wanted = plan("storage_small")
    assert wanted.labels == {**labels, "specialUse": "hotRegion"}
    assert find_free_name(make_name_seed(made_for(), wanted, SMALL_SIZE), ()).name == "auto-dbf6f9fdd"


def test_an_autoscaler_elsewhere_is_no_owner():
    assert "ownerReferences" not in group_of(cluster(), namespace="team")["metadata"]


def test_the_domain_is_that_of_the_autoscaler_or_the_base():
    assert group_of(cluster(), cluster_domain="a.local")["spec"]["cluster"]["clusterDomain"] == "a.local"
    assert group_of(cluster(clusterDomain="b.local"))["spec"]["cluster"]["clusterDomain"] == "b.local"


def test_a_collision_is_recorded():
    annotations = group_of(cluster(), collision=2)["metadata"]["annotations"]
    assert annotations["autoscaler.tidb.pingcap.com/collision"] == "2"


def test_a_group_of_tidb_has_no_storage_and_its_labels_elsewhere():
    part = group_of(cluster(), component=TIDB)["spec"]["tidb"]
    assert part["requests"] == {"cpu": "1", "memory": "2Gi"}
    assert part["config"]["labels"].keys() == {"group", "resource-type"}


@pytest.mark.parametrize(
    ("number", "text"),
    [(10 * 1024**3, "10Gi"), (1536 * 1024**2, "1536Mi"), (10**10, "10G"), (2**20 + 1, "1048577"), (2048, "2Ki")],
)
def test_sizes_are_written_as_people_do(number: int, text: str):
    size = Size(cpu_milli=1500, memory_bytes=number, storage_bytes=number)
    part = group_of(cluster(), size=size)["spec"]["tikv"]
    assert part["requests"] == {"cpu": "1500m", "memory": text, "storage": text}


def test_t24_the_cluster_of_an_external_service_is_sized_like_the_base():
    body = build_external_manifest(cluster(), made_for(), replicas=3)
    assert body["metadata"]["name"] == "db-tikv-external"
    assert "tidb.pingcap.com/autoscaling-group" not in body["metadata"]["labels"]
    part = body["spec"]["tikv"]
    assert part["requests"] == cluster()["spec"]["tikv"]["requests"]
    assert (part["replicas"], part["config"]) == (3, {"server": {"labels": {"specialUse": "hotRegion"}}})
    assert "config" not in build_external_manifest(cluster(), made_for(TIDB), replicas=3)["spec"]["tidb"]


# ---- labels in a configuration

TOML = '# ours\nlog-level = "info"\n\n[server]\n  grpc = 4 # four\n\n[server.labels]\nzone = "a"\n\n[raftdb]\nx = 1\n'


@pytest.mark.parametrize(
    "text",
    [
        TOML,
        "",
        "[server]\n",
        '[server]\nlabels = {zone = "a"}\n',
        'server.labels.zone = "a"\n',
        '[server]\na = 1\n[x]\nb = 2\n[server.labels]\nzone = "a"\n',
        '[server.labels]\nzone = "a"',
    ],
)
def test_labels_join_toml_of_any_shape(text: str):
    found = add_labels(text, {**LABELS, "a.b/c": "d"}, TIKV)
    before, after = tomllib.loads(text), tomllib.loads(found)
    labels = after["server"].pop("labels")
    assert labels == {**before.get("server", {}).pop("labels", {}), **LABELS, "a.b/c": "d"}
    assert after == {"server": {}, **before}
    assert add_labels(found, LABELS, TIKV) == found


def test_comments_in_toml_stay():
    found = add_labels(TOML, LABELS, TIKV)
    assert found.startswith("# ours\n")
    assert "grpc = 4 # four" in found


def test_labels_join_a_map_and_overrule_it():
    config = {"server": {"labels": {"zone": "a", "group": "old"}}, "x": 1}
    found = add_labels(config, LABELS, TIKV)
    assert found == {"server": {"labels": {"zone": "a", **LABELS}}, "x": 1}
    assert config["server"] == {"labels": {"zone": "a", "group": "old"}}
    assert read_labels(found, TIKV) == {"zone": "a", **LABELS}


@pytest.mark.parametrize("config", ["a = ", "server = 1", {"server": "x"}, {"server": {"labels": []}}, [1], 7])
def test_a_configuration_that_takes_no_labels_is_refused_by_name(config: Any):
    with pytest.raises(InvalidInput, match=r"spec\.tikv\.config"):
        add_labels(config, LABELS, TIKV)


# ---- the base is edited


def test_what_follows_needs_nothing():
    for config in (None, {"server": {"grpc": 4}}, TOML):
        base = cluster(tikv={"replicas": 3, "requests": {"cpu": "4"}, "config": config})
        assert build_follow_patch(base, group_of(base), component=TIKV) is None


def test_version_image_and_config_follow_and_nothing_else():
    before = cluster(tikv={"replicas": 3, "image": "a", "config": {"x": 1, "server": {"labels": {"zone": "a"}}}})
    ours = group_of(before)
    config = {"y": 2, "server": {"grpc": 4}}
    after = cluster(version="v9", tikv={"replicas": 9, "requests": {"cpu": 64}, "baseImage": "b", "config": config})
    after["metadata"]["labels"] = {"a": "b"}
    assert build_follow_patch(after, ours, component=TIKV) == {
        "spec": {
            "version": "v9",
            "tikv": {"baseImage": "b", "image": None, "config": {"x": None, "y": 2, "server": {"grpc": 4}}},
        }
    }


def test_toml_follows_as_text_with_our_labels():
    base = cluster(tikv={"replicas": 3, "requests": {"cpu": "4"}, "config": TOML})
    ours = group_of(base)
    base["spec"]["tikv"]["config"] = TOML.replace("4 # four", "5")
    patch = build_follow_patch(base, ours, component=TIKV)
    assert patch is not None
    text = patch["spec"]["tikv"].pop("config")
    assert patch == {"spec": {"tikv": {}}}
    assert tomllib.loads(text)["server"] == {"grpc": 5, "labels": {"zone": "a", **LABELS}}


# ---- marks


def test_a_mark_is_read_as_it_was_written_and_nothing_else_is():
    assert read_drain_record({"autoscaler.tidb.pingcap.com/drain": write_drain_record(MARK)}) == MARK
    for text in ("", "{}", "[", "null"):
        assert read_drain_record({"autoscaler.tidb.pingcap.com/drain": text}) is None


def test_a_time_is_read_only_with_its_zone():
    name = "tidb.pingcap.com/last-autoscaling-timestamp"
    assert read_change_time({name: "2026-01-01T00:00:00Z"}) == START
    for text in ("", "yesterday", "2026-01-01T00:00:00"):
        assert read_change_time({name: text}) is None
    assert read_change_time({}) is None


@pytest.mark.parametrize("family", ["tidb.pingcap.com", "app.kubernetes.io"])
def test_clusters_of_either_family_of_labels_are_ours(family: str):
    labels = {f"{family}/auto-instance": "as1", f"{family}/auto-component": "tikv"}
    assert is_made_by(labels, autoscaler="as1", component=TIKV, base="db")
    assert not is_made_by(labels, autoscaler="as1", component=TIDB)
    assert not is_made_by(labels, autoscaler="as2", component=TIKV)
    other = {**labels, "tidb.pingcap.com/base-tc": "else"}
    assert not is_made_by(other, autoscaler="as1", component=TIKV, base="db")
