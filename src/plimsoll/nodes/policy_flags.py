"""A policy written down as the flags that make it, and read back: for recordings, and for the status of a running one.

Only what differs from the defaults is written, so that a flag of a newer Plimsoll does not stand in the way of reading
an old policy. `read_flags_of_policy` judges each flag by itself: a policy that was in force is not judged anew. Pure.
"""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes import flags
from plimsoll.nodes.flags import Bounds, InvalidOptions, NamedBounds
from plimsoll.nodes.options import PARTS, known_flag
from plimsoll.nodes.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.flags import Flag

ACCELERATORS: Final = "gpu-total"


def flags_of_policy(policy: Policy) -> dict[str, Any]:
    """Canonical names with plain JSON values, in the order of names."""
    found: dict[str, Any] = {}
    for part, struct in PARTS.items():
        for field, flag in flags.flags_of(struct):
            value = getattr(getattr(policy, part), field)
            if value != flag.default:
                found[flag.name] = _written(flag, value)
    return dict(sorted(found.items()))


def read_flags_of_policy(written: Mapping[str, Any], *, path: str = "flags") -> Policy:
    """The policy again. Raises `InvalidOptions` with every flag that cannot be read."""
    problems: list[tuple[str, str]] = []
    values: dict[str, Any] = {}
    for name, value in written.items():
        flag = known_flag(name)
        problem = "unknown option" if flag is None else flags.problem_of(flag, value)
        if flag is None or problem is not None:
            problems.append((f"{path}.{name}", problem or ""))
        else:
            values[flag.name] = flag.parse(value)
    if problems:
        raise InvalidOptions(problems)
    parts = {
        part: struct(**{field: values[flag.name] for field, flag in flags.flags_of(struct) if flag.name in values})
        for part, struct in PARTS.items()
    }
    return dataclasses.replace(Policy(), **parts)


def _written(flag: Flag, value: Any) -> Any:
    if isinstance(value, tuple):
        return [_item(flag, one) for one in value]
    if isinstance(value, Bounds):
        return f"{value.least}:{value.most}"
    if flag.kind == "duration":
        return f"{Decimal(repr(value)):f}s"
    return value


def _item(flag: Flag, value: Any) -> Any:
    if not isinstance(value, NamedBounds):
        return value
    sizes = f"{value.bounds.least}:{value.bounds.most}"
    return f"{value.name}:{sizes}" if flag.name == ACCELERATORS else f"{sizes}:{value.name}"
