"""The spread of load over the instances of a component, for the simulated cluster and for simulations.

There are two models, for the two causes of auto-scaling. Without hot instances all work is spread evenly over all
cores, so that more instances of any kind help. With them a share of the work belongs to a few instances of
the cluster itself, because they hold the requested keys: other instances of the cluster do not help, but a
group does, for PD moves hot regions onto it until the hot instances are down at the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence


class HotLoad(Value):
    """`share` of the work belongs to the first `instances`; what they have above `target` usage may move to groups."""

    instances: int = 0
    share: float = 0.0
    target: float = 0.5


EVEN: Final = HotLoad()


def spread_work(
    work_cores: float, *, base: Sequence[float], groups: Sequence[float], heat: HotLoad = EVEN
) -> list[float]:
    """Cores that each instance is asked for, those of the base first; more than its own cores means that it saturates.

    `base` and `groups` are the cores that the instances have.
    """
    hot = min(heat.instances, len(base))
    if hot == 0 or heat.share == 0:
        return _spread_evenly(work_cores, [*base, *groups])
    # Without cold instances the rest of the work stays on the hot ones.
    fixed = work_cores * heat.share if hot < len(base) else work_cores
    moved = _compute_moved(fixed, hot_cores=sum(base[:hot]), group_cores=sum(groups), target=heat.target)
    return [
        *_spread_evenly(fixed - moved, base[:hot]),
        *_spread_evenly(work_cores - fixed, base[hot:]),
        *_spread_evenly(moved, groups),
    ]


def _compute_moved(fixed_cores: float, *, hot_cores: float, group_cores: float, target: float) -> float:
    """What leaves the hot instances: all above the target, but not so much that groups are busier than they are."""
    together = hot_cores + group_cores
    level = max(target, fixed_cores / together if together else 0.0)
    return max(0.0, fixed_cores - level * hot_cores) if group_cores else 0.0


def _spread_evenly(work_cores: float, cores: Sequence[float]) -> list[float]:
    """In proportion to size: all instances have the same usage."""
    together = sum(cores)
    return [work_cores * core / together if together else 0.0 for core in cores]
