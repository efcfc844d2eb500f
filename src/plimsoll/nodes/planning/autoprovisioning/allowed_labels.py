"""Which labels auto-provisioning may put on a new group. Pure.

A pod's selector is a wish, not a permission. Labels of reserved domains belong to Kubernetes and its components: a new
group never gets one that the machine does not have by itself, so that a misspelt key buys nothing. A label that an
existing group carries says which nodes its pods belong to: the maximum size of that group is the operator's word
(docs/design/nodes.md 5.6).
"""

from __future__ import annotations

import difflib
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.node_labels import MACHINE_TYPE_KEYS, NODE_GROUP_KEYS
from plimsoll.scheduling.rules.taints import tolerates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from plimsoll.nodes.config.policy import AutoProvisioning
    from plimsoll.nodes.model.snapshot import NodeGroup
    from plimsoll.objects.api.affinity import Toleration

SHARED: Final = "shared"
_SIMILAR: Final = 0.8
"""The likeness of a key to one that machines have, from which on it was probably meant."""
_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io")
_FREE_DOMAINS: Final = ("node-restriction.kubernetes.io",)
"""Subdomains that are for the labels of operators, as Karpenter treats them."""


class LabelRules:
    """The rules of one policy beside the existing groups of one snapshot."""

    def __init__(
        self, nap: AutoProvisioning, groups: Iterable[NodeGroup], machine_labels: Collection[str] = ()
    ) -> None:
        self._patterns = nap.allowed_labels
        self._machine_labels = machine_labels
        is_reserving = nap.enabled and nap.node_group_labels != SHARED
        dedicated = [group for group in groups if not group.autoprovisioned] if is_reserving else []
        self._carrying: dict[tuple[str, str], NodeGroup] = {}
        for group in dedicated:
            for label in group.template.metadata.labels.items():
                self._carrying.setdefault(label, group)
        self._taints = [*dict.fromkeys(taint for group in dedicated for taint in group.template.spec.taints)]

    def find_refusal(self, selector: Mapping[str, str]) -> str | None:
        """Why a new group must not carry these labels; None if it may."""
        return next((refusal for label in sorted(selector.items()) if (refusal := self._refuse(*label))), None)

    def select_free_tolerations(self, tolerations: Iterable[Toleration]) -> tuple[Toleration, ...]:
        """The tolerations that are not meant for the nodes of existing groups."""
        if not self._taints:
            return tuple(tolerations)
        return tuple(
            toleration for toleration in tolerations if not any(tolerates(toleration, taint) for taint in self._taints)
        )

    def _refuse(self, key: str, value: str) -> str | None:
        if key in MACHINE_TYPE_KEYS:
            return None
        if group := self._carrying.get((key, value)):
            return (
                f"nodes labelled {key}={value} belong to node group {group.id}, which has at most {group.max_size}; "
                f"nap-node-group-labels={SHARED} would let new groups carry the label"
            )
        if key in NODE_GROUP_KEYS:
            return f"the label {key} names a node group, and none is named {value}"
        if is_reserved(key):
            near = difflib.get_close_matches(key, sorted(self._machine_labels), n=1, cutoff=_SIMILAR)
            hint = f"; did you mean {near[0]}?" if near else ""
            return f"no machine type has the label {key}, and labels of that domain are never added to a group{hint}"
        if self._patterns and not any(
            fnmatchcase(key, pattern) or fnmatchcase(f"{key}={value}", pattern) for pattern in self._patterns
        ):
            return f"nap-allowed-labels does not allow new groups with the label {key}={value}"
        return None


def is_reserved(key: str) -> bool:
    """Whether the key is in a domain of Kubernetes, such as `kubernetes.io/arhc`."""
    domain = key.rpartition("/")[0]
    return _is_within(domain, _RESERVED_DOMAINS) and not _is_within(domain, _FREE_DOMAINS)


def _is_within(domain: str, domains: Iterable[str]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in domains)
