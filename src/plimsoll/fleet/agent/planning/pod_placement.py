"""Where the pods of instances run: real and reserved ones in the same places (docs/design/fleet.md 4 and 17.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.fleet.agent.wire.names import BROKER_ROLE, HOST, PROFILE_TYPE, ROLE_LABEL, ZONE

if TYPE_CHECKING:
    from plimsoll.fleet.agent.planning.sizes import InstanceShape


def build_placement(shape: InstanceShape, role: str, *, selector: dict[str, str]) -> dict[str, Any]:
    """Affinity, tolerations and spread of the pods of a role. `selector`: the labels of the role's pods."""
    instance_type = shape.instance_type
    on_pool = {"matchExpressions": [{"key": PROFILE_TYPE, "operator": "In", "values": [instance_type]}]}
    # Strimzi's pod template has no node selector; a required affinity to nodes is the same.
    affinity: dict[str, Any] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_pool]}}
    }
    toleration = {"key": PROFILE_TYPE, "operator": "Equal", "value": instance_type, "effect": "NoExecute"}
    placement: dict[str, Any] = {"affinity": affinity, "tolerations": [toleration]}
    if shape.is_spread:
        if role == BROKER_ROLE:
            affinity["podAntiAffinity"] = {
                "requiredDuringSchedulingIgnoredDuringExecution": [_exclude_brokers(instance_type)]
            }
        placement["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": selector},
            }
        ]
    return placement


def build_role_labels(shape: InstanceShape, role: str) -> dict[str, str]:
    return {PROFILE_TYPE: shape.instance_type, ROLE_LABEL: role}


def _exclude_brokers(instance_type: str) -> dict[str, Any]:
    """Exclude nodes with a broker of any instance of the type, in all namespaces: a node has one broker."""
    return {
        "topologyKey": HOST,
        "namespaceSelector": {},
        "labelSelector": {"matchLabels": {PROFILE_TYPE: instance_type, ROLE_LABEL: BROKER_ROLE}},
    }
