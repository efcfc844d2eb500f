"""What of a node recording is a name, beyond what `journal.anonymising` knows: of groups, in flags, in patterns. Pure.

A flag is kept only if it cannot hold a name, or if it is known here how to hide the names in it; everything else
(files, addresses, names of objects around the program) is dropped: no plan depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.journal.anonymising import Rules
from plimsoll.nodes.config.expander_priorities import compile_pattern
from plimsoll.nodes.config.options import known_flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.journal.anonymising import Anonymiser
    from plimsoll.nodes.config.policy import Policy

    Json = dict[str, Any]

_NAMES: Final = frozenset({"names", "knownAs", "id", "leavingNodes", "unreadyNodes", "bookedNodes", "profile"})
_ENTRIES: Final = frozenset({"entry", "bundle"})
_TEXTS: Final = frozenset({"notUsable", "why", "problem"})
_PREFIX: Final = "autoprovisioning-prefix"
_SAFE_KINDS: Final = frozenset({"duration", "true or false", "count", "number"})
_SAFE: Final = frozenset(
    {
        *("cores-total", "memory-total", "gpu-total", "expander", "planner", "drain-priority-config", "consolidation"),
        *("nap-label-merge", "nap-popularity", "nap-taints", "cloud-provider", "provreq-provisioned-when"),
        *("balancing-label", "balancing-ignore-label", "startup-taint", "startup-taint-prefix", "status-taint"),
        *("ignore-taint", "consolidation-budget"),
    }
)
"""Words of ours, amounts, and keys: of labels, taints, resources, which stay everywhere."""
_HIDDEN: Final = frozenset(
    {"machine-types", "bypassed-scheduler-names", "allowed-scheduler-names", "random-seed", _PREFIX}
)
_MATCHES_ANY: Final = frozenset("^$.*+?()")


def recording_rules(policy: Policy) -> Rules:
    """A prefix of our own making stays a prefix, under another name."""
    known = Rules()
    own = () if policy.nap.prefix in known.prefixes else (policy.nap.prefix,)
    return Rules(names=known.names | _NAMES, paths=_ENTRIES, texts=_TEXTS, hidden_prefixes=own)


def anonymise_policy(written: Json, anonymiser: Anonymiser, groups: Sequence[str]) -> Json:
    """`groups` are the ids that patterns of the priority expander may meet."""
    return {
        **written,
        "flags": {
            name: value
            for name, given in written["flags"].items()
            if (value := _hidden_flag(name, given, anonymiser)) is not None
        },
        "overlay": [{**one, "machineType": anonymiser.name(one["machineType"])} for one in written["overlay"]],
        "priorities": [
            {**one, "patterns": [_hidden_pattern(text, anonymiser, groups) for text in one["patterns"]]}
            for one in written["priorities"]
        ],
        # Questions are known by a hash of names.
        "expanderAnswers": None,
    }


def _hidden_flag(name: str, value: Any, anonymiser: Anonymiser) -> Any:
    """None: it is left out."""
    flag = known_flag(name)
    if flag is None:
        return None
    if name == "nodes":
        return [_hidden_bounds(one, anonymiser) for one in value]
    if name in _HIDDEN:
        return [anonymiser.name(one) for one in value] if isinstance(value, list) else anonymiser.name(value)
    return value if flag.kind in _SAFE_KINDS or name in _SAFE else None


def _hidden_bounds(written: str, anonymiser: Anonymiser) -> str:
    """MIN:MAX:ID."""
    least, most, name = written.split(":", 2)
    return f"{least}:{most}:{anonymiser.name(name)}"


def _hidden_pattern(text: str, anonymiser: Anonymiser, groups: Sequence[str]) -> str:
    """It meets the groups it met before; what it would meet of groups that are yet to be made is lost."""
    if set(text) <= _MATCHES_ANY:
        return text
    try:
        pattern = compile_pattern(text)
    except InvalidInput:
        return "^$"
    met = sorted(anonymiser.name(name) for name in groups if pattern.search(name))
    return f"^(?:{'|'.join(met)})$" if met else "^$"
