"""Reads options that people write into a `Policy`, and reports every mistake at once with its fix.

Scenario files, the command line and the ConfigMap all go through `read_options`. `FLAGS` is the table of all flags:
those declared in `policy`, and those of Cluster Autoscaler that are only accepted. `list_policy_flags` writes a policy
as the flags that differ from their defaults, for recordings and status; `read_flags_of_policy` reads it back, flag by
flag, because a policy that was in force is not checked again.
"""

from __future__ import annotations

import dataclasses
import difflib
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core import value_parsing
from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.config import flags
from plimsoll.nodes.config.drain_tiers import parse_drain_tiers
from plimsoll.nodes.config.flags import Bounds, Flag, InvalidOptions, NamedBounds, State
from plimsoll.nodes.config.policy import (
    COST,
    OPTIMAL_CHAINS,
    PRIORITY,
    AutoProvisioning,
    Balancing,
    GroupRules,
    Limits,
    Operation,
    Planner,
    PlanningOptions,
    PodRules,
    Policy,
    Requests,
    ScaleDown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


__all__ = ["FLAGS", "InvalidOptions", "Policy", "find_flag", "find_flags_without_effect", "read_options"]

PARTS: Final[Mapping[str, type]] = {
    "limits": Limits,
    "groups": GroupRules,
    "planning": PlanningOptions,
    "balancing": Balancing,
    "nap": AutoProvisioning,
    "pods": PodRules,
    "scale_down": ScaleDown,
    "requests": Requests,
    "operation": Operation,
}
_COUNTED: Final = "effort is counted here, never timed, so that a plan can be replayed"
_ALWAYS_FAST: Final = "pods are always planned by class, which is what this asks for"
_ONE_PLAN: Final = "one plan covers all pods and groups of a loop iteration"
_DURATION: Final = ("duration", value_parsing.parse_duration_s)
_SWITCH: Final = ("true or false", value_parsing.parse_switch)
_COUNT: Final = ("count", value_parsing.parse_count)
_TEXT: Final = ("text", value_parsing.parse_text)
_ACCEPTED: Final = (
    (
        "fastpath-binpacking-enabled",
        "Whether identical pods are packed together in the estimator.",
        _SWITCH,
        False,
        _ALWAYS_FAST,
    ),
    (
        "max-nodegroup-binpacking-duration",
        "The time that bin packing may take per node group.",
        _DURATION,
        10.0,
        _COUNTED,
    ),
    ("max-binpacking-time", "The time that bin packing may take per loop iteration.", _DURATION, 300.0, _COUNTED),
    (
        "predicate-parallelism",
        "Number of nodes whose predicates are evaluated in parallel.",
        _COUNT,
        4,
        "predicates are evaluated for all classes at once",
    ),
    (
        "provisioning-request-max-backoff-cache-size",
        "Number of ProvisioningRequests whose back-off is remembered.",
        _COUNT,
        1000,
        "back-off is kept in the request, not in a cache",
    ),
    (
        "async-node-groups",
        "Whether node groups are created asynchronously.",
        _SWITCH,
        False,
        "creating a group never blocks the loop",
    ),
    (
        "enable-proactive-scaleup",
        "Whether pods are planned for before their controllers have created them.",
        _SWITCH,
        False,
        "pods are not injected ahead of their controllers",
    ),
    (
        "pod-injection-limit",
        "Number of pods up to which --enable-proactive-scaleup adds pods.",
        _COUNT,
        5000,
        "pods are not injected ahead of their controllers",
    ),
    (
        "salvo-scale-up",
        "Whether one loop iteration makes several scale-ups after each other.",
        _SWITCH,
        False,
        _ONE_PLAN,
    ),
    (
        "salvo-scale-up-budget",
        "The time that one loop iteration may spend on several scale-ups.",
        _DURATION,
        60.0,
        _ONE_PLAN,
    ),
    (
        "enable-graceful-degradation",
        "Whether loop iterations plan for fewer pods when planning takes too long.",
        _SWITCH,
        False,
        "the work of a loop iteration does not grow with the number of pods",
    ),
    (
        "pending-pods-batching-timeout",
        "How long pending pods may wait for their turn when loop iterations plan for fewer pods.",
        _DURATION,
        240.0,
        "the work of a loop iteration does not grow with the number of pods",
    ),
    (
        "dynamic-node-delete-delay-after-taint-enabled",
        "Whether the delay between taint and drain follows the measured latency of the API server.",
        _SWITCH,
        False,
        "node-delete-delay-after-taint is used as it is",
    ),
    (
        "capacity-quotas-enabled",
        "Whether CapacityQuota objects limit the cluster.",
        _SWITCH,
        False,
        "limits come from options only",
    ),
    (
        "parallel-scale-up",
        "Whether several node groups are scaled up in parallel.",
        _SWITCH,
        False,
        "groups of one plan are always scaled up in parallel",
    ),
    (
        "estimator",
        "The estimator that computes how many nodes pods need.",
        _TEXT,
        "binpacking",
        "there is one estimator",
    ),
)


_WITHOUT_EFFECT: Final = {
    "scale-from-unschedulable": "templates are never cordoned, whatever their node is",
    "scaleup-simulation-for-skipped-node-groups-enabled": "reasons of skipped groups are always reported",
    "scale-down-simulation-timeout": _COUNTED,
    "plan-time-limit": _COUNTED,
    "provreq-reservation-pods": "bookings exist in plans only; no pods reserve the capacity on nodes",
}
"""Flags that are declared, checked and kept like others, and have no effect."""


def _declare_flags() -> Iterator[Flag]:
    for part in PARTS.values():
        for _, flag in flags.iterate_flags(part):
            note = _WITHOUT_EFFECT.get(flag.name)
            yield flag if note is None else dataclasses.replace(flag, state=State.ACCEPTED, note=note)
    for name, description, (kind, parse), default, note in _ACCEPTED:
        yield Flag(
            name=name,
            kind=kind,
            description=description,
            default=default,
            parse=parse,
            state=State.ACCEPTED,
            note=note,
        )


FLAGS: Final[Mapping[str, Flag]] = {flag.name: flag for flag in sorted(_declare_flags(), key=lambda flag: flag.name)}
"""All flags by canonical name, sorted."""
_BY_SPELLING: Final[Mapping[str, Flag]] = {
    spelling: flag for flag in FLAGS.values() for spelling in (flag.name, *flag.aliases)
}


def read_options(mapping: Mapping[str, Any], *, path: str = "options") -> Policy:
    """The policy of these options. Raises `InvalidOptions` with every mistake. A null is an option not given."""
    reading = _Reading(path)
    for name, value in mapping.items():
        if value is not None:
            reading.take(name, value)
    policy = reading.build_policy()
    reading.check(policy)
    if reading.problems:
        raise InvalidOptions(reading.problems)
    return policy


def find_flag(name: str) -> Flag | None:
    """The flag of this name or alias, with or without dashes."""
    return _BY_SPELLING.get(_strip_dashes(name))


def find_flags_without_effect(mapping: Mapping[str, Any]) -> tuple[Flag, ...]:
    """The given flags that have no effect here, for a warning at start."""
    known = (_BY_SPELLING.get(_strip_dashes(name)) for name, value in mapping.items() if value is not None)
    return tuple(flag for flag in known if flag is not None and flag.state is State.ACCEPTED)


class _Reading:
    """Values by canonical name, and the mistakes so far."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._values: dict[str, Any] = {}
        self._spelled: dict[str, str] = {}
        self.problems: list[tuple[str, str]] = []

    def add_problem(self, name: str, problem: str) -> None:
        self.problems.append((f"{self._path}.{name}" if self._path else name, problem))

    def take(self, name: Any, value: Any) -> None:
        spelling = _strip_dashes(name)
        flag = _BY_SPELLING.get(spelling)
        if flag is None:
            near = difflib.get_close_matches(spelling, _BY_SPELLING, n=1)
            self.add_problem(str(name), f"unknown option; did you mean {near[0]}?" if near else "unknown option")
            return
        problem = flags.find_flag_problem(flag, value)
        if problem is not None:
            self.add_problem(spelling, problem)
            return
        read = flag.parse(value)
        if flag.name in self._values and self._values[flag.name] != read:
            other = self._spelled[flag.name]
            self.add_problem(spelling, f"is the same option as {other}, which says something else; give one of them")
            return
        self._values[flag.name] = read
        self._spelled[flag.name] = spelling

    def build_policy(self) -> Policy:
        parts: dict[str, Any] = {}
        for part, struct in PARTS.items():
            own = {field: flag.name for field, flag in flags.iterate_flags(struct) if flag.name in self._values}
            parts[part] = struct(**{field: self._values[name] for field, name in own.items()})
        return dataclasses.replace(Policy(), **parts)

    # ---- checks of several options together

    def check(self, policy: Policy) -> None:
        limits = policy.limits
        self._check_pair(limits.cores_total, "cores-total", least="min-cpu", most="max-cpu")
        self._check_pair(limits.memory_total, "memory-total", least="min-memory", most="max-memory")
        self._check_names("nodes", [named_bounds.name for named_bounds in policy.groups.nodes], "node group")
        self._check_names("gpu-total", [named_bounds.name for named_bounds in limits.gpu_total], "accelerator")
        self._check_names("expander", list(policy.planning.expander), "expander")
        self._check_choosing(policy.planning)
        if not policy.nap.prefix:
            self.add_problem("autoprovisioning-prefix", "must not be empty: it marks the auto-provisioned groups")
        self._check_tiers(policy.scale_down.drain_priority_config)
        if policy.groups.first_backoff_s > policy.groups.longest_backoff_s:
            self.add_problem("initial-node-group-backoff-duration", "is longer than max-node-group-backoff-duration")

    def _check_tiers(self, tiers: str) -> None:
        if not tiers:
            return
        if "max-graceful-termination-sec" in self._values:
            self.add_problem("drain-priority-config", "excludes max-graceful-termination-sec; give one of them")
        try:
            parse_drain_tiers(tiers)
        except InvalidInput as error:
            self.add_problem("drain-priority-config", error.problem)

    def _check_pair(self, total: Bounds | None, name: str, *, least: str, most: str) -> None:
        lower, upper = self._values.get(least), self._values.get(most)
        if total is not None:
            for single, given, there in ((least, lower, total.least), (most, upper, total.most)):
                if given is not None and given != there:
                    self.add_problem(single, f"is {given}, but {name} says {there}; give one of them, or the same")
        elif lower is not None and upper is not None and lower > upper:
            self.add_problem(least, f"is {lower}, above {most}, which is {upper}")

    def _check_names(self, option: str, names: list[str], what: str) -> None:
        for twice in sorted({name for name in names if names.count(name) > 1}):
            self.add_problem(option, f"names the {what} {twice} more than once")

    def _check_choosing(self, choosing: PlanningOptions) -> None:
        chain = choosing.expander
        if choosing.planner == Planner.OPTIMAL and chain and chain not in OPTIMAL_CHAINS:
            self.add_problem(
                "planner",
                f"optimal cannot follow the expander {','.join(chain)}; "
                f"give the expander {COST} or {PRIORITY},{COST}, or the planner {Planner.COMPATIBLE}",
            )
        if "grpc" in chain and not choosing.grpc_url:
            self.add_problem("expander", "grpc needs grpc-expander-url")


def _strip_dashes(name: Any) -> str:
    """The name without leading dashes, which people copy from command lines."""
    return str(name).lstrip("-")


ACCELERATORS: Final = "gpu-total"


def list_policy_flags(policy: Policy) -> dict[str, Any]:
    """Canonical names with plain JSON values, in the order of names."""
    found: dict[str, Any] = {}
    for part, struct in PARTS.items():
        for field, flag in flags.iterate_flags(struct):
            value = getattr(getattr(policy, part), field)
            if value != flag.default:
                found[flag.name] = _format_value(flag, value)
    return dict(sorted(found.items()))


def read_flags_of_policy(written: Mapping[str, Any], *, path: str = "flags") -> Policy:
    """The policy of written flags. Raises `InvalidOptions` with every flag that cannot be read."""
    problems: list[tuple[str, str]] = []
    values: dict[str, Any] = {}
    for name, value in written.items():
        flag = find_flag(name)
        problem = "unknown option" if flag is None else flags.find_flag_problem(flag, value)
        if flag is None or problem is not None:
            problems.append((f"{path}.{name}", problem or ""))
        else:
            values[flag.name] = flag.parse(value)
    if problems:
        raise InvalidOptions(problems)
    parts = {
        part: struct(**{field: values[flag.name] for field, flag in flags.iterate_flags(struct) if flag.name in values})
        for part, struct in PARTS.items()
    }
    return dataclasses.replace(Policy(), **parts)


def _format_value(flag: Flag, value: Any) -> Any:
    if isinstance(value, tuple):
        return [_format_item(flag, item) for item in value]
    if isinstance(value, Bounds):
        return f"{value.least}:{value.most}"
    if flag.kind == "duration":
        return f"{Decimal(repr(value)):f}s"
    return value


def _format_item(flag: Flag, value: Any) -> Any:
    if not isinstance(value, NamedBounds):
        return value
    sizes = f"{value.bounds.least}:{value.bounds.most}"
    return f"{value.name}:{sizes}" if flag.name == ACCELERATORS else f"{sizes}:{value.name}"
