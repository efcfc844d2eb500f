"""Claims, volumes, zones, attach limits and disks that cannot be shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.objects.api.meta import LabelSelector
from plimsoll.objects.api.storage import PersistentVolumeClaimStatus
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import check_node, check_nodes
from plimsoll.scheduling.storage import Storage
from plimsoll.scheduling.verdicts import DoesNotFit, Fits, Refusal
from tests.scheduling.builders import ZONE, claim, csi_node, node, pod, storage_class, uses, volume

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

NODES = [node("n1", zone="z1"), node("n2", zone="z2"), node("n3", zone="")]
BIND = "node(s) didn't find available persistent volumes to bind"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
ZONES = "node(s) had no available volume zone"


def where(made: Pod, storage: Storage, *others: Pod) -> list[str]:
    view = ClusterView.from_objects(NODES, others, storage=storage)
    return [name for name, verdict in check_nodes(made, view).items() if isinstance(verdict, Fits)]


def refusal(made: Pod, storage: Storage, *others: Pod, on: str = "n1") -> Refusal | None:
    view = ClusterView.from_objects(NODES, others, storage=storage)
    verdict = check_node(made, view.nodes[on].node, view)
    return verdict.reason if isinstance(verdict, DoesNotFit) else None


def test_a_bound_volume_ties_the_pod_to_its_nodes():
    storage = Storage(claims=[claim(volume="pv")], volumes=[volume(zone="z1")])

    assert where(pod(**uses("data")), storage) == ["n1"]
    assert refusal(pod(**uses("data")), storage, on="n2") == Refusal(plugin="VolumeBinding", messages=(AFFINITY,))


@pytest.mark.parametrize("key", [ZONE, "failure-domain.beta.kubernetes.io/zone"])
def test_zone_labels_of_a_volume_in_both_spellings(key: str):
    storage = Storage(claims=[claim(volume="pv")], volumes=[volume(labels={key: "z2"})])

    assert where(pod(**uses("data")), storage) == ["n2", "n3"]
    assert refusal(pod(**uses("data")), storage) == Refusal(plugin="VolumeZone", messages=(ZONES,))


def test_a_volume_in_several_zones():
    storage = Storage(claims=[claim(volume="pv")], volumes=[volume(labels={ZONE: "z1__z2"})])

    assert where(pod(**uses("data")), storage) == ["n1", "n2", "n3"]


def test_a_zone_label_with_a_gap_is_ignored():
    storage = Storage(claims=[claim(volume="pv")], volumes=[volume(labels={ZONE: "z9__"})])

    assert where(pod(**uses("data")), storage) == ["n1", "n2", "n3"]


def test_a_volume_of_a_region_keeps_to_nodes_of_that_region():
    storage = Storage(claims=[claim(volume="pv")], volumes=[volume(labels={"topology.kubernetes.io/region": "r1"})])

    assert where(pod(**uses("data")), storage) == ["n3"]


@pytest.mark.parametrize(
    ("storage", "plugin", "words"),
    [
        (Storage(), "VolumeRestrictions", 'persistentvolumeclaim "data" not found'),
        (
            Storage(claims=[claim()], classes=[storage_class(mode="Immediate")]),
            "VolumeBinding",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (Storage(claims=[claim()]), "VolumeBinding", "pod has unbound immediate PersistentVolumeClaims"),
        (
            Storage(claims=[claim(volume="pv", deletionTimestamp="2026-01-01T00:00:00Z")], volumes=[volume()]),
            "VolumeBinding",
            'persistentvolumeclaim "data" is being deleted',
        ),
        (Storage(claims=[claim(volume="gone")]), "VolumeZone", 'persistentvolume "gone" not found'),
    ],
)
def test_claims_that_no_node_can_satisfy(storage: Storage, plugin: str, words: str):
    assert refusal(pod(**uses("data")), storage) == Refusal(plugin=plugin, messages=(words,))


def test_waiting_claims_are_provisioned_where_the_class_allows():
    anywhere = Storage(claims=[claim()], classes=[storage_class()])
    in_z2 = Storage(claims=[claim()], classes=[storage_class(zones=("z2",))])

    assert where(pod(**uses("data")), anywhere) == ["n1", "n2", "n3"]
    assert where(pod(**uses("data")), in_z2) == ["n2"]
    assert refusal(pod(**uses("data")), in_z2) == Refusal(plugin="VolumeBinding", messages=(BIND,))


STATIC = storage_class(provisioner="kubernetes.io/no-provisioner")


@pytest.mark.parametrize(
    ("offered", "nodes"),
    [
        ([volume(zone="z1")], ["n1"]),
        ([volume()], ["n1", "n2", "n3"]),
        ([volume(zone="z1", storage="512Mi")], []),
        ([volume(zone="z1", storage_class="slow")], []),
        ([volume(zone="z1", accessModes=["ReadOnlyMany"])], []),
        ([volume(zone="z1", volumeMode="Block")], []),
        ([volume(zone="z1", claimRef={"namespace": "default", "name": "other"})], []),
        ([volume(zone="z1", claimRef={"namespace": "default", "name": "data"})], ["n1"]),
        ([volume(zone="z1", storage="lots")], []),
    ],
)
def test_without_a_provisioner_a_free_volume_that_suits_must_be_there(offered: list[Any], nodes: list[str]):
    storage = Storage(claims=[claim()], classes=[STATIC], volumes=offered)

    assert where(pod(**uses("data")), storage) == nodes


def test_a_volume_reserved_for_the_claim_is_the_only_one_it_takes():
    reserved = volume("mine", zone="z1", claimRef={"namespace": "default", "name": "data"})
    storage = Storage(claims=[claim()], classes=[STATIC], volumes=[reserved, volume("free", zone="z2")])

    assert where(pod(**uses("data")), storage) == ["n1"]


def test_a_reserved_volume_need_not_be_selected_nor_have_the_modes():
    mine = {"namespace": "default", "name": "data"}
    reserved = volume("mine", zone="z1", claimRef=mine, accessModes=["ReadOnlyMany"])
    storage = Storage(claims=[claim()], classes=[STATIC], volumes=[reserved])

    assert where(pod(**uses("data")), storage) == ["n1"]


def test_a_reserved_volume_that_is_too_small_does_not_keep_the_claim_from_others():
    reserved = volume("mine", zone="z1", storage="1Mi", claimRef={"namespace": "default", "name": "data"})
    storage = Storage(claims=[claim()], classes=[STATIC], volumes=[reserved, volume("free", zone="z2")])

    assert where(pod(**uses("data")), storage) == ["n2"]


def test_the_old_class_annotation_of_a_volume_counts():
    old = {"volume.beta.kubernetes.io/storage-class": "fast"}
    offered = volume(zone="z1", storage_class="slow")
    annotated = msgspec.structs.replace(offered, metadata=msgspec.structs.replace(offered.metadata, annotations=old))

    assert where(pod(**uses("data")), Storage(claims=[claim()], classes=[STATIC], volumes=[annotated])) == ["n1"]


def test_a_claim_being_provisioned_takes_no_volume_that_is_there():
    chosen = claim(annotations={"volume.kubernetes.io/selected-node": "n2"})

    assert where(pod(**uses("data")), Storage(claims=[chosen], classes=[STATIC], volumes=[volume()])) == []


def test_a_claim_that_names_a_volume_it_did_not_get_yet_is_waited_for():
    named = msgspec.structs.replace(claim(volume="pv"), status=PersistentVolumeClaimStatus(phase="Pending"))
    found = refusal(pod(**uses("data")), Storage(claims=[named], classes=[storage_class()], volumes=[volume()]))

    assert found is not None
    assert found.messages == ("pod has unbound immediate PersistentVolumeClaims",)


def test_a_claims_selector_chooses_among_volumes():
    wanted = msgspec.convert({"matchLabels": {"tier": "gold"}}, LabelSelector)
    choosy = msgspec.structs.replace(claim(), spec=msgspec.structs.replace(claim().spec, selector=wanted))
    offered = [volume("plain", zone="z1"), volume("gold", zone="z2", labels={"tier": "gold"})]

    assert where(pod(**uses("data")), Storage(claims=[choosy], classes=[STATIC], volumes=offered)) == ["n2"]


def test_two_claims_need_two_volumes():
    claims = [claim("a"), claim("b", storage="2Gi")]
    small_and_large = [volume("s", zone="z1"), volume("l", zone="z1", storage="2Gi")]

    assert where(pod(**uses("b", "a")), Storage(claims=claims, classes=[STATIC], volumes=small_and_large)) == ["n1"]
    assert where(pod(**uses("b", "a")), Storage(claims=claims, classes=[STATIC], volumes=small_and_large[1:])) == []


def test_a_claim_whose_node_was_chosen_stays_there():
    chosen = claim(annotations={"volume.kubernetes.io/selected-node": "n2"})

    assert where(pod(**uses("data")), Storage(claims=[chosen], classes=[storage_class()])) == ["n2"]


EPHEMERAL: dict[str, Any] = {"volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}
OWNED = [{"uid": "uid-p", "controller": True, "kind": "Pod", "name": "p"}]


def test_the_claim_of_an_ephemeral_volume_is_waited_for():
    assert refusal(pod(**EPHEMERAL), Storage()) == Refusal(
        plugin="VolumeBinding",
        messages=('waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"',),
    )


def test_the_claim_of_an_ephemeral_volume_must_be_the_pods_own():
    classes = [storage_class(zones=("z2",))]
    own = Storage(claims=[claim("p-scratch", ownerReferences=OWNED)], classes=classes)
    found = refusal(pod(**EPHEMERAL), Storage(claims=[claim("p-scratch")], classes=classes))

    assert where(pod(**EPHEMERAL), own) == ["n2"]
    assert found is not None
    assert found.messages == ("PVC default/p-scratch was not created for pod default/p (pod is not owner)",)


def test_read_write_once_pod_claims_belong_to_one_pod_in_the_cluster():
    storage = Storage(claims=[claim(volume="pv", modes=("ReadWriteOncePod",))], volumes=[volume()])
    user = pod("user", on="n3", **uses("data"))
    found = refusal(pod(**uses("data")), storage, user)

    assert where(pod(**uses("data")), storage) == ["n1", "n2", "n3"]
    assert where(pod(**uses("data")), storage, user) == []
    assert found == Refusal(
        plugin="VolumeRestrictions",
        messages=("node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",),
        resolvable=True,
    )


def csi(name: str) -> Any:
    return volume(name, csi={"driver": "csi.example.com", "volumeHandle": f"handle-{name}"})


LIMITED = {
    "claims": [claim(name, volume=f"pv-{name}") for name in "abc"],
    "volumes": [csi(f"pv-{name}") for name in "abc"],
}


def test_attach_limits_count_volumes_of_the_driver_once():
    storage = Storage(**LIMITED, csi_nodes=[csi_node("n1", count=2)])
    busy = pod("busy", on="n1", **uses("a", "b"))
    found = refusal(pod(**uses("c")), storage, busy)

    assert found is not None
    assert found.messages == ("node(s) exceed max volume count",)
    assert found.resolvable
    assert refusal(pod(**uses("b")), storage, busy) is None
    assert where(pod(**uses("c")), storage, busy) == ["n2", "n3"]


def test_the_last_attachment_can_be_used():
    storage = Storage(**LIMITED, csi_nodes=[csi_node("n1", count=2)])

    assert refusal(pod(**uses("b")), storage, pod("busy", on="n1", **uses("a"))) is None


def test_volumes_still_to_be_provisioned_count_too():
    storage = Storage(claims=[claim("a"), claim("b")], classes=[storage_class()], csi_nodes=[csi_node("n1", count=1)])

    assert where(pod(**uses("b")), storage, pod("busy", on="n1", **uses("a"))) == ["n2", "n3"]


@pytest.mark.parametrize("limit", [[], [csi_node("n1")], [csi_node("n1", driver="other", count=0)]])
def test_without_a_limit_there_is_none(limit: list[Any]):
    busy = pod("busy", on="n1", **uses("a", "b"))

    assert refusal(pod(**uses("c")), Storage(**LIMITED, csi_nodes=limit), busy) is None


def test_a_limit_of_zero_is_a_limit():
    assert refusal(pod(**uses("c")), Storage(**LIMITED, csi_nodes=[csi_node("n1", count=0)])) is not None


GCE = {"gcePersistentDisk": {"pdName": "d"}}
GCE_READ_ONLY = {"gcePersistentDisk": {"pdName": "d", "readOnly": True}}
EBS = {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}}
ISCSI = {"iscsi": {"iqn": "d"}}
RBD = {"rbd": {"monitors": ["m1", "m2"], "pool": "p", "image": "i"}}


@pytest.mark.parametrize(
    ("mine", "theirs", "clash"),
    [
        (GCE, GCE, True),
        (GCE, GCE_READ_ONLY, True),
        (GCE_READ_ONLY, GCE_READ_ONLY, False),
        (GCE, {"gcePersistentDisk": {"pdName": "other"}}, False),
        (EBS, EBS, True),
        (ISCSI, ISCSI, True),
        (ISCSI, {"iscsi": {"iqn": "other"}}, False),
        (RBD, {"rbd": {**RBD["rbd"], "monitors": ["m2"]}}, True),
        (RBD, {"rbd": {**RBD["rbd"], "monitors": ["m3"]}}, False),
        (RBD, GCE, False),
    ],
)
def test_disks_mounted_on_the_node(mine: dict[str, Any], theirs: dict[str, Any], clash: bool):
    other = pod("other", on="n1", volumes=[{"name": "v", **theirs}])
    made = pod(volumes=[{"name": "v", **mine}])

    assert where(made, Storage(), other) == (["n2", "n3"] if clash else ["n1", "n2", "n3"])
    if clash:
        expected = Refusal(plugin="VolumeRestrictions", messages=("node(s) had no available disk",), resolvable=True)
        assert refusal(made, Storage(), other) == expected


def test_a_disk_mounted_to_write_and_to_read_is_mounted_to_write():
    both = pod("other", on="n1", volumes=[{"name": "w", **GCE}, {"name": "r", **GCE_READ_ONLY}])

    assert where(pod(volumes=[{"name": "v", **GCE_READ_ONLY}]), Storage(), both) == ["n2", "n3"]


def test_a_claim_that_cannot_be_read_is_refused_by_its_path():
    found = refusal(pod(**uses("data")), Storage(claims=[claim(storage="much")], classes=[storage_class()]))

    assert found is not None
    assert found.messages[0].startswith("persistentvolumeclaim data: spec.resources.requests[storage]: ")
