"""A replay answers what `check_node` answers on the cluster so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import check_node
from plimsoll.scheduling.replay import Replay
from plimsoll.scheduling.verdicts import Fits
from tests.scheduling.builders import HOSTNAME, ZONE, node, pod, required, spread, term

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

NODES = ("n0", "n1", "n2", "n3")
KEYS = st.sampled_from([HOSTNAME, ZONE])
APPS = st.sampled_from(["web", "db"])


@st.composite
def shapes(draw: st.DrawFn) -> Pod:
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["podAffinity", "podAntiAffinity"]))
        spec |= required(term({"app": draw(APPS)}, key=draw(KEYS)), kind)
    if draw(st.booleans()):
        few = draw(st.sampled_from([{}, {"minDomains": 3}]))
        spec |= spread({"app": draw(APPS)}, draw(KEYS), draw(st.integers(1, 2)), **few)
    return pod("shape", labels={"app": draw(APPS)}, requests={"cpu": draw(st.sampled_from(["0", "1"]))}, **spec)


def as_pod(shape: Pod, name: str, on: str = "") -> Pod:
    metadata = msgspec.structs.replace(shape.metadata, name=name, uid=name)
    return msgspec.structs.replace(shape, metadata=metadata, spec=msgspec.structs.replace(shape.spec, node_name=on))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_replay_judges_as_feasible_does(data: st.DataObject):
    zones = [data.draw(st.sampled_from(["a", "b", ""])) for _ in NODES]
    nodes = [node(name, zone=zone, cpu="3") for name, zone in zip(NODES, zones, strict=True)]
    start = nodes[: data.draw(st.integers(1, 4))]
    groups = data.draw(st.lists(shapes(), min_size=1, max_size=3))
    first = [as_pod(groups[0], "first", on="n0")] if data.draw(st.booleans()) else []
    replay = Replay(ClusterView.from_objects(start, first))
    view = ClusterView.from_objects(start, first)
    known = [replay.add_equivalence_class(group) for group in groups]
    if data.draw(st.booleans()):
        replay.prepare()
    for turn in range(data.draw(st.integers(1, 8))):
        if turn == 3:
            for late in nodes[len(start) :]:
                replay.add_node(late)
                view = view.with_node(late)
        chosen = data.draw(st.integers(0, len(groups) - 1))
        name = f"p{turn}"
        fits = []
        for place in view.nodes.values():
            wanted = check_node(as_pod(groups[chosen], name), place.node, view)
            assert replay.check(known[chosen], place.name) == wanted
            fits += [place.name] if isinstance(wanted, Fits) else []
        if fits:
            on = data.draw(st.sampled_from(fits))
            replay.place(known[chosen], on, name)
            view = view.with_pod(as_pod(groups[chosen], name, on=on))


def test_daemons_come_with_their_node():
    replay = Replay(ClusterView.from_objects())
    replay.add_node(node("n0", cpu="2"), [pod("agent", requests={"cpu": "1"})])
    group = replay.add_equivalence_class(pod("big", requests={"cpu": "2"}))
    assert not isinstance(replay.check(group, "n0"), Fits)
    assert isinstance(replay.check(replay.add_equivalence_class(pod("small", requests={"cpu": "1"})), "n0"), Fits)
