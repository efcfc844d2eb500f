"""The engine against the plain rules, pod by pod, on small random clusters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, seed, settings

from plimsoll.nodes.model.node_templates import build_planned_node
from plimsoll.nodes.planning.problem.options import find_options
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.scheduling import Fits, check_node
from plimsoll.scheduling.replay import Replay
from tests.effort import IS_LONG
from tests.nodes.planning.plan_checks import placed, problems
from tests.nodes.planning.scale_up_clusters import COST, policies, snapshots

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot

many = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@many
@given(snapshots(), policies())
def test_every_plan_with_interactions_holds(snapshot: Snapshot, policy: Policy):
    """Verified, within all limits, all pods accounted for, bundles whole; mended, if the first plan did not hold."""
    assert problems(snapshot, policy, plan_scale_up(snapshot, policy), may_be_mended=True) == []


def check_first_plans_hold(clusters: int) -> None:
    """With interactions too, the verifier hardly ever refutes a plan."""
    refuted: list[bool] = []

    # A seed, not derandomize: the examples must not depend on the text of this function, and refutations come in rows.
    @seed(1)
    @settings(many, max_examples=clusters)
    @given(snapshots(), policies())
    def collect(snapshot: Snapshot, policy: Policy) -> None:
        refuted.append(plan_scale_up(snapshot, policy).verification_failures > 0)

    collect()
    assert sum(refuted) <= 1 + len(refuted) // 500


def test_first_plans_hold():
    check_first_plans_hold(clusters=100 if IS_LONG else 50)


@many
@given(snapshots(social=False), policies())
def test_bulk_plans_without_interactions_are_never_refuted(snapshot: Snapshot, policy: Policy):
    assert problems(snapshot, policy, plan_scale_up(snapshot, policy)) == []


def placed_first_fit(snapshot: Snapshot) -> dict[str, int]:
    """What plain first fit places, in the order given, with a node of any group opened when none of those there do.

    Who comes too early for the company it wants is asked again.
    """
    replay = Replay(snapshot.view)
    known = {option.group: option for option in find_options(snapshot, COST).options}
    room = {name: option.max_size - option.size for name, option in known.items()}
    alike = {pending.key: replay.add_equivalence_class(pending.pod) for pending in snapshot.pending}
    count = dict.fromkeys(alike, 0)
    before = -1
    while sum(count.values()) > before:
        before = sum(count.values())
        for entry in snapshot.pending:
            while count[entry.key] < entry.count:
                fits = (name for name in replay.nodes if isinstance(replay.check(alike[entry.key], name), Fits))
                spot = next(fits, None) or _opened(replay, entry, known, room)
                if spot is None:
                    break
                replay.place(alike[entry.key], spot, f"{entry.key}#{count[entry.key]}")
                count[entry.key] += 1
    return count


def _opened(replay: Replay, entry: PendingPods, known: dict[str, ScaleUpOption], room: dict[str, int]) -> str | None:
    for name, offer in known.items():
        node = build_planned_node(offer, room[name])
        if room[name] > 0 and isinstance(check_node(entry.pod, node, replay.build_view()), Fits):
            replay.add_node(node, offer.daemons)
            room[name] -= 1
            return node.metadata.name
    return None


@many
@given(snapshots(social=False, nap=False))
def test_a_class_with_room_for_all_is_placed_in_bulk_instead_of_pod_by_pod(snapshot: Snapshot):
    """Where groups are large enough for everybody, no pod that fits anywhere is left."""
    pending = tuple(replace(pods, bundle="") for pods in snapshot.pending)
    groups = tuple(replace(group, max_size=50 * (group.max_size > 0), zero_or_max=False) for group in snapshot.groups)
    roomy = replace(snapshot, pending=pending, groups=groups)
    by_hand = placed_first_fit(roomy)
    in_bulk = placed(plan_scale_up(roomy, COST))
    fits_on_new = [
        pods.key
        for pods in roomy.pending
        if any(
            isinstance(check_node(pods.pod, build_planned_node(offer, 0), roomy.view), Fits)
            for offer in find_options(roomy, COST).options
        )
    ]
    for pending_pods in roomy.pending:
        if pending_pods.key in fits_on_new:
            assert in_bulk.get(pending_pods.key, 0) == pending_pods.count
        else:
            assert bool(in_bulk.get(pending_pods.key, 0)) >= (
                bool(by_hand.get(pending_pods.key, 0)) and len(roomy.pending) == 1
            )


@many
@given(snapshots(nap=False))
def test_one_pod_alone_is_placed_exactly_if_some_node_takes_it(snapshot: Snapshot):
    """Feasibility, class by class, with all interactions with what runs."""
    for pending in snapshot.pending:
        alone = replace(snapshot, pending=(replace(pending, count=1, bundle=""),))
        here = any(
            isinstance(check_node(pending.pod, state.node, alone.view), Fits) for state in alone.view.nodes.values()
        )
        new = any(
            isinstance(check_node(pending.pod, build_planned_node(offer, 0), alone.view), Fits)
            for offer in find_options(alone, COST).options
        )
        plan = plan_scale_up(alone, COST)
        assert plan.verification_failures == 0
        assert plan.scheduled == int(here or new)
        assert bool(plan.scale_ups) == (not here and new), "existing nodes are used first"


def in_line(snapshot: Snapshot) -> Snapshot:
    """As a scheduler would take them; no bundles, no group that is scaled up as a whole."""
    line = sorted(
        snapshot.pending, key=lambda pending: (-(pending.pod.spec.priority or 0), str(pending.created), pending.key)
    )
    groups = tuple(replace(group, zero_or_max=False) for group in snapshot.groups)
    return replace(snapshot, pending=tuple(replace(pending, bundle="") for pending in line), groups=groups)


def check_as_many_are_helped(clusters: int) -> None:
    """With interactions and limits of groups: as many as pod by pod in line, but for a few."""
    helped: list[tuple[int, int]] = []

    @settings(many, max_examples=clusters, derandomize=True)
    @given(snapshots(nap=False))
    def collect(snapshot: Snapshot) -> None:
        line = in_line(snapshot)
        helped.append((plan_scale_up(line, COST).scheduled, sum(placed_first_fit(line).values())))

    collect()
    assert sum(bulk for bulk, _ in helped) >= 0.99 * sum(by_hand for _, by_hand in helped)
    assert sum(bulk < by_hand for bulk, by_hand in helped) <= 0.05 * len(helped)


def test_as_many_are_helped_as_pod_by_pod():
    check_as_many_are_helped(clusters=80 if IS_LONG else 40)
