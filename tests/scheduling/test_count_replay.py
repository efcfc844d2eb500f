"""A replay by counts answers what the rules between pods answer on the cluster so far."""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.count_replay import CountReplay, skip_rules_between_pods
from plimsoll.scheduling.feasibility import RULES, Profile, check_node
from plimsoll.scheduling.verdicts import Fits
from tests.effort import share_of
from tests.scheduling.builders import HOSTNAME, ZONE, node, pod, required, spread, term
from tests.scheduling.test_replay import NODES, as_pod, shapes

BETWEEN_PODS: Final = Profile(disabled=frozenset(RULES) - skip_rules_between_pods())


@settings(max_examples=share_of(500), deadline=None)
@given(data=st.data())
def test_counts_judge_as_the_rules_do(data: st.DataObject):
    zones = [data.draw(st.sampled_from(["a", "b", ""])) for _ in NODES]
    nodes = [node(name, zone=zone) for name, zone in zip(NODES, zones, strict=True)]
    start = nodes[: data.draw(st.integers(1, 4))]
    kinds = data.draw(st.lists(shapes(), min_size=1, max_size=4))
    first = [as_pod(kinds[0], "first", on="n0")] if data.draw(st.booleans()) else []
    view = ClusterView.from_objects(start, first)
    replay = CountReplay(view)
    known = [replay.add_pods(kind) for kind in kinds]
    replay.prepare()
    for turn in range(data.draw(st.integers(1, 8))):
        if turn == 3:
            for late in nodes[len(start) :]:
                replay.add_node(late)
                view = view.with_node(late)
        chosen = data.draw(st.integers(0, len(kinds) - 1))
        fits = []
        for place in view.nodes.values():
            verdict = check_node(as_pod(kinds[chosen], f"p{turn}"), place.node, view, profile=BETWEEN_PODS)
            refusal = replay.check(known[chosen], place.name)
            assert refusal == (None if isinstance(verdict, Fits) else verdict.reason)
            fits += [place.name] if refusal is None else []
        if fits:
            on = data.draw(st.sampled_from(fits))
            replay.place(known[chosen], on)
            view = view.with_pod(as_pod(kinds[chosen], f"p{turn}", on=on))


def test_pods_of_different_sizes_are_one_kind():
    replay = CountReplay(ClusterView.from_objects())
    rule = spread({"app": "web"}, ZONE, 1)
    small = replay.add_pods(pod("small", labels={"app": "web"}, requests={"cpu": "1"}, **rule))
    assert replay.add_pods(pod("large", labels={"app": "web"}, requests={"cpu": "8"}, **rule)) is small
    assert replay.add_pods(pod("other", labels={"app": "db"}, requests={"cpu": "1"}, **rule)) is not small


def test_daemons_keep_pods_away():
    replay = CountReplay(ClusterView.from_objects())
    lonely = replay.add_pods(
        pod("lonely", labels={"app": "web"}, **required(term({"app": "agent"}), "podAntiAffinity"))
    )
    replay.prepare()
    replay.add_node(node("n0"), [pod("agent", labels={"app": "agent"})])
    replay.add_node(node("n1"))
    assert replay.check(lonely, "n0") is not None
    assert replay.check(lonely, "n1") is None


def test_a_daemon_that_avoids_pods_keeps_them_away():
    agent = pod("agent", labels={"app": "agent"}, **required(term({"app": "web"}, key=HOSTNAME), "podAntiAffinity"))
    replay = CountReplay(ClusterView.from_objects())
    web = replay.add_pods(pod("web", labels={"app": "web"}))
    replay.prepare([agent])
    replay.add_node(node("n0"), [agent])
    assert replay.check(web, "n0") is not None
