"""Small clusters for the whole scale-up planner: builders for named cases, and random ones for invariants."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.snapshot import MachineType, NodeGroup, PendingPods, Snapshot
from plimsoll.scheduling import ClusterView
from tests.nodes.planning.builders import NOON, policy
from tests.scheduling.builders import HOSTNAME, ZONE, node, pod, term

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

COST: Policy = policy(expander="cost")


def group(
    name: str, *, cpu: int = 4, zone: str = "", most: int = 10, price: float | None = None, **more: Any
) -> NodeGroup:
    """Nodes of `cpu` cores and 4 GiB a core for 0.1 a core; `labels`, `taints` and resources go to the template."""
    kept = {"target", "zero_or_max", "not_usable", "daemons", "capacity_type", "machine_type", "autoscaled", "min_size"}
    own = {key: more.pop(key) for key in list(more) if key in kept}
    template = node(name, zone=zone, **{"cpu": cpu, "memory": f"{4 * cpu}Gi", **more})
    return NodeGroup(
        id=name,
        min_size=own.pop("min_size", 0),
        max_size=most,
        target_size=own.pop("target", 0),
        template=template,
        price_per_hour=cpu / 10 if price is None else price,
        zone=zone,
        **own,
    )


def machine(name: str, cpu: int, gib: float | None = None, *, price: float | None = None, **more: Any) -> MachineType:
    size = ResourceVector(
        {"cpu": cpu * 1000, "memory": round((4 * cpu if gib is None else gib) * (1 << 30)), "pods": 110}
    )
    return MachineType(
        name=name, capacity=size, allocatable=size, price_per_hour=cpu / 10 if price is None else price, **more
    )


def waiting(
    name: str, count: int = 1, cpu: Any = 1, *, age: float = 0, bundle: str = "", app: str | None = None, **more: Any
) -> PendingPods:
    """So many pods of `cpu` cores and as many GiB, labelled app=NAME; `age` in seconds."""
    labels = more.pop("labels", {"app": name if app is None else app})
    requests = more.pop("requests", {"cpu": cpu, "memory": f"{int(cpu * 1024)}Mi"} if cpu else {})
    one = pod(name, labels=labels, requests=requests, **more)
    return PendingPods(
        key=f"{one.metadata.namespace}/{name}",
        pod=one,
        count=count,
        created=NOON - timedelta(seconds=age),
        bundle=bundle,
    )


def running(name: str, *, cpu: Any = 1, app: str | None = None, **more: Any) -> Pod:
    return waiting(name, cpu=cpu, app=app, **more).pod


def world(
    *pending: PendingPods,
    groups: Iterable[NodeGroup] = (),
    nodes: Iterable[Node] = (),
    on: Sequence[tuple[str, Pod]] = (),
    **more: Any,
) -> Snapshot:
    """`on`: pods that run, with their nodes."""
    given = {key: more.pop(key) for key in ("namespaces", "storage") if key in more}
    view = ClusterView.from_objects(list(nodes), **given)
    for where, placed in on:
        view = view.with_pod(placed, where)
    return Snapshot(number=1, at=NOON, view=view, pending=pending, groups=tuple(groups), **more)


# ---- reading an answer


def added(plan: ScaleUpPlan) -> dict[str, int]:
    """Group, or machine type of one to be made, to how many nodes it gets."""
    found: dict[str, int] = {}
    for scale_up in plan.scale_ups:
        name = scale_up.option.group if scale_up.option.exists else scale_up.option.machine_type
        found[name] = found.get(name, 0) + scale_up.added
    return found


def left(plan: ScaleUpPlan) -> dict[str, int]:
    return {
        key.partition("/")[2]: pods for unschedulable in plan.unschedulable for key, pods in unschedulable.keys.items()
    }


def reported(plan: ScaleUpPlan) -> str:
    return "; ".join(str(reason) for unschedulable in plan.unschedulable for reason in unschedulable.reasons)


def reason_codes(plan: ScaleUpPlan) -> list[str]:
    """Why pods stay unschedulable, without the sentences."""
    return [reason.code for unschedulable in plan.unschedulable for reason in unschedulable.reasons]


def on_new_nodes(plan: ScaleUpPlan) -> dict[str, list[int]]:
    """Key to how many of its pods each new node gets that has any, the fullest first."""
    found: dict[str, list[int]] = {}
    for growth in plan.scale_ups:
        for pattern in growth.patterns:
            for key, pods in pattern.pods.items():
                found.setdefault(key.partition("/")[2], []).extend([pods] * pattern.nodes)
    return {key: sorted(counts, reverse=True) for key, counts in found.items()}


def on_existing(plan: ScaleUpPlan) -> dict[str, dict[str, int]]:
    return {
        name: {key.partition("/")[2]: pods for key, pods in placed.items()} for name, placed in plan.existing.items()
    }


def by_zone(plan: ScaleUpPlan, snapshot: Snapshot, name: str) -> dict[str, int]:
    """Pods of one key in each zone, on whatever node."""
    found: dict[str, int] = {}
    for where, filling in plan.existing.items():
        zone = snapshot.view.nodes[where].labels.get(ZONE, "")
        found[zone] = found.get(zone, 0) + filling.get(f"default/{name}", 0)
    for growth in plan.scale_ups:
        zone = growth.option.node.metadata.labels.get(ZONE, "")
        for pattern in growth.patterns:
            found[zone] = found.get(zone, 0) + pattern.nodes * pattern.pods.get(f"default/{name}", 0)
    return {zone: pods for zone, pods in found.items() if pods}


# ---- random clusters

APPS = ("web", "db")
TAINT = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}
TOLERATES = {"key": "dedicated", "operator": "Exists"}


def _nodes(draw: st.DrawFn) -> list[Node]:
    return [
        node(
            f"n{index}",
            zone=draw(st.sampled_from(["z1", "z2", "z1", "z2", ""])),
            labels=draw(st.sampled_from([{}, {"disk": "ssd"}])),
            taints=draw(st.sampled_from([[], [], [TAINT]])),
            cpu=draw(st.sampled_from([2, 4, 4])),
        )
        for index in range(draw(st.integers(0, 3)))
    ]


def _groups(draw: st.DrawFn) -> list[NodeGroup]:
    return [
        group(
            f"g{index}",
            cpu=draw(st.sampled_from([2, 4, 8])),
            zone=draw(st.sampled_from(["z1", "z2", "z3", "z1", "z2", ""])),
            most=draw(st.sampled_from([0, 1, 2, 3, 6])),
            price=draw(st.sampled_from([0.2, 0.4, 0.5, 1.0])),
            labels=draw(st.sampled_from([{}, {}, {"disk": "ssd"}])),
            taints=draw(st.sampled_from([[], [], [TAINT]])),
            not_usable=draw(st.sampled_from(["", "", "", "", "in backoff until 12:05"])),
            zero_or_max=draw(st.sampled_from([False] * 7 + [True])),
        )
        for index in range(draw(st.integers(0, 3)))
    ]


def _meant(draw: st.DrawFn) -> dict[str, Any]:
    app = draw(st.sampled_from(APPS))
    more = draw(st.sampled_from([{}, {}, {}, {"matchLabelKeys": ["hash"]}]))
    return {"labelSelector": {"matchLabels": {"app": app}}, **more}


def _spread(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(st.sampled_from([ZONE, HOSTNAME])),
        "whenUnsatisfiable": "DoNotSchedule",
        **draw(st.sampled_from([{}, {}, {"minDomains": 2}, {"nodeAffinityPolicy": "Ignore"}])),
        **draw(st.sampled_from([{}, {"nodeTaintsPolicy": "Honor"}])),
        **_meant(draw),
    }


def _terms(draw: st.DrawFn) -> dict[str, Any]:
    kinds = draw(
        st.sampled_from(
            [("podAffinity",), ("podAntiAffinity",), ("podAntiAffinity",), ("podAffinity", "podAntiAffinity")]
        )
    )
    return {
        kind: {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                term(None, key=draw(st.sampled_from([ZONE, HOSTNAME])), **_meant(draw))
                for _ in range(draw(st.sampled_from([1, 1, 1, 2])))
            ]
        }
        for kind in kinds
    }


def _spec(draw: st.DrawFn, *, social: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        spec["tolerations"] = [TOLERATES]
    if draw(st.sampled_from([True, False, False, False])):
        spec["nodeSelector"] = draw(st.sampled_from([{"disk": "ssd"}, {ZONE: "z1"}]))
    kind = draw(st.sampled_from(["plain", "terms", "spread", "spread", "ports", "both"])) if social else "plain"
    if kind in {"terms", "both"}:
        spec["affinity"] = _terms(draw)
    if kind in {"spread", "both"}:
        spec["topologySpreadConstraints"] = [_spread(draw) for _ in range(draw(st.sampled_from([1, 1, 2])))]
    if kind == "ports":
        port: dict[str, Any] = draw(
            st.sampled_from([{"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 81}])
        )
        spec["ports"] = [{"containerPort": 80, **port}]
    return spec


def _pod(draw: st.DrawFn, name: str, *, social: bool) -> dict[str, Any]:
    spec = _spec(draw, social=social)
    ports = spec.pop("ports", [])
    cpu = draw(st.sampled_from([0.5, 1, 1, 2, 3]))
    labels = {"app": draw(st.sampled_from(APPS)), **draw(st.sampled_from([{}, {"hash": "1"}, {"hash": "2"}]))}
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": f"{int(cpu * 1024)}Mi"}}, "ports": ports}
    return {"labels": labels, **spec, "containers": [container]}


def random_snapshot(draw: st.DrawFn, *, social: bool = True, nap: bool = True) -> Snapshot:
    """With interactions (`social`) or without; machine types are there only if `nap`."""
    nodes = _nodes(draw)
    on = []
    for index in range(draw(st.integers(0, 3)) if nodes else 0):
        where = draw(st.sampled_from(nodes)).metadata.name
        on.append((where, pod(f"running-{index}", **_pod(draw, f"running-{index}", social=social))))
    pending = []
    for index in range(draw(st.integers(1, 4))):
        name = f"p{index}"
        body = _pod(draw, name, social=social)
        body["priority"] = draw(st.sampled_from([0, 0, 0, 5]))
        pending.append(
            PendingPods(
                key=f"default/{name}",
                pod=pod(name, **body),
                count=draw(st.integers(1, 6)),
                created=NOON - timedelta(seconds=draw(st.integers(0, 3))),
                bundle=draw(st.sampled_from(["", "", "", "default/a", "default/b"])),
            )
        )
    types = [machine("m2", 2), machine("m8", 8, price=0.7)] if nap else []
    return world(*pending, groups=_groups(draw), nodes=nodes, on=on, machine_types=tuple(types))


def random_policy(draw: st.DrawFn) -> Policy:
    options: dict[str, Any] = {"expander": draw(st.sampled_from(["cost", "cost", "cost", "least-waste"]))}
    options |= draw(st.sampled_from([{}, {}, {"max_cpu": 12}, {"max_nodes_total": 4}, {"max_memory": 30}]))
    options |= draw(st.sampled_from([{}, {}, {"balance_similar_node_groups": True}]))
    if draw(st.booleans()):
        options |= {"node_autoprovisioning": True}
        options |= draw(st.sampled_from([{}, {"max_autoprovisioned_node_group_count": 1}]))
    return policy(**options)


snapshots = st.composite(random_snapshot)
policies = st.composite(random_policy)
