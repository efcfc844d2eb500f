"""What must hold for any cluster and any pod, whatever the rules in between say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.api.affinity import Toleration
from plimsoll.objects.api.nodes import Node, NodeSpec, NodeStatus, Taint
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import check_node, check_nodes, explain
from plimsoll.scheduling.rules.taints import Tolerations, tolerates
from plimsoll.scheduling.verdicts import Fits, Refusal
from tests.scheduling.builders import HOSTNAME, ZONE, node, pod, required, spread, term

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

FEW = settings(max_examples=120, deadline=None)

APPS = st.sampled_from(["web", "db"])
NODE_NAMES = ("n1", "n2", "n3")
TAINTS = st.lists(
    st.sampled_from(
        [
            {"key": "dedicated", "value": "a", "effect": "NoSchedule"},
            {"key": "dedicated", "value": "b", "effect": "NoExecute"},
            {"key": "soft", "effect": "PreferNoSchedule"},
        ]
    ),
    max_size=2,
)
TOLERATIONS = st.sampled_from(
    [
        {"key": "dedicated", "operator": "Exists"},
        {"key": "dedicated", "value": "a", "effect": "NoSchedule"},
        {"operator": "Exists"},
    ]
)

EFFECTS = st.sampled_from(["", "NoSchedule", "NoExecute"])
ANY_TOLERATION = st.builds(
    Toleration,
    key=st.sampled_from(["", "a", "b"]),
    operator=st.sampled_from(["", "Equal", "Exists", "Near"]),
    value=st.sampled_from(["", "v", "w"]),
    effect=EFFECTS,
)
ANY_TAINT = st.builds(Taint, key=st.sampled_from(["a", "b"]), value=st.sampled_from(["", "v"]), effect=EFFECTS)


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    return [
        node(
            name,
            zone=draw(st.sampled_from(["z1", "z2", ""])),
            taints=draw(TAINTS),
            unschedulable=draw(st.booleans()) and draw(st.booleans()),
            cpu=draw(st.integers(0, 4)),
            pods=draw(st.integers(0, 4)),
        )
        for name in NODE_NAMES
    ]


@st.composite
def affinities(draw: st.DrawFn) -> dict[str, Any]:
    key = draw(st.sampled_from([HOSTNAME, ZONE]))
    kind = draw(st.sampled_from(["podAffinity", "podAntiAffinity"]))
    return required(term({"app": draw(APPS)}, key=key), kind)


@st.composite
def pods(draw: st.DrawFn, name: str = "incoming", *, alone: bool = False) -> Pod:
    """`alone` leaves out every rule that looks at other nodes."""
    spec: dict[str, Any] = {"tolerations": draw(st.lists(TOLERATIONS, max_size=1))}
    if not alone:
        spec |= draw(st.one_of(st.just({}), affinities()))
        spec |= draw(st.one_of(st.just({}), st.just(spread({"app": "web"}))))
    if draw(st.booleans()):
        spec["containers"] = [{"name": "c", "ports": [{"hostPort": draw(st.sampled_from([80, 81]))}]}]
        spec["overhead"] = {"cpu": draw(st.integers(0, 2))}
    else:
        spec["containers"] = [{"name": "c", "resources": {"requests": {"cpu": draw(st.integers(0, 3))}}}]
    return pod(name, labels={"app": draw(APPS)}, **spec)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterView:
    view = ClusterView.from_objects(draw(nodes()))
    for index in range(draw(st.integers(0, 4))):
        view = view.with_pod(draw(pods(f"running-{index}")), draw(st.sampled_from(NODE_NAMES)))
    return view


def fits(made: Pod, name: str, view: ClusterView) -> bool:
    return isinstance(check_node(made, view.nodes[name].node, view), Fits)


def changed(view: ClusterView, name: str, **sections: Any) -> ClusterView:
    return view.with_node(msgspec.structs.replace(view.nodes[name].node, **sections))


@FEW
@given(clusters(), pods(), st.sampled_from(NODE_NAMES))
def test_more_room_never_makes_a_node_unfit(view: ClusterView, made: Pod, name: str):
    more = NodeStatus(allocatable={"cpu": "100", "memory": "1Ti", "pods": "500", "ephemeral-storage": "1Ti"})

    assert fits(made, name, changed(view, name, status=more)) or not fits(made, name, view)


@FEW
@given(clusters(), pods(), st.sampled_from(NODE_NAMES))
def test_removing_taints_and_the_cordon_never_makes_a_node_unfit(view: ClusterView, made: Pod, name: str):
    assert fits(made, name, changed(view, name, spec=NodeSpec())) or not fits(made, name, view)


@FEW
@given(clusters(), pods(), TOLERATIONS, st.sampled_from(NODE_NAMES))
def test_a_further_toleration_never_hurts(view: ClusterView, made: Pod, toleration: dict[str, str], name: str):
    tolerations = (*made.spec.tolerations, msgspec.convert(toleration, Toleration))
    more = msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, tolerations=tolerations))

    assert fits(more, name, view) or not fits(made, name, view)


@FEW
@given(st.lists(ANY_TOLERATION, max_size=4), ANY_TAINT)
def test_filing_tolerations_changes_no_answer(tolerations: list[Toleration], taint: Taint):
    assert Tolerations(tolerations).accept(taint) == any(tolerates(toleration, taint) for toleration in tolerations)


@FEW
@given(clusters(), pods(), st.sampled_from(NODE_NAMES))
def test_a_further_taint_never_helps(view: ClusterView, made: Pod, name: str):
    before = view.nodes[name].node
    taints = (*before.spec.taints, Taint(key="new", effect="NoSchedule"))
    tainted = changed(view, name, spec=msgspec.structs.replace(before.spec, taints=taints))

    assert fits(made, name, view) or not fits(made, name, tainted)


@FEW
@given(clusters(), pods(alone=True), pods("unrelated", alone=True), st.sampled_from(NODE_NAMES))
def test_a_pod_elsewhere_changes_nothing_for_rules_about_the_node_alone(
    view: ClusterView, made: Pod, unrelated: Pod, name: str
):
    elsewhere = next(other for other in NODE_NAMES if other != name)

    assert fits(made, name, view) == fits(made, name, view.with_pod(unrelated, elsewhere))


@FEW
@given(st.sampled_from([HOSTNAME, ZONE]), APPS, APPS, st.sampled_from(["", "a", "b"]), st.booleans())
def test_anti_affinity_is_symmetric(key: str, app_a: str, app_b: str, selected: str, mutual: bool):
    """If A next to B breaks A's term, then neither may come where the other is already."""
    avoided = {"app": app_b} if not selected else {"kind": selected}
    apart = required(term(avoided, key=key))
    a = pod("a", labels={"app": app_a, "kind": "a"}, **apart)
    b = pod("b", labels={"app": app_b, "kind": "b"}, **(apart if mutual else {}))
    empty = ClusterView.from_objects([node("n1", zone="z1"), node("n2", zone="z1")])

    for place in ("n1", "n2"):
        assert fits(a, place, empty.with_pod(b, "n1")) == fits(b, place, empty.with_pod(a, "n1"))


@FEW
@given(clusters(), pods())
def test_the_verdict_is_the_first_refusal_of_the_explanation(view: ClusterView, made: Pod):
    answers = check_nodes(made, view)

    for name, refusals in explain(made, view).items():
        answer = answers[name]
        first: Refusal | None = None if isinstance(answer, Fits) else answer.reason
        assert first == (refusals[0] if refusals else None)
        assert fits(made, name, view) == (not refusals)


@FEW
@given(clusters(), pods())
def test_placing_where_it_fits_keeps_the_node_within_its_means(view: ClusterView, made: Pod):
    for name, answer in check_nodes(made, view).items():
        if isinstance(answer, Fits):
            after = view.with_pod(made, name).nodes[name]
            asked = (after.used - view.nodes[name].used).keys()
            assert all(after.free[resource] >= 0 for resource in asked)
