"""The labels that nodes on offer carry, and which label of a pod none of them has. Pure.

A message names the key and the value that fail and, where one is similar, the key or value that was probably meant.
"""

from __future__ import annotations

import difflib
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.node_selectors import build_node_requirement
from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.model.node_templates import MachineTemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.affinity import NodeSelectorRequirement
    from plimsoll.objects.api.pods import Pod

_NODES: Final = 2_000
"""The number of existing nodes whose labels are read."""
_COMPARED: Final = 500
"""A key with more values than this is not searched for a similar one."""
_LISTED: Final = 5
_SIMILAR_KEY: Final = 0.8
_SIMILAR_VALUE: Final = 0.75


class OfferedLabels:
    """The labels of existing nodes, of the templates of groups, and of machine types; read when first needed."""

    def __init__(self, problem: ScaleUpProblem) -> None:
        self._problem = problem

    @cached_property
    def values(self) -> dict[str, set[str]]:
        """The values of each key."""
        found: dict[str, set[str]] = {}
        for labels in self._iterate_labels():
            for key, value in labels.items():
                found.setdefault(key, set()).add(value)
        found.pop(HOSTNAME, None)
        return found

    def suggest(self, key: str, wanted: Iterable[str]) -> str:
        """The key or the value that was probably meant, or the values that exist; empty if there are too many."""
        known = self.values.get(key)
        if known is None:
            near = difflib.get_close_matches(key, self.values, n=1, cutoff=_SIMILAR_KEY)
            return f"did you mean {near[0]}?" if near else ""
        values = set(wanted)
        if values & known:
            return ""  # The value exists, on nodes that do not suit for another reason.
        for value in sorted(values):
            near = find_similar(value, known)
            if near:
                return f"did you mean {near[0]}?"
        return f"the values are {', '.join(sorted(known))}" if len(known) <= _LISTED else ""

    def _iterate_labels(self) -> Iterator[Mapping[str, str]]:
        problem = self._problem
        for option in problem.options:
            if option.exists:
                yield option.node.metadata.labels
        if problem.policy.nap.enabled:
            for kind in problem.snapshot.machine_types:
                template = MachineTemplate(kind, problem.option_set.regions)
                for zone in kind.zones or ("",):
                    yield template.build_system_labels(zone)
        for state in islice(problem.snapshot.view.nodes.values(), _NODES):
            yield state.labels


def find_similar(value: str, known: set[str]) -> list[str]:
    """At most one name that is spelled like `value`; none if several are equally similar."""
    if len(known) > _COMPARED:
        return []
    near = difflib.get_close_matches(value, sorted(known), n=2, cutoff=_SIMILAR_VALUE)
    ratios = [difflib.SequenceMatcher(None, name, value).ratio() for name in near]
    return near[:1] if len(near) == 1 or (near and ratios[0] > ratios[1]) else []


class _Condition:
    """A condition of a pod on the labels of its node."""

    def __init__(
        self, key: str, values: Sequence[str], text: str, matches: Callable[[Mapping[str, str]], bool]
    ) -> None:
        self.key = key
        self.values = values
        self.text = text
        self.matches = matches


def describe_unmet_labels(pod: Pod, candidates: Sequence[Mapping[str, str]], offered: OfferedLabels) -> str:
    """Which conditions no candidate meets; empty if the pod's terms cannot be read or name no label."""
    try:
        alternatives = _read_conditions(pod)
    except InvalidSelector:
        return ""
    return " or ".join(dict.fromkeys(filter(None, (_describe(part, candidates, offered) for part in alternatives))))


def _describe(conditions: Sequence[_Condition], candidates: Sequence[Mapping[str, str]], offered: OfferedLabels) -> str:
    unmet = [condition for condition in conditions if not any(map(condition.matches, candidates))]
    if not unmet:
        return f"none has all of {', '.join(condition.text for condition in conditions)}" if len(conditions) > 1 else ""
    parts: list[str] = []
    for condition in unmet:
        hint = offered.suggest(condition.key, condition.values)
        parts.append(f"none has {condition.text}; {hint}" if hint else f"none has {condition.text}")
    return ", ".join(parts)


def _read_conditions(pod: Pod) -> list[list[_Condition]]:
    """The node selector with each alternative of the node affinity."""
    selected = [_select(key, value) for key, value in pod.spec.node_selector.items()]
    affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return [selected]
    return [
        [*selected, *(_require(requirement) for requirement in term.match_expressions)]
        for term in required.node_selector_terms
    ]


def _select(key: str, value: str) -> _Condition:
    return _Condition(key, (value,), f"{key}={value}", lambda labels: labels.get(key) == value)


def _require(written: NodeSelectorRequirement) -> _Condition:
    condition = build_node_requirement(written.key, written.operator, written.values)
    if written.operator == "In" and len(written.values) == 1:
        text = f"{written.key}={written.values[0]}"
    else:
        text = " ".join(filter(None, (written.key, written.operator, ", ".join(written.values))))
    return _Condition(written.key, tuple(written.values), text, condition.matches)
