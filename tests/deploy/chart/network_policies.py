"""Whether NetworkPolicies let a connection in: the rules of `networking.k8s.io/v1` for ingress.

The embedded cluster moves no packets, so the policies are judged instead of tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A pod that connects, or is connected to."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def namespace_labels(self) -> dict[str, str]:
        return {NAMESPACE_LABEL: self.namespace}


def is_let_in(policies: Iterable[Mapping[str, Any]], source: Peer, target: Peer, *, port: int) -> bool:
    """Whether a TCP connection is allowed: by any policy that selects the target, or because none does."""
    selecting = [
        policy
        for policy in policies
        if policy["metadata"].get("namespace", target.namespace) == target.namespace
        and matches(policy["spec"]["podSelector"], target.labels)
        and "Ingress" in policy["spec"].get("policyTypes", ["Ingress"])
    ]
    if not selecting:
        return True
    rules = [rule for policy in selecting for rule in policy["spec"].get("ingress") or []]
    return any(_allows(rule, source, target, port) for rule in rules)


def _allows(rule: Mapping[str, Any], source: Peer, target: Peer, port: int) -> bool:
    ports, peers = rule.get("ports") or [], rule.get("from") or []
    if ports and not any(entry.get("protocol", "TCP") == "TCP" and entry.get("port", port) == port for entry in ports):
        return False
    return not peers or any(_is_peer(peer, source, target) for peer in peers)


def _is_peer(peer: Mapping[str, Any], source: Peer, target: Peer) -> bool:
    if "ipBlock" in peer:
        return False  # pods are not selected by address here
    if "namespaceSelector" in peer:
        if not matches(peer["namespaceSelector"], source.namespace_labels):
            return False
    elif source.namespace != target.namespace:
        return False
    return matches(peer.get("podSelector") or {}, source.labels)


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """An empty selector matches everything."""
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or [])


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or []
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
