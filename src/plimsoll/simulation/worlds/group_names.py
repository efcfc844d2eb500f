"""Names for node groups whose ids are not valid Kubernetes names, such as `A` or `nodeautoprovisioning_n1_12`. Pure.

Clouds accept such ids, and files, options and outcomes use them. The objects of the simulated cloud get similar names
and the id as an annotation, which the provider reads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.api.simulated_cloud import GROUP_ID_ANNOTATION, GROUP_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.simulation.scenario import Json

_REFUSED: Final = re.compile(r"[^a-z0-9.-]+")


class GroupNames:
    """Ids and names of the groups of one scenario. A group that a cloud creates later is named by its id."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._name_of: dict[str, str] = {}
        listed = list(ids)
        taken = {group_id for group_id in listed if not _is_changed(group_id)}
        for group_id in listed:
            if _is_changed(group_id) and group_id not in self._name_of:
                self._name_of[group_id] = name = _choose_free_name(_format_name(group_id), taken)
                taken.add(name)
        self._id_of = {name: group_id for group_id, name in self._name_of.items()}

    def get_name(self, group: str) -> str:
        return self._name_of.get(group, group)

    def get_id(self, name: str) -> str:
        return self._id_of.get(name, name)

    def rename(self, manifest: Json) -> Json:
        """A NodeGroup, its node, or a pod on such a node, with names that the API server accepts."""
        meta = manifest["metadata"]
        if manifest["kind"] == "NodeGroup" and meta["name"] in self._name_of:
            notes = {**(meta.get("annotations") or {}), GROUP_ID_ANNOTATION: meta["name"]}
            return {**manifest, "metadata": {**meta, "name": self._name_of[meta["name"]], "annotations": notes}}
        if manifest["kind"] == "Pod":
            return self._on_its_node(manifest)
        labels: Any = meta.get("labels") or {}
        group = labels.get(GROUP_LABEL, "") if manifest["kind"] == "Node" and isinstance(labels, dict) else ""
        if group not in self._name_of:
            return manifest
        name = self._name_of[group]
        called = self._get_node_name(meta["name"])
        return {**manifest, "metadata": {**meta, "name": called, "labels": {**labels, GROUP_LABEL: name}}}

    def _on_its_node(self, pod: Json) -> Json:
        spec = pod.get("spec")
        node = spec.get("nodeName") if isinstance(spec, dict) else None
        if not isinstance(node, str) or self._get_node_name(node) == node:
            return pod
        return {**pod, "spec": {**pod["spec"], "nodeName": self._get_node_name(node)}}

    def _get_node_name(self, written: str) -> str:
        """`A-0` is the first node of group A, whatever the name of its object."""
        ids = [group_id for group_id in self._name_of if re.fullmatch(re.escape(group_id) + r"-\d+", written)]
        if not ids:
            return written
        group = max(ids, key=len)
        return f"{self._name_of[group]}{written.removeprefix(group)}"


def _is_changed(group: str) -> bool:
    return _format_name(group) != group


def _format_name(group: str) -> str:
    return _REFUSED.sub("-", group.lower()).strip("-.") or "group"


def _choose_free_name(name: str, taken: set[str]) -> str:
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found
