"""Templates of node groups, and placeholders of upcoming nodes (docs/design/nodes.md 6.5, 6.1)."""

from datetime import timedelta
from typing import Any

import pytest

from plimsoll.nodes.cluster_state.templates import (
    GroupNodes,
    GroupTemplates,
    TemplateSource,
    from_provider,
    group_nodes,
)
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.model.node_templates import is_upcoming
from plimsoll.nodes.model.snapshot import NodeGroup
from plimsoll.nodes.observing.upcoming import build_upcoming_nodes
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod, PodSpec, PodTemplateSpec
from plimsoll.objects.api.workloads import DaemonSet, DaemonSetSpec
from tests.nodes.cluster_state.builders import NOON, at, node

PROVIDED = node("from-provider")
STARTUP = "startup-taint.cluster-autoscaler.kubernetes.io/x"


def pod(name: str, *, owner: str = "ReplicaSet", on: str = "n", **meta: Any) -> Pod:
    owners = (OwnerReference(kind=owner, name="it", controller=True),)
    return Pod(
        metadata=ObjectMeta(name=name, namespace="d", owner_references=owners, **meta), spec=PodSpec(node_name=on)
    )


def templates(**options: Any) -> GroupTemplates:
    return GroupTemplates(read_options({name.replace("_", "-"): value for name, value in options.items()}))


def found(*nodes: Node, pods: tuple[Pod, ...] = ()) -> GroupNodes:
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(pod.spec.node_name, []).append(pod)
    return GroupNodes(nodes={"g": nodes} if nodes else {}, pods=by_node)


def made(given: GroupNodes, *, now_s: float = 0, kept: GroupTemplates | None = None, provider: bool = True):
    offered = {"g": from_provider(PROVIDED)} if provider else {}
    return (kept or templates()).update(given, ["g"], offered, at(now_s)).get("g")


def test_a_ready_node_is_the_template():
    template = made(found(node("n")))
    assert template is not None
    assert (template.node.metadata.name, template.source) == ("n", TemplateSource.REAL_NODE)
    assert template.daemons_are_known


@pytest.mark.parametrize(
    "unfit",
    [
        node("n", ready=False),
        node("n", age_s=60),
        node("n", unschedulable=True),
        node("n", taints=("ToBeDeletedByClusterAutoscaler",)),
        node("n", taints=(STARTUP,)),
    ],
)
def test_a_node_that_is_not_well_or_not_for_long_is_not(unfit: Node):
    template = made(found(unfit))
    assert template is not None
    assert template.source is TemplateSource.PROVIDER
    assert not template.daemons_are_known


def test_ready_for_more_than_a_minute_is_long_enough():
    template = made(found(node("n", age_s=60.5)))
    assert template is not None
    assert template.source is TemplateSource.REAL_NODE


def test_a_good_node_is_remembered_when_the_group_is_empty():
    kept = templates()
    made(found(node("n"), pods=(pod("agent", owner="DaemonSet"),)), kept=kept)
    template = made(found(), now_s=86_400, kept=kept)
    assert template is not None
    assert (template.node.metadata.name, template.source) == ("n", TemplateSource.REMEMBERED)
    assert [daemon.metadata.name for daemon in template.daemons] == ["agent"]
    assert template.daemons_are_known


def test_while_its_node_stays_as_it_is_a_template_is_the_very_same():
    kept, same = templates(), node("n")
    agent = pod("agent", owner="DaemonSet")
    first = made(found(same, pods=(agent,)), kept=kept)
    assert made(found(same, pods=(agent,)), now_s=10, kept=kept) is first
    other = made(found(same), now_s=20, kept=kept)
    assert other is not None
    assert other.daemons == ()


def test_what_is_remembered_for_too_long_is_forgotten():
    kept = templates(node_info_cache_expire_time="1h")
    made(found(node("n")), kept=kept)
    assert not kept.needs_provider_template("g", found(), at(3600))
    assert kept.needs_provider_template("g", found(), at(3601))
    template = made(found(), now_s=3601, kept=kept)
    assert template is not None
    assert template.source is TemplateSource.PROVIDER


def test_what_is_remembered_of_a_group_that_is_gone_is_forgotten():
    kept = templates()
    made(found(node("n")), kept=kept)
    kept.update(found(), [], {}, NOON)
    assert kept.needs_provider_template("g", found(), NOON)


def test_the_last_resort_is_any_node():
    template = made(found(node("n", ready=False, taints=("node.kubernetes.io/not-ready", "own"))), provider=False)
    assert template is not None
    assert template.source is TemplateSource.ANY_NODE
    assert [taint.key for taint in template.node.spec.taints] == ["own"]


def test_a_group_without_nodes_and_without_a_provider_template_has_none():
    assert made(found(), provider=False) is None


def test_the_oldest_good_node_is_chosen_whatever_the_order():
    old, young = node("b", age_s=7200), node("a", age_s=3600)
    for order in ((old, young), (young, old)):
        template = made(found(*order))
        assert template is not None
        assert template.node.metadata.name == "b"


def test_daemon_and_mirror_pods_of_the_node_come_along_and_no_others():
    mirror = pod("proxy", owner="Node", annotations={"kubernetes.io/config.mirror": "x"})
    leaving = pod("old", owner="DaemonSet", deletion_timestamp=NOON + timedelta(seconds=30))
    here = (pod("web"), pod("agent", owner="DaemonSet"), mirror, leaving, pod("other", owner="DaemonSet", on="m"))
    template = made(found(node("n"), pods=here))
    assert template is not None
    assert [daemon.metadata.name for daemon in template.daemons] == ["agent", "proxy"]


def test_nodes_of_no_group_are_left_out():
    assert list(group_nodes([node("a"), node("b")], {"a": "g"})) == ["g"]


def grouped(template: Node, **fields: Any) -> NodeGroup:
    return NodeGroup(id="g", min_size=0, max_size=9, target_size=3, template=template, **fields)


def test_upcoming_nodes_are_ready_have_names_of_their_own_and_no_passing_taints():
    template = node("n", taints=(STARTUP, "dedicated"), labels={"kubernetes.io/hostname": "n", "team": "a"})
    coming = build_upcoming_nodes(grouped(template), 2, rules=read_options({}).pods, daemon_sets=DaemonSets([]))
    assert [node.node.metadata.name for node in coming] == [
        "template-node-for-g-upcoming-0",
        "template-node-for-g-upcoming-1",
    ]
    for upcoming in coming:
        labels = upcoming.node.metadata.labels
        assert labels["kubernetes.io/hostname"] == upcoming.node.metadata.name
        assert labels["team"] == "a"
        assert labels["cluster-autoscaler.kubernetes.io/template-node"] == "true"
        assert [taint.key for taint in upcoming.node.spec.taints] == ["dedicated"]
        assert [(condition.type, condition.status) for condition in upcoming.node.status.conditions] == [
            ("Ready", "True")
        ]
        assert is_upcoming(upcoming.node)
    assert not is_upcoming(template)


def test_upcoming_nodes_bring_their_daemons():
    agent = DaemonSet(metadata=ObjectMeta(name="agent", namespace="d"), spec=DaemonSetSpec(template=PodTemplateSpec()))
    rules = read_options({}).pods
    known = grouped(node("n"), daemons=(pod("proxy", owner="DaemonSet"),), daemons_are_known=True)
    (coming,) = build_upcoming_nodes(known, 1, rules=rules, daemon_sets=DaemonSets([agent]))
    assert [(pod.metadata.name, pod.spec.node_name) for pod in coming.pods] == [
        ("proxy-upcoming-0", coming.node.metadata.name)
    ]
    unknown = grouped(node("n"))
    first, second = build_upcoming_nodes(unknown, 2, rules=rules, daemon_sets=DaemonSets([agent]))
    assert {pod.metadata.name for pod in (*first.pods, *second.pods)} == {
        "agent-template-upcoming-0",
        "agent-template-upcoming-1",
    }
