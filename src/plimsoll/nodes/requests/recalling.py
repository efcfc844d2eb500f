"""Growth that earlier turns made for ProvisioningRequests and that has to go again, found before anything is planned.

Three ways lead here: a roll-back that was begun and not finished; an attempt that was begun for a request that is over,
or cannot be served any more; capacity that was promised and did not come, or is gone (specs/nodes.md 3.4, 3.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.answering import blocks_all, is_over
from plimsoll.nodes.requests.conditions import Why
from plimsoll.nodes.requests.idleness import idle_coming, idle_nodes
from plimsoll.nodes.requests.intents import Return, grown_before, on_the_way_back
from plimsoll.nodes.requests.returning import Occasion, Returned, as_written, begin, go_on
from plimsoll.nodes.requests.seen import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.requests.arrivals import Missed
    from plimsoll.nodes.requests.booking import Booked
    from plimsoll.nodes.requests.details import Intent
    from plimsoll.nodes.requests.returning import Counter
    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.nodes.requests.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What is known when growth is called back."""

    booked: Booked
    """Without those that missed theirs."""
    sizes: Mapping[str, int]
    line: Sequence[Seen] = ()
    missed: Sequence[Missed] = ()


def is_on_its_way_back(seen: Seen) -> bool:
    return seen.details.intent is not None and seen.details.intent.is_rolled_back


def is_stranded(seen: Seen) -> bool:
    """Whether growth was begun for it that nobody will finish."""
    return seen.phase is Phase.INTENDED and (is_over(seen) or seen.problem is not None)


async def recall(counter: Counter, at: Recall) -> Returned:
    """Take back what can be; requests that are not done are tried again later."""
    going = [one for one in at.line if is_on_its_way_back(one)]
    begun = [one.details.intent for one in going if one.details.intent is not None]
    revoked = await _revoked(counter, at, begun)
    going += [as_written(one) for one in revoked if one.is_written and one.details.intent is not None]
    begun = [one.details.intent for one in going if one.details.intent is not None]
    returns = _returns(at)
    told = {one.name: blocks_all(one, _why_stranded(one)) for one in at.line if is_stranded(one)}
    told |= {one.seen.name: blocks_all(one.seen, one.told) for one in at.missed}
    first = await begin(counter, returns, Occasion(sizes=at.sizes, begun=tuple(begun), told=told))
    return Returned(verdicts=revoked) + first + await go_on(counter, going)


async def _revoked(counter: Counter, at: Recall, begun: Sequence[Intent]) -> tuple[Verdict, ...]:
    """Who was told that it has its capacity is told that it has not; of what did not join yet nothing is waited for."""
    held = [one for one in at.missed if one.seen.phase is Phase.HELD]
    idle = idle_coming(at.booked.snapshot, at.booked.nodes)
    returns = [Return(seen=one.seen, nodes=_share(one.seen.details.node_groups, idle)) for one in held]
    intents = on_the_way_back([one for one in returns if not one.is_nothing], at.sizes, begun=begun)
    verdicts = [
        counter.answering.revoked(
            one.seen,
            Why.NODES_LOST if one.failure is None else Why.NODES_FAILED,
            one.told,
            intent=intents.get(one.seen.name),
        )
        for one in held
    ]
    return await counter.say(verdicts)


def _returns(at: Recall) -> list[Return]:
    """All of their growth, as far as nobody is on it."""
    idle = idle_nodes(at.booked.snapshot, at.booked.nodes)
    waiting = [one.seen for one in at.missed if one.seen.phase is Phase.ARRIVING]
    stranded = [one for one in at.line if is_stranded(one) and not is_on_its_way_back(one)]
    found = [Return(seen=one, nodes=_share(one.details.node_groups, idle)) for one in waiting]
    for one in stranded:
        created = () if one.details.intent is None else one.details.intent.created
        made = tuple(group for group in created if group in at.sizes)
        found.append(Return(seen=one, nodes=_share(grown_before(one, at.sizes), idle), created=made))
    return found


def _share(nodes: Mapping[str, int], idle: dict[str, int]) -> dict[str, int]:
    """As many of the nodes as are idle; what one takes, the next cannot."""
    found = {group: min(count, idle.get(group, 0)) for group, count in nodes.items()}
    for group, count in found.items():
        idle[group] = idle.get(group, 0) - count
    return found


def _why_stranded(seen: Seen) -> str:
    return "it is over" if seen.problem is None else seen.problem[1]
