"""The annotations strimzi.io/next-node-ids and strimzi.io/remove-node-ids: `[0, 5, 10-20, 30-25]`.

A value that cannot be read is ignored with a warning: the ids are then chosen as without the annotation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.core.value_parsing import quote
from plimsoll.kafka.model.node_ids import HIGHEST_NODE_ID, NodeIdRange, NodeIdRanges
from plimsoll.kafka.wire.names import NEXT_NODE_IDS_ANNOTATION, REMOVE_NODE_IDS_ANNOTATION

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_RANGES: Final = 1_000
_RANGE: Final = re.compile(r"\s*(\d{1,10})(?:\s*-\s*(\d{1,10}))?\s*", re.ASCII)


def read_next_node_ids(annotations: Mapping[str, str], path: str) -> tuple[NodeIdRanges, tuple[Reason, ...]]:
    """The ids for new nodes, and a warning if they cannot be read."""
    return _read(annotations, NEXT_NODE_IDS_ANNOTATION, path)


def read_remove_node_ids(annotations: Mapping[str, str], path: str) -> tuple[NodeIdRanges, tuple[Reason, ...]]:
    """The ids of nodes that leave first, and a warning if they cannot be read."""
    return _read(annotations, REMOVE_NODE_IDS_ANNOTATION, path)


def parse_node_id_ranges(text: str) -> NodeIdRanges | str:
    """The ranges, or what is wrong with the text."""
    trimmed = text.strip()
    if not trimmed:
        return NodeIdRanges()
    if not (trimmed.startswith("[") and trimmed.endswith("]")):
        return "it is not a list in square brackets"
    inside = trimmed[1:-1]
    if not inside.strip():
        return NodeIdRanges()
    parts = inside.split(",", MOST_RANGES)
    if len(parts) > MOST_RANGES:
        return f"it has more than {MOST_RANGES} entries"
    ranges: list[NodeIdRange] = []
    for part in parts:
        matched = _RANGE.fullmatch(part)
        if matched is None:
            return f"{quote(part.strip())} is neither a node id nor a range of them"
        first = int(matched[1])
        last = first if matched[2] is None else int(matched[2])
        if max(first, last) > HIGHEST_NODE_ID:
            return f"{max(first, last)} is larger than the largest node id, {HIGHEST_NODE_ID}"
        ranges.append(NodeIdRange(first=first, last=last))
    return NodeIdRanges(ranges=tuple(ranges))


def _read(annotations: Mapping[str, str], annotation: str, path: str) -> tuple[NodeIdRanges, tuple[Reason, ...]]:
    parsed = parse_node_id_ranges(annotations.get(annotation, ""))
    if isinstance(parsed, NodeIdRanges):
        return parsed, ()
    field = f"metadata.annotations[{annotation}]"
    warning = Reason(
        code="NodeIdRangesInvalid",
        message=f"{path}: {field} is ignored: {parsed}. Write for example [0, 5, 10-20]",
        facts={"field": field, "value": quote(annotations[annotation])},
    )
    return NodeIdRanges(), (warning,)
