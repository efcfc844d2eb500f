"""Which parts of a node recording are names: group ids, flags and patterns. Pure; extends `journal.anonymising`.

A flag is kept only if it cannot contain a name or this module knows how to replace the names in it. All others (files,
addresses, names of objects around the process) are dropped: no plan depends on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from plimsoll.core.errors import InvalidInput
from plimsoll.journal.anonymising import Rules
from plimsoll.nodes.config.expander_priorities import compile_pattern
from plimsoll.nodes.config.options import find_flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.journal.anonymising import Anonymiser
    from plimsoll.nodes.config.policy import Policy

    Json = dict[str, Any]

_NAMES: Final = frozenset(
    {"names", "knownAs", "id", "leavingNodes", "postponedNodes", "unreadyNodes", "bookedNodes", "profile"}
)
_ENTRIES: Final = frozenset({"entry", "bundle"})
_TEXTS: Final = frozenset({"notUsable", "why", "problem"})
_ANNOTATIONS: Final = (
    "cluster-autoscaler.kubernetes.io/",
    "autoscaling.x-k8s.io/",
    "cluster.x-k8s.io/cluster-api-autoscaler-",
    "capacity.cluster-autoscaler.kubernetes.io/",
    "delay-deletion.cluster-autoscaler.kubernetes.io/",
    "karpenter.sh/do-not-disrupt",
    "plimsoll.io/attaches-like",
    "cluster-autoscaler.k8s.io/",
)
"""Prefixes of the annotations that the planner reads."""
NODE_RULES: Final = Rules(
    names=Rules().names | _NAMES,
    paths=_ENTRIES,
    texts=_TEXTS,
    annotations=(*Rules().annotations, *_ANNOTATIONS),
    annotated_lists=frozenset({"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"}),
    prefixes=("nodeautoprovisioning", "nap"),
)
_PREFIX: Final = "autoprovisioning-prefix"
_SAFE_KINDS: Final = frozenset({"duration", "true or false", "count", "number"})
_SAFE: Final = frozenset(
    {
        *("cores-total", "memory-total", "gpu-total", "expander", "planner", "drain-priority-config", "consolidation"),
        *(
            "nap-label-merge",
            "nap-popularity",
            "nap-taints",
            "nap-node-group-labels",
            "cloud-provider",
            "provreq-provisioned-when",
        ),
        *("balancing-label", "balancing-ignore-label", "startup-taint", "startup-taint-prefix", "status-taint"),
        *("ignore-taint", "consolidation-budget"),
    }
)
"""Fixed words, amounts, and keys of labels, taints and resources; keys are never replaced."""
_HIDDEN: Final = frozenset(
    {"machine-types", "bypassed-scheduler-names", "allowed-scheduler-names", "random-seed", _PREFIX}
)
_MATCHES_ANY: Final = frozenset("^$.*+?()")


def build_recording_rules(policy: Policy) -> Rules:
    """A custom group-name prefix stays a prefix, under another name."""
    own = () if policy.nap.prefix in NODE_RULES.prefixes else (policy.nap.prefix,)
    return structs.replace(NODE_RULES, hidden_prefixes=own)


def anonymise_policy(written: Json, anonymiser: Anonymiser, groups: Sequence[str]) -> Json:
    """`groups`: the ids that patterns of the priority expander may match."""
    return {
        **written,
        "flags": {
            name: value
            for name, given in written["flags"].items()
            if (value := _hide_flag(name, given, anonymiser)) is not None
        },
        "overlay": [
            {**entry, "machineType": anonymiser.replace_name(entry["machineType"])} for entry in written["overlay"]
        ],
        "priorities": [
            {**entry, "patterns": [_hide_pattern(text, anonymiser, groups) for text in entry["patterns"]]}
            for entry in written["priorities"]
        ],
        # Questions are keyed by a hash of names.
        "expanderAnswers": None,
    }


def _hide_flag(name: str, value: Any, anonymiser: Anonymiser) -> Any:
    """The flag's value without names; None: the flag is dropped."""
    flag = find_flag(name)
    if flag is None:
        return None
    if name == "nodes":
        return [_hide_bounds(entry, anonymiser) for entry in value]
    if name == "nap-allowed-labels":
        return [_hide_label_value(text) for text in value]
    if name in _HIDDEN:
        return (
            [anonymiser.replace_name(text) for text in value]
            if isinstance(value, list)
            else anonymiser.replace_name(value)
        )
    return value if flag.kind in _SAFE_KINDS or name in _SAFE else None


def _hide_bounds(written: str, anonymiser: Anonymiser) -> str:
    """MIN:MAX:ID with the id replaced."""
    least, most, name = written.split(":", 2)
    return f"{least}:{most}:{anonymiser.replace_name(name)}"


def _hide_label_value(text: str) -> str:
    """KEY=VALUE with any value: values of labels are replaced, keys are not."""
    key, equals, _ = text.partition("=")
    return f"{key}=*" if equals else key


def _hide_pattern(text: str, anonymiser: Anonymiser, groups: Sequence[str]) -> str:
    """A pattern that matches the same groups; what it would match of future groups is lost."""
    if set(text) <= _MATCHES_ANY:
        return text
    try:
        pattern = compile_pattern(text)
    except InvalidInput:
        return "^$"
    met = sorted(anonymiser.replace_name(name) for name in groups if pattern.search(name))
    return f"^(?:{'|'.join(met)})$" if met else "^$"
