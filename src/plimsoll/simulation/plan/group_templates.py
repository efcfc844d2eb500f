"""The template of a node group, derived from its existing nodes: labels, taints, sizes and daemon pods. Pure.

A real node takes precedence over the file if it has been ready for a minute, takes pods and stays (docs/design/nodes.md
6.5). The planner removes its name and transient taints. Nodes made up for a `target` are never used.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.nodes.model.pod_traits import is_daemon_pod, is_mirror_pod
from plimsoll.nodes.model.taints import BEING_DELETED, IGNORED_PREFIX, STARTUP_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.simulation.scenario import Json

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_SETTLED: Final = timedelta(minutes=1)
_OLDEST: Final = datetime.min.replace(tzinfo=UTC)
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A node that represents the next node of its group, and its daemon pods; None: they are unknown."""

    node: Node
    daemons: tuple[Pod, ...] | None = None


def find_node_template(nodes: Iterable[Node], on: Mapping[str, Sequence[Pod]], *, now: datetime) -> Template | None:
    """The newest good node of a group, because groups change over time. `on`: pods by node."""
    good = [node for node in nodes if _is_good(node, now)]
    if not good:
        return None
    newest = max(good, key=lambda node: (node.metadata.creation_timestamp or _OLDEST, node.metadata.name))
    metadata = msgspec.structs.replace(newest.metadata, labels=_find_common_labels(newest, good))
    daemons = tuple(pod for pod in on.get(newest.metadata.name, ()) if _belongs_to_node(pod))
    return Template(node=msgspec.structs.replace(newest, metadata=metadata), daemons=daemons)


def _is_good(node: Node, now: datetime) -> bool:
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    if ready is None or ready.status != "True" or node.spec.unschedulable:
        return False
    if node.metadata.deletion_timestamp is not None:
        return False
    keys = [taint.key for taint in node.spec.taints]
    if BEING_DELETED in keys or any(key.startswith((STARTUP_PREFIX, IGNORED_PREFIX)) for key in keys):
        return False
    since = ready.last_transition_time
    # A dump is younger than the moment a file without `start` is set in: its nodes have been ready for long enough.
    return since is None or not timedelta() <= now - since < _SETTLED


def _find_common_labels(node: Node, others: Sequence[Node]) -> dict[str, str]:
    """Its labels, without those that another node of the group has otherwise: zones, ids."""
    return {
        key: value
        for key, value in node.metadata.labels.items()
        if all(other.metadata.labels.get(key, value) == value for other in others)
    }


def _belongs_to_node(pod: Pod) -> bool:
    stays = pod.status.phase not in _ENDED and pod.metadata.deletion_timestamp is None
    return stays and (is_mirror_pod(pod) or is_daemon_pod(pod))


# ---- groups of which a file says only that they are there


def add_node_shape(group: Mapping[str, Any], nodes: Sequence[Json], types: Collection[str]) -> Json:
    """The entry of a group with what its nodes are, where it does not say so itself."""
    if "machineType" in group or "template" in group or not nodes:
        return dict(group)
    node = min(nodes, key=lambda body: str(body["metadata"]["name"]))
    labels = _get_texts(node["metadata"].get("labels"))
    if labels.get(INSTANCE_TYPE, "") in types:
        return {**group, "machineType": labels[INSTANCE_TYPE]}
    status: Json = node["status"] if isinstance(node.get("status"), dict) else {}
    template = {name: status[name] for name in ("capacity", "allocatable") if isinstance(status.get(name), dict)}
    if "capacity" not in template:
        return dict(group)
    return {**group, "template": {**template, "labels": labels}}


def _get_texts(labels: Any) -> dict[str, str]:
    return {key: value for key, value in labels.items() if isinstance(value, str)} if isinstance(labels, dict) else {}
