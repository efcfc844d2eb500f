"""Verdicts about kinds of pods that are kept between turns are those that the rules give now."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.scaledown.drainability import ControllerInfo, DrainRules
from plimsoll.nodes.planning.scaledown.drainability_cache import DrainabilityCache
from plimsoll.nodes.planning.scaledown.pdbs import RemainingPdbs
from plimsoll.nodes.planning.state.node_pods import PodsByNode
from plimsoll.scheduling import ClusterView
from tests.nodes.planning.scaledown.builders import NOON, budget, node, pod, policy

if TYPE_CHECKING:
    from plimsoll.nodes.planning.scaledown.drainability import DrainabilityStatus
    from plimsoll.objects.api.pods import Pod

LEAVING = {"deletionTimestamp": NOON.isoformat()}
YOUNG = {"creationTimestamp": NOON.isoformat()}
KINDS: tuple[dict[str, object], ...] = (
    {"labels": {"app": "web"}},
    {"labels": {"app": "db"}, "owner": "StatefulSet"},
    {"owner": ""},
    {"namespace": "kube-system", "metadata": YOUNG},
    {"labels": {"app": "web"}, "metadata": LEAVING},
    {"owner": "DaemonSet"},
    {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
)


@st.composite
def rules(draw: st.DrawFn) -> DrainRules:
    replicas = draw(st.sampled_from([None, 1, 3]))
    budgets = [budget(app, allowed=draw(st.integers(0, 1)), app=app) for app in ("web", "db") if draw(st.booleans())]
    return DrainRules(
        options=policy(min_replica_count=draw(st.sampled_from([0, 0, 2]))).scale_down,
        now=NOON + timedelta(minutes=draw(st.sampled_from([0, 5, 90]))),
        pdbs=RemainingPdbs(budgets),
        controllers={} if replicas is None else {("default", "ReplicaSet", "rs"): ControllerInfo(replicas=replicas)},
    )


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(rules(), st.sets(st.integers(0, len(KINDS) - 1))), min_size=1, max_size=5))
def test_kept_verdicts_are_the_rules_own(turns: list[tuple[DrainRules, set[int]]]):
    kept = DrainabilityCache()
    homes: PodsByNode | None = None
    there: dict[int, Pod] = {}
    for asked, kinds in turns:
        # The same objects stay the same, as they do in a cache.
        there = {kind: there.get(kind) or pod(f"p{kind}", **KINDS[kind]) for kind in sorted(kinds)}  # type: ignore[arg-type]
        homes = PodsByNode.from_view(ClusterView.from_objects([node("n1")], there.values()), homes)

        found = kept.update(homes, asked)

        verdicts = [asked.check(kind.pod) for kind in homes.kinds]
        assert list(found.statuses) == verdicts
        assert found.blocks.tolist() == [drainability.blocks_node for drainability in verdicts]
        meant: dict[int, list[int]] = {slot: [] for slot in range(len(asked.pdbs.allowed))}
        for kind in homes.kinds:
            for slot in asked.pdbs.find_matching(kind.pod):
                meant[slot].append(kind.number)
        assert {slot: list(kinds) for slot, kinds in found.by_pdb.items()} == {a: b for a, b in meant.items() if b}


def test_a_kind_is_asked_about_once_while_nothing_changes():
    calls: list[Pod] = []

    class Counting(DrainRules):
        def check_without_pdbs(self, pod: Pod) -> DrainabilityStatus | None:
            calls.append(pod)
            return super().check_without_pdbs(pod)

    homes = PodsByNode.from_view(ClusterView.from_objects([node("n1")], [pod("a"), pod("b", owner="Job")]))
    kept, options = DrainabilityCache(), policy().scale_down
    kept.update(homes, Counting(options=options, now=NOON))
    first = len(calls)
    kept.update(homes, Counting(options=options, now=NOON + timedelta(hours=1)))

    assert (first, len(calls)) == (2, 2)
