"""The steps of a scenario file, one reader for each verb."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from plimsoll.nodes.config.flags import InvalidOptions
from plimsoll.nodes.config.options import read_options
from plimsoll.simulation.document import describe_value
from plimsoll.simulation.expectations import read_operators
from plimsoll.simulation.files.fleet_entries import read_ocm_step, read_request
from plimsoll.simulation.files.manifests import read_manifests
from plimsoll.simulation.scenario import (
    AdvanceStep,
    ApplyStep,
    AtStep,
    CrashStep,
    DeleteStep,
    Expectation,
    ExpectStep,
    FailIncrease,
    GroupLimits,
    LoopStep,
    ProviderCall,
    ProviderStep,
    ReconcileStep,
    ScheduleStep,
    SetStep,
    WorldKind,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.simulation.document import DocumentValue
    from plimsoll.simulation.scenario import Json, Step

DEFAULT_EVERY_S: Final = 10.0

# By what its argument is.
_SIZE_CALLS: Final = ("IncreaseSize", "AtomicIncreaseSize", "DecreaseTargetSize")
_NODE_CALLS: Final = ("DeleteNodes", "ForceDeleteNodes")
_GROUP_CALLS: Final = ("Delete",)

_FLEET_VERBS: Final = frozenset({"request", "ocm"})
_COMMON_VERBS: Final = frozenset({"advance", "at", "apply", "delete", "expect"})
"""With and without a fleet."""


def parse_step(given: DocumentValue, world: WorldKind, *, has_fleet: bool = False) -> Step | None:
    """The step; None if it is none, which is reported."""
    found = given.read_members()
    cluster = found.pop("cluster", None) if has_fleet else None
    verbs = [name for name in found if name in _READERS]
    if len(verbs) != 1:
        given.add_problem(_format_no_verb(found) if not verbs else f"says {' and '.join(verbs)}: a step is one of them")
        return None
    verb = verbs[0]
    for name in found:
        if name != verb and (verb, name) != ("loop", "every"):
            found[name].add_problem(f"unknown field beside {verb}")
    if has_fleet != (verb in _FLEET_VERBS) and verb not in _COMMON_VERBS:
        where = "in a scenario with a fleet" if has_fleet else "without a fleet"
        found[verb].add_problem(f"there is no such step {where}")
        return None
    if has_fleet:
        return _name_cluster(_READERS[verb](found[verb]), given, cluster)
    if world == WorldKind.LIVE and verb in {"loop", "schedule"}:
        found[verb].add_problem("in a live world loops and scheduling happen by themselves; use advance or at")
        return None
    if verb == "loop":
        every_s = found["every"].read_seconds() if "every" in found else DEFAULT_EVERY_S
        return LoopStep(times=found["loop"].read_whole(least=1), every_s=every_s)
    return _READERS[verb](found[verb])


def _name_cluster(step: Step | None, given: DocumentValue, cluster: DocumentValue | None) -> Step | None:
    """A step about objects, with its cluster. Expectations may be about the fleet."""
    if cluster is None:
        if isinstance(step, ApplyStep | DeleteStep):
            given.add_problem("cluster is missing: the first that is made is c1")
        return step
    name = cluster.read_text()
    if isinstance(step, ApplyStep | DeleteStep | ExpectStep):
        return replace(step, cluster=name)
    cluster.add_problem("only apply, delete and expect are about a cluster")
    return step


def _format_no_verb(found: dict[str, DocumentValue]) -> str:
    known = f"a step is one of {', '.join(_READERS)}"
    for name in found:
        if near := difflib.get_close_matches(name, _READERS, n=1):
            return f"{name} is not a step; did you mean {near[0]}?"
    return known


def read_step_options(given: DocumentValue) -> Json:
    """Flags without their dashes; values are plain, or lists of plain ones."""
    options: Json = {}
    for name, option in given.read_members().items():
        if name.startswith("-"):
            option.add_problem(f"options are named without dashes: {name.lstrip('-')}")
        values = option.value if isinstance(option.value, list) else [option.value]
        if any(value is None or isinstance(value, dict | list) for value in values):
            option.add_problem(f"must be a plain value or a list of them, is {describe_value(option.value)}")
        options[name] = option.value
    return options


def _advance_in(given: DocumentValue) -> Step:
    return AdvanceStep(seconds=given.read_seconds())


def _read_at(given: DocumentValue) -> Step:
    is_date = isinstance(given.value, str) and "-" in given.value
    return AtStep(moment=given.read_time() if is_date else given.read_seconds())


def _apply_in(given: DocumentValue) -> Step:
    return ApplyStep(manifests=read_manifests(given))


def _delete_in(given: DocumentValue) -> Step:
    fields = given.read_fields(("apiVersion", "kind", "namespace", "name"))
    texts = {name: field.read_text() for name, field in fields.items()}
    for name in ("kind", "name"):
        if name not in texts:
            given.add_problem(f"{name} is missing")
    return DeleteStep(
        kind=texts.get("kind", ""),
        name=texts.get("name", ""),
        namespace=texts.get("namespace", "default"),
        api_version=texts.get("apiVersion", ""),
    )


def _parse_schedule(given: DocumentValue) -> Step:
    if given.value is not True:
        given.add_problem(f"must be true, is {describe_value(given.value)}")
    return ScheduleStep()


def _read_provider(given: DocumentValue) -> Step:
    fields = given.read_fields(("failIncrease", "stockout", "setGroup", "calls"))
    stockouts = fields["stockout"].read_members() if "stockout" in fields else {}
    return ProviderStep(
        fail_increases=_fail_increases_in(fields["failIncrease"]) if "failIncrease" in fields else (),
        stockouts=tuple((name, seconds.read_whole()) for name, seconds in stockouts.items()),
        limits=_read_limits(fields["setGroup"]) if "setGroup" in fields else (),
        calls=tuple(_parse_call(field) for field in fields["calls"].read_items()) if "calls" in fields else (),
    )


def _fail_increases_in(given: DocumentValue) -> tuple[FailIncrease, ...]:
    """`until` is given next to the groups and applies to all of them."""
    found = given.read_members()
    until = found.pop("until").read_time() if "until" in found else None
    return tuple(FailIncrease(group=name, message=field.read_text(), until=until) for name, field in found.items())


def _read_limits(given: DocumentValue) -> tuple[GroupLimits, ...]:
    limits = []
    for name, group_field in given.read_members().items():
        fields = {key: field.read_whole() for key, field in group_field.read_fields(("min", "max")).items()}
        limits.append(GroupLimits(group=name, min=fields.get("min"), max=fields.get("max")))
    return tuple(limits)


def _parse_call(given: DocumentValue) -> ProviderCall:
    fields = given.read_fields(("call", "group", "arg"))
    for name in ("call", "group"):
        if name not in fields:
            given.add_problem(f"{name} is missing")
    call = fields["call"].read_choice(*_SIZE_CALLS, *_NODE_CALLS, *_GROUP_CALLS) if "call" in fields else ""
    return ProviderCall(
        call=call,
        group=fields["group"].read_text() if "group" in fields else "",
        arg=_read_argument(given, fields, call),
    )


def _read_argument(given: DocumentValue, fields: dict[str, DocumentValue], call: str) -> int | tuple[str, ...] | None:
    wants = int if call in _SIZE_CALLS else list if call in _NODE_CALLS else None
    arg = fields.get("arg")
    if wants is None:
        return None
    if arg is None:
        given.add_problem("arg is missing: " + ("a number of nodes" if wants is int else "a list of node names"))
        return None
    if wants is list:
        return tuple(item.read_text() for item in arg.read_items())
    if not isinstance(arg.value, int) or isinstance(arg.value, bool):
        arg.add_problem(f"must be a whole number, is {describe_value(arg.value)}")
        return None
    return arg.value


def _set_in(given: DocumentValue) -> Step:
    options = read_step_options(given)
    check_options(given, options)
    return SetStep(options=options)


def check_options(given: DocumentValue, options: Json) -> None:
    """Whether the node autoscaler has such flags, and takes such values."""
    try:
        read_options({name: value for name, value in options.items() if not name.startswith("-")}, path="")
    except InvalidOptions as error:
        for path, problem in error.problems:
            given.get_place(path).add_problem(problem)


def _read_crash(given: DocumentValue) -> Step:
    fields = given.read_fields(("component", "afterCalls"))
    if "component" not in fields:
        given.add_problem("component is missing")
    return CrashStep(
        component=fields["component"].read_text() if "component" in fields else "",
        after_calls=fields["afterCalls"].read_whole() if "afterCalls" in fields else 0,
    )


def _reconcile_in(given: DocumentValue) -> Step:
    fields = given.read_fields(("kind", "namespace", "name", "times"))
    for name in ("kind", "name"):
        if name not in fields:
            given.add_problem(f"{name} is missing")
    return ReconcileStep(
        kind=fields["kind"].read_text() if "kind" in fields else "",
        name=fields["name"].read_text() if "name" in fields else "",
        namespace=fields["namespace"].read_text() if "namespace" in fields else "default",
        times=fields["times"].read_whole(least=1) if "times" in fields else 1,
    )


def _expect_in(given: DocumentValue) -> Step:
    expectations = []
    for path, field in given.read_members().items():
        operators: Any = read_operators(field)
        expectations.append(Expectation(path=path, operators=operators))
    return ExpectStep(expectations=tuple(expectations))


_READERS: Final[dict[str, Callable[[DocumentValue], Step | None]]] = {
    "loop": lambda _: None,  # read where `every` is at hand
    "advance": _advance_in,
    "at": _read_at,
    "apply": _apply_in,
    "delete": _delete_in,
    "schedule": _parse_schedule,
    "provider": _read_provider,
    "set": _set_in,
    "crash": _read_crash,
    "reconcile": _reconcile_in,
    "expect": _expect_in,
    "request": read_request,
    "ocm": read_ocm_step,
}
