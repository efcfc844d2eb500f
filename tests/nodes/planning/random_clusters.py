"""Small random clusters with everything the scheduling rules look at, for comparing the engine with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.scheduling import ClusterView, Storage
from tests.scheduling.builders import (
    HOSTNAME,
    ZONE,
    claim,
    csi_node,
    node,
    node_affinity,
    pod,
    spread,
    storage_class,
    term,
    volume,
)

if TYPE_CHECKING:
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

NODE_NAMES = ("n1", "n2", "n3", "n4")
APPS = ("web", "db")
NAMESPACES = {"default": {"team": "a"}, "other": {"team": "b"}}
DRIVER = "csi.example.com"

TAINTS = (
    {"key": "dedicated", "value": "a", "effect": "NoSchedule"},
    {"key": "dedicated", "value": "b", "effect": "NoExecute"},
    {"key": "soft", "effect": "PreferNoSchedule"},
)
TOLERATIONS = (
    {"key": "dedicated", "operator": "Exists"},
    {"key": "dedicated", "value": "a", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"operator": "Exists"},
)
NODE_WISHES = (
    {"nodeSelector": {"disk": "ssd"}},
    {"nodeSelector": {ZONE: "z1"}},
    node_affinity({"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}),
    node_affinity({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]}),
    node_affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}),
    node_affinity({"matchExpressions": [{"key": ZONE, "operator": "Exists"}]}, {}),
    {"nodeName": "n3"},
)
BROKEN = (
    node_affinity({"matchExpressions": [{"key": "disk", "operator": "Near", "values": ["x"]}]}),
    {"overhead": {"cpu": "-1"}},
    {"overhead": {"cpu": "lots"}},
    {"resourceClaims": [{"name": "gpu"}]},
    {"schedulingGates": [{"name": "wait"}]},
    spread({"app": "not/a/valid/key!"}) | {"nodeSelector": {}},
)
CLAIMS = (
    claim("bound-z1", volume="pv-z1"),
    claim("bound-z2", volume="pv-z2"),
    claim("labelled", volume="pv-labelled"),
    claim("gone", volume="no-such-volume"),
    claim("alone", volume="pv-z1", modes=("ReadWriteOncePod",)),
    claim("waiting"),
    claim("waiting-z2", storage_class="zoned"),
    claim("local", storage_class="local"),
    claim("immediate", storage_class="now"),
)
CLAIM_NAMES = (*(volume_claim.metadata.name for volume_claim in CLAIMS), "missing")
# Rules that pods meet each other by stand here more often: most draws of them come to nothing.
KINDS = ("terms", "spread", "volumes", "terms", "spread", "volumes", "terms", "disk", "nodes", "plain", "broken")
VOLUMES = (
    volume("pv-z1", zone="z1", csi={"driver": DRIVER, "volumeHandle": "h1"}),
    volume("pv-z2", zone="z2", csi={"driver": DRIVER, "volumeHandle": "h2"}),
    volume("pv-labelled", labels={ZONE: "z1__z3"}),
    volume("pv-local", zone="z2", storage_class="local"),
)
CLASSES = (
    storage_class("fast"),
    storage_class("zoned", zones=("z2",)),
    storage_class("local", provisioner="kubernetes.io/no-provisioner"),
    storage_class("now", mode="Immediate"),
)


def storages(draw: st.DrawFn) -> Storage:
    limited = [csi_node(name, count=draw(st.integers(0, 2))) for name in NODE_NAMES if draw(st.booleans())]
    return Storage(claims=CLAIMS, volumes=VOLUMES, classes=CLASSES, csi_nodes=limited)


def nodes(draw: st.DrawFn) -> list[Node]:
    made = []
    for name in NODE_NAMES[: draw(st.sampled_from([4, 3, 2, 1]))]:
        labels = draw(st.sampled_from([{}, {"disk": "ssd"}, {"disk": "hdd", "cores": "8"}, {"cores": "many"}]))
        extended: dict[str, Any] = draw(
            st.sampled_from([{}, {}, {}, {}, {}, {"example.com/gpu": 1}, {"example.com/gpu": 1}, {"cpu": "broken"}])
        )
        amounts: dict[str, Any] = {
            "cpu": draw(st.sampled_from([9, 9, 1])),
            "pods": draw(st.sampled_from([9, 9, 2])),
            **extended,
        }
        made.append(
            node(
                name,
                zone=draw(st.sampled_from(["z1", "z2", "z1", "z2", ""])),
                labels=labels,
                taints=draw(st.sampled_from([[], [], [], *([taint] for taint in TAINTS)])),
                unschedulable=draw(st.integers(0, 9)) == 9,
                **amounts,
            )
        )
    return made


def _selectors(draw: st.DrawFn) -> dict[str, Any]:
    return draw(
        st.sampled_from(
            [
                {"labelSelector": {"matchLabels": {"app": "web"}}},
                {"labelSelector": {"matchLabels": {"app": "db"}}},
                {"labelSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}},
                {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}},
                {"labelSelector": {}},
                {"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["hash"]},
                {},
            ]
        )
    )


def _spreads(draw: st.DrawFn) -> dict[str, Any]:
    constraints = [
        {
            "maxSkew": draw(st.integers(1, 2)),
            "topologyKey": draw(st.sampled_from([ZONE, HOSTNAME])),
            "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"])),
            **draw(st.sampled_from([{}, {"minDomains": 3}, {"nodeAffinityPolicy": "Ignore"}])),
            **draw(st.sampled_from([{}, {"nodeTaintsPolicy": "Honor"}])),
            **_selectors(draw),
        }
        for _ in range(draw(st.integers(1, 2)))
    ]
    return {"topologySpreadConstraints": constraints}


def _terms(draw: st.DrawFn) -> dict[str, Any]:
    scope: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
        [{}, {}, {"namespaces": ["other"]}, {"namespaceSelector": {"matchLabels": {"team": "b"}}}]
    )
    made: dict[str, Any] = {}
    for kind in draw(st.sampled_from([("podAffinity",), ("podAntiAffinity",), ("podAffinity", "podAntiAffinity")])):
        listed = [
            term(None, key=draw(st.sampled_from([ZONE, HOSTNAME, "disk"])), **_selectors(draw), **draw(scope))
            for _ in range(draw(st.integers(1, 2)))
        ]
        made[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": listed}
    return {"affinity": made}


def specs(draw: st.DrawFn, *, broken: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"tolerations": draw(st.lists(st.sampled_from(TOLERATIONS), max_size=1))}
    chosen = draw(st.sampled_from(KINDS))
    if chosen == "nodes":
        spec |= draw(st.sampled_from(NODE_WISHES))
    elif chosen == "spread":
        spec |= _spreads(draw)
        spec |= draw(st.sampled_from([{}, *NODE_WISHES[:2]]))
    elif chosen == "terms":
        spec |= _terms(draw)
    elif chosen == "volumes":
        used = draw(st.lists(st.sampled_from(CLAIM_NAMES), min_size=1, max_size=2, unique=True))
        spec["volumes"] = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in used]
    elif chosen == "disk":
        disk = {"pdName": "disk", "readOnly": draw(st.booleans())}
        spec["volumes"] = [{"name": "disk", "gcePersistentDisk": disk}]
    elif chosen == "broken" and broken:
        spec |= draw(st.sampled_from(BROKEN))
    requests = draw(
        st.sampled_from(
            [{}, {"cpu": 1}, {"cpu": 1}, {"cpu": 2, "memory": "1Gi"}, {"example.com/gpu": 1}, {"memory": "9Gi"}]
        )
    )
    ports = draw(
        st.sampled_from(
            [[], [], [], [], [{"hostPort": 80}], [{"hostPort": 80, "hostIP": "10.0.0.1"}], [{"hostPort": 81}]]
        )
    )
    spec["containers"] = [{"name": "c", "resources": {"requests": requests}, "ports": ports}]
    return spec


def pods(draw: st.DrawFn, name: str, *, broken: bool = True) -> Pod:
    labels: dict[str, str] = {"app": draw(st.sampled_from(APPS))}
    if draw(st.booleans()):
        labels["tier"] = draw(st.sampled_from(["front", "back"]))
    if draw(st.booleans()):
        labels["hash"] = draw(st.sampled_from(["1", "2"]))
    namespace = draw(st.sampled_from(["default", "default", "default", "other"]))
    return pod(name, namespace=namespace, labels=labels, **specs(draw, broken=broken))


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    made = nodes(draw)
    view = ClusterView.from_objects(made, namespaces=NAMESPACES, storage=storages(draw))
    for index in range(draw(st.sampled_from([6, 5, 4, 2, 0]))):
        where = draw(st.sampled_from(made)).metadata.name
        view = view.with_pod(pods(draw, f"running-{index}"), where)
    return view


@st.composite
def waiting(draw: st.DrawFn, *, most: int = 4) -> list[PendingPods]:
    made: list[PendingPods] = []
    for index in range(draw(st.integers(1, most))):
        one = pods(draw, f"waiting-{index}")
        made.append(
            PendingPods(key=f"{one.metadata.namespace}/{one.metadata.name}", pod=one, count=draw(st.integers(1, 3)))
        )
    return made
