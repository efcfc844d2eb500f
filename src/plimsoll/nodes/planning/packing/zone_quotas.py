"""How many pods of a class go to each domain of a topology (mostly zones), before nodes are chosen. Arithmetic only.

Topology spread fixes totals per domain first; each domain is then planned on its own. Filling the lowest domain first
is valid for any maxSkew (`compute_quotas`); where the skew leaves freedom, pods go where they cost less
(`shift_to_cheap_domains`). A domain that is full keeps the minimum low: the others stop at it plus maxSkew, and the
pods beyond that cannot be placed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SAME_PRICE: Final = 1e-6
_DEPTH: Final = 64
"""The lowest domain is tried down to this far below even quotas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreading:
    """One hard constraint over domains, with the pods that exist."""

    max_skew: int
    min_domains: int = 1
    counts_itself: bool = True
    """Whether the pods' own labels match the constraint's selector; if not, placing them changes no count."""
    counts: Mapping[str, int]
    """Counted pods per eligible domain that exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """Pods for each domain; `held_by` are the full domains that keep the others from taking more."""

    pods: Mapping[str, int]
    left: int
    held_by: tuple[str, ...] = ()


def compute_quotas(count: int, spreading: Spreading, *, open_domains: Sequence[str], most: Mapping[str, int]) -> Quotas:
    """Distribute `count` pods over `open_domains`, each of which takes at most `most` more (missing: any number)."""
    if not spreading.counts_itself:
        return _compute_uncounted_quotas(count, spreading, open_domains)
    level = {name: spreading.counts.get(name, 0) for name in open_domains}
    state = _Levels(
        level=level,
        ceiling={name: level[name] + most[name] if name in most else None for name in open_domains},
        frozen={name: number for name, number in spreading.counts.items() if name not in level},
        given=dict.fromkeys(open_domains, 0),
    )
    left = count
    while left and (able := [name for name in open_domains if _can_rise(name, state, spreading)]):
        left = _raise_lowest(able, state, spreading, left)
    return Quotas(pods=state.given, left=left, held_by=_find_limiting_domains(state) if left else ())


def shift_to_cheap_domains(
    even: Quotas, spreading: Spreading, *, prices: Mapping[str, float], most: Mapping[str, int]
) -> Quotas:
    """The same pods where they cost least, as far as the skew allows; even quotas where that saves nothing.

    `prices`: the price of a pod in the domains that pods may move between; other domains keep their quotas. Levels
    within the skew of the lowest can be reached one pod at a time, the lowest first, without breaking the constraint.
    """
    names = {*spreading.counts, *even.pods}
    levels = {name: spreading.counts.get(name, 0) + even.pods.get(name, 0) for name in names}
    if even.left or not spreading.counts_itself or not levels:
        return even
    movable = sorted((name for name in prices if name in even.pods), key=lambda name: (prices[name], name))
    highest = max((levels[name] for name, pods in even.pods.items() if pods and name not in prices), default=0)
    lowest = min(levels.values()) if len(names) >= spreading.min_domains else 0
    best = dict(even.pods)
    for floor in range(lowest, max(lowest - min(spreading.max_skew, _DEPTH), 0, highest - spreading.max_skew) - 1, -1):
        found = _fill_cheapest(sum(even.pods[name] for name in movable), movable, spreading, floor, most)
        if found is not None and _compute_cost(found, prices) < _compute_cost(best, prices) * (1 - _SAME_PRICE):
            best |= found
    return replace(even, pods=best)


def _fill_cheapest(
    pods: int, names: Sequence[str], of: Spreading, floor: int, most: Mapping[str, int]
) -> dict[str, int] | None:
    """Pods per domain, the cheapest domain first, with no domain below the floor; None if that is impossible."""
    there = {name: of.counts.get(name, 0) for name in names}
    given = {name: max(0, floor - there[name]) for name in names}
    left = pods - sum(given.values())
    for name in names:
        room = min(floor + of.max_skew - there[name], most.get(name, pods)) - given[name]
        more = min(max(room, 0), max(left, 0))
        given[name] += more
        left -= more
    fits = all(given[name] <= most.get(name, pods) for name in names)
    return given if fits and not left else None


def _compute_cost(given: Mapping[str, int], prices: Mapping[str, float]) -> float:
    return sum(prices[name] * pods for name, pods in given.items() if name in prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Levels:
    """Pods per domain while they are distributed. `frozen` domains take none; `ceiling` None: any number."""

    level: dict[str, int]
    ceiling: Mapping[str, int | None]
    frozen: Mapping[str, int]
    given: dict[str, int]


def _can_rise(name: str, state: _Levels, of: Spreading) -> bool:
    most = state.ceiling[name]
    if most is not None and state.level[name] >= most:
        return False
    return state.level[name] + 1 - _compute_minimum(state.level, state.frozen, of) <= of.max_skew


def _compute_minimum(level: Mapping[str, int], frozen: Mapping[str, int], of: Spreading) -> int:
    """The minimum over domains that exist for the next pod: existing ones, and open ones with pods in them.

    An open domain without a node does not exist yet, but planning will use it, so it counts as empty.
    """
    levels = [*level.values(), *frozen.values()]
    return min(levels, default=0) if len(levels) >= of.min_domains else 0


def _raise_lowest(able: Sequence[str], state: _Levels, of: Spreading, left: int) -> int:
    """Raise the lowest domains that can rise, by as many rounds at once as do not affect other domains."""
    level = state.level
    lowest = min(level[name] for name in able)
    rising = [name for name in able if level[name] == lowest]
    rounds = max(1, min([left // len(rising), *_compute_free_rounds(rising, lowest, state, of)]))
    for name in rising:
        step = min(rounds, left)
        level[name] += step
        state.given[name] += step
        left -= step
    return left


def _compute_free_rounds(rising: Sequence[str], lowest: int, state: _Levels, of: Spreading) -> list[int]:
    """How far they may rise before a ceiling, a neighbour's level or the skew comes into play."""
    bounds = [most - lowest for name in rising if (most := state.ceiling[name]) is not None]
    others = [number for name, number in state.level.items() if name not in rising] + [*state.frozen.values()]
    bounds += [number - lowest for number in others if number > lowest]
    if len(state.level) + len(state.frozen) < of.min_domains:
        bounds.append(of.max_skew - lowest)
    elif any(number <= lowest for number in others):
        bounds.append(min(others) + of.max_skew - lowest)
    return bounds


def _find_limiting_domains(state: _Levels) -> tuple[str, ...]:
    """The domains at the minimum that can rise no more."""
    full = {
        name: state.level[name]
        for name, most in state.ceiling.items()
        if most is not None and state.level[name] >= most
    }
    stuck = {**state.frozen, **full}
    lowest = min(stuck.values(), default=0)
    return tuple(sorted(name for name, number in stuck.items() if number == lowest))


def _compute_uncounted_quotas(count: int, of: Spreading, open_domains: Sequence[str]) -> Quotas:
    """Pods that the constraint does not count change no level: where one may go, all may."""
    minimum = _compute_minimum({name: of.counts.get(name, 0) for name in open_domains}, of.counts, of)
    allowed = [name for name in open_domains if of.counts.get(name, 0) - minimum <= of.max_skew]
    if not allowed:
        return Quotas(pods=dict.fromkeys(open_domains, 0), left=count, held_by=tuple(sorted(of.counts)))
    share, more = divmod(count, len(allowed))
    pods = dict.fromkeys(open_domains, 0)
    pods |= {name: share + (index < more) for index, name in enumerate(allowed)}
    return Quotas(pods=pods, left=0)
