"""Replays a recording: plans again from its content, and lists where two plans differ. Pure.

`build_recording` plans from the recorded form, not from the original: names break ties, and the keys of a map may be in
another order. So the same version always reproduces its own plan; another version may plan differently, and
`find_differences` shows where.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import encode
from plimsoll.journal.anonymising import Anonymiser
from plimsoll.journal.recordings import Recording
from plimsoll.nodes.config.node_disruption_budgets import DEFAULT_BUDGETS, parse_budget
from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
from plimsoll.nodes.model.results import ScaleUpPart
from plimsoll.nodes.observing.snapshots import place_pods
from plimsoll.nodes.planning.consolidation.planner import ConsolidationOptions, consolidate
from plimsoll.nodes.planning.scaledown.planner import find_unneeded
from plimsoll.nodes.planning.scaledown.selection import select_nodes_to_delete
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.recording.anonymising import anonymise_policy, build_recording_rules
from plimsoll.nodes.recording.policies import encode_policy, read_policy
from plimsoll.nodes.recording.scale_down_state import encode_state, read_state
from plimsoll.nodes.recording.snapshots import encode_snapshot, read_snapshot
from plimsoll.nodes.recording.wire import to_plain
from plimsoll.nodes.reporting.journal.plan_entries import build_plan
from plimsoll.nodes.reporting.plan_json import build_loop_entry, encode_plan
from plimsoll.nodes.scaledown.consolidation import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.journal.recordings import About
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState

SUBSYSTEM: Final = "nodes"
SNAPSHOT: Final = "snapshot"
POLICY: Final = "policy"
KNOWN: Final = "known"
PLAN: Final = "plan"
_ABSENT: Final = "(nothing)"
_LONGEST: Final = 200


def replay_loop(snapshot: Snapshot, policy: Policy, known: ScaleDownState) -> LoopResult:
    """A loop in which everything is planned and nothing executed, at the snapshot's time."""
    up = plan_scale_up(snapshot, policy)
    settled = place_pods(snapshot, up.existing)
    simulation = find_unneeded(settled, policy, now=snapshot.at, state=known)
    since = {
        unneeded_node.node: known.unneeded_since.get(unneeded_node.node, snapshot.at)
        for unneeded_node in simulation.unneeded
    }
    nodes_to_delete = select_nodes_to_delete(
        simulation, policy, now=snapshot.at, state=replace(known, unneeded_since=since)
    )
    return LoopResult(
        number=snapshot.number,
        at=snapshot.at,
        policy=policy,
        snapshot=snapshot,
        scale_up=ScaleUpPart(plan=up),
        scale_down=ScaleDownPart(
            unneeded=simulation.unneeded,
            unneeded_since=since,
            unremovable=(*simulation.unremovable, *nodes_to_delete.unremovable),
            nodes_to_delete=nodes_to_delete,
            known=known,
        ),
    )


def encode_result(loop: LoopResult) -> dict[str, Any]:
    """Everything that is compared: sizes and placements as `plimsoll plan` prints them, all reasons, and savings."""
    found: dict[str, Any] = to_plain({**build_loop_entry(loop), "reasons": build_plan(loop), **_find_savings(loop)})
    return found


def _find_savings(loop: LoopResult) -> dict[str, Any]:
    """What consolidation would propose; empty if it is off."""
    options = loop.policy.scale_down
    if options.consolidation not in MODES or loop.snapshot is None:
        return {}
    found = consolidate(
        place_pods(loop.snapshot, loop.scale_up.plan.existing),
        loop.policy,
        now=loop.at,
        state=loop.scale_down.known,
        options=ConsolidationOptions(
            budgets=tuple(parse_budget(consolidation_budget) for consolidation_budget in options.consolidation_budgets)
            or DEFAULT_BUDGETS
        ),
    )
    replacement = found.replacement
    summary = {
        "removals": {node_removal.node: node_removal.reason for node_removal in found.removals},
        "replaced": [] if replacement is None else list(replacement.nodes),
        "replacement": None if replacement is None else encode_plan(replacement.plan),
        "kept": {unremovable.node: unremovable.reason for unremovable in found.unremovable},
        "savingsPerHour": found.savings_per_hour,
    }
    return {"consolidation": summary}


def build_recording(
    snapshot: Snapshot, policy: Policy, known: ScaleDownState, *, about: About, salt: str | None
) -> Recording:
    """A recording with its plan. The salt replaces names; None keeps them, only on explicit request."""
    parts = {SNAPSHOT: encode_snapshot(snapshot), KNOWN: encode_state(known)}
    written = encode_policy(policy)
    if salt is None:
        recording = Recording.from_parts(parts, about, None).with_part(POLICY, written)
    else:
        anonymiser = Anonymiser(salt, build_recording_rules(policy))
        recording = Recording.from_parts(parts, about, anonymiser)
        groups = [group.id for group in snapshot.groups]
        recording = recording.with_part(POLICY, anonymise_policy(written, anonymiser, groups))
    return recording.with_part(PLAN, encode_result(replay_recording(recording)))


def replay_recording(recording: Recording) -> LoopResult:
    """The plan of a recording; raises `UnreadableRecording` if it cannot be read."""
    snapshot = read_snapshot(recording.get_part(SNAPSHOT))
    return replay_loop(snapshot, read_policy(recording.get_part(POLICY)), read_state(recording.get_part(KNOWN)))


def is_same(before: Any, now: Any) -> bool:
    """Byte for byte, in the key order of recordings."""
    return encode(before) == encode(now)


def find_differences(before: Any, now: Any, path: str = "plan") -> Iterator[tuple[str, str, str]]:
    """Path, recorded value and current value, in the order of the recording."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            yield from find_differences(before.get(key, _ABSENT), now.get(key, _ABSENT), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(now, list):
        for index in range(max(len(before), len(now))):
            old = before[index] if index < len(before) else _ABSENT
            new = now[index] if index < len(now) else _ABSENT
            yield from find_differences(old, new, f"{path}[{index}]")
    elif not is_same(before, now):
        yield path, _format_value(before), _format_value(now)


def _format_value(value: Any) -> str:
    written = value if isinstance(value, str) else encode(value).decode()
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}..."
