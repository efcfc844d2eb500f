"""Which labels the nodes of a new group get, so that they serve as many pods as possible. Pure.

Selectors that do not contradict each other are merged, the most popular first (docs/design/nodes.md 5.6). Different
machine types do not contradict each other in a merge. A node has only one type, though, so `served` may be smaller than
`merged`, and only pods in `served` are placed on such nodes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.node_labels import MACHINE_TYPE_KEYS
from plimsoll.nodes.model.scale_up_plan import LabelSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Keys of the system and of the cloud. A selector that would add one of these is not merged.
_GUARDED: Final = ("kubernetes.io", "cloud.google.com")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorDemand:
    """A selector and its demand, in pods or millicores."""

    selector: Mapping[str, str]
    popularity: int


def merge_label_set(selectors: Sequence[Mapping[str, str]]) -> LabelSet:
    """The labels that the most popular selectors share. Selectors come in `order_by_popularity`, at least one."""
    labels = dict(selectors[0])
    merged = [selectors[0]]
    for selector in selectors[1:]:
        added = _merge_selector(labels, selector)
        if added is not None:
            labels.update(added)
            merged.append(selector)
    served = [selector for selector in selectors if satisfies(labels, selector)]
    return LabelSet(labels=labels, merged=tuple(merged), served=tuple(served))


def build_single_label_set(selectors: Sequence[Mapping[str, str]]) -> LabelSet:
    """The label set of the first selector alone, without merging."""
    first = selectors[0]
    return LabelSet(labels=dict(first), merged=(first,), served=(first,))


def order_by_popularity(demands: Iterable[SelectorDemand]) -> list[SelectorDemand]:
    """One entry per selector, the most popular first; ties are broken by the selector's text."""
    popularity: dict[str, int] = {}
    selectors: dict[str, Mapping[str, str]] = {}
    for demand in demands:
        text = json.dumps(demand.selector, sort_keys=True)
        popularity[text] = popularity.get(text, 0) + demand.popularity
        selectors.setdefault(text, demand.selector)
    ranked = sorted(selectors, key=lambda text: (-popularity[text], text))
    return [SelectorDemand(selector=selectors[text], popularity=popularity[text]) for text in ranked]


def find_machine_type(selector: Mapping[str, str]) -> str | None:
    """The machine type that a selector names under any of the keys."""
    return next((selector[key] for key in sorted(MACHINE_TYPE_KEYS) if key in selector), None)


def remove_machine_type(labels: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key not in MACHINE_TYPE_KEYS}


def satisfies(labels: Mapping[str, str], selector: Mapping[str, str]) -> bool:
    wanted = find_machine_type(selector)
    if wanted is not None and wanted != find_machine_type(labels):
        return False
    return all(labels.get(key) == value for key, value in selector.items() if key not in MACHINE_TYPE_KEYS)


def _merge_selector(labels: Mapping[str, str], selector: Mapping[str, str]) -> dict[str, str] | None:
    """The labels that merging adds; None if the two contradict each other or the selector is not merged."""
    added: dict[str, str] = {}
    for key, value in selector.items():
        if key in MACHINE_TYPE_KEYS:
            if find_machine_type(labels) is None and find_machine_type(added) is None:
                added[key] = value
        elif key in labels:
            if labels[key] != value:
                return None
        elif any(part in key for part in _GUARDED):
            return None
        else:
            added[key] = value
    return added
