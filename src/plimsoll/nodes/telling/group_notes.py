"""What there is to say of a node group in a quiet turn: its sizes and limits, what comes, when it grew last.

So that `plimsoll why nodegroup/…` knows every group, not only those that something was decided about. Of what turns
did, the last growth and the last loss of each group are remembered, since the start of the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import NotDone, Reason, Ref
from plimsoll.nodes.telling.minimum_sizes import raised_groups
from plimsoll.nodes.turns import RemovalResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.cluster_state.standing import GroupStanding
    from plimsoll.nodes.turns import Turn

_AS_IT_IS: Final = "stays as it is"
_NO_LIMIT: Final = 2**31 - 1


class GroupNotes:
    """Between the turns of one autoscaler."""

    def __init__(self) -> None:
        self._grown: dict[str, str] = {}
        self._shrunk: dict[str, str] = {}

    def of(self, turn: Turn) -> tuple[NotDone, ...]:
        """A note a group that this turn did nothing about; none where nobody could look."""
        acted = self._note(turn)
        if turn.standing is None:
            return ()
        groups = turn.standing.groups
        self._grown = {name: told for name, told in self._grown.items() if name in groups or name in acted}
        self._shrunk = {name: told for name, told in self._shrunk.items() if name in groups}
        return tuple(self._noted(one) for name, one in groups.items() if name not in acted)

    def _note(self, turn: Turn) -> set[str]:
        """Groups that something was done about, or begun."""
        when = f"at {turn.at:%Y-%m-%d %H:%M:%S} UTC"
        acted = {one.group for one in turn.repaired} | {one.group for one in turn.grown}
        for group, before, after in _growths(turn):
            self._grown[group] = f"last grown from {before} to {after} {when}"
        for ended in turn.scale_down.ended:
            if ended.result is RemovalResult.REMOVED:
                self._shrunk[ended.removal.group] = f"last lost node {ended.removal.node} {when}"
        return acted

    def _noted(self, one: GroupStanding) -> NotDone:
        name = one.group.id
        known = [told[name] for told in (self._grown, self._shrunk) if name in told]
        message = "; ".join([_sizes(one), *_coming(one), *known])
        state = "growing" if one.is_growing else "steady" if one.group.autoscaled else "fixed"
        facts = {"size": one.target_size, "state": state, "min": one.group.min_size, "max": one.group.max_size}
        reason = Reason(code="GroupAsItIs", message=message, facts=facts)
        return NotDone(what=_AS_IT_IS, about=(Ref(kind="nodegroup", name=name),), reason=reason)


def _growths(turn: Turn) -> Iterator[tuple[str, int, int]]:
    yield from ((one.group, one.before, one.after) for one in turn.grown if one.is_done)
    yield from ((one.group, one.before, one.after) for one in raised_groups(turn) if one.failure is None)


def _sizes(one: GroupStanding) -> str:
    group = one.group
    has = f"{one.target_size} node{'s' * (one.target_size != 1)}, {len(one.readiness.ready)} ready"
    if not group.autoscaled:
        return f"it is not autoscaled, so nothing changes it: {has}"
    most = "no maximum" if group.max_size >= _NO_LIMIT else f"maximum {group.max_size}"
    return f"{has} (minimum {group.min_size}, {most})"


def _coming(one: GroupStanding) -> list[str]:
    return [f"{one.upcoming} on the way"] if one.upcoming else []
