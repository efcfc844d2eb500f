"""Checks of a scenario before planning, beyond its form: amounts, names, prices and counts. Pure.

An API server would refuse such objects, but `plimsoll plan` uses none. All errors are reported at once, each with its
path. What only makes pods unschedulable (an unknown operator, a negative request) is not an error: the plan gives it as
the reason.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import (
    find_dns1123_label_problems,
    find_label_value_problems,
    find_qualified_name_problems,
    find_subdomain_problems,
)
from plimsoll.core.quantity import Quantity
from plimsoll.objects.api.simulated_cloud import CapacityType, MachineType, NodeGroupSpec
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.simulation.document import Problems, describe_value, join_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.objects.api.nodes import Taint
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
    from plimsoll.simulation.scenario import GroupEntry, Json, PodEntry, Scenario

MOST: Final = (1 << 31) - 1
"""Counts are 32 bits wide in Kubernetes."""
_POD_SETS: Final = 32
MOST_NODES: Final = 100_000
"""Nodes that `target` makes; ten times what Kubernetes is made for."""
_LARGEST: Final = 1 << 50
"""Cores, bytes or pieces of one machine or pod: a pebibyte. Up to here millicores and the sums of plans fit 64 bits."""
_ORDINARY: Final = re.compile(r"[0-9]{1,9}(m|k|M|Ki|Mi)?|[0-9]{1,5}(G|Gi)")
"""Spellings that are below it for sure; reading a quantity takes longer than all other checks."""
_MOST_PRICE: Final = 1e9
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CONTENT_OF_SPREAD: Final = ("DoNotSchedule", "ScheduleAnyway")


def check_scenario(scenario: Scenario) -> None:
    """Raises `InvalidDocument` with all mistakes."""
    problems = Problems()
    for index, body in enumerate(scenario.machine_types):
        _check_type(body, f"machineTypes[{index}]", problems)
    for index, entry in enumerate(scenario.node_groups):
        _check_group(entry, f"nodeGroups[{index}]", problems)
    seen: dict[str, int] = {}
    for index, pods in enumerate(scenario.pods):
        path = f"pods[{index}]"
        first = seen.setdefault(f"{pods.namespace}/{pods.name}", index)
        if first != index:
            problems.add(f"{path}.name", f"{pods.namespace}/{pods.name} is pods[{first}] already; give it another name")
        _check_pods(pods, path, problems)
    problems.raise_if_any()


def check_objects(bodies: Iterable[Json]) -> None:
    """Raises `InvalidDocument` for amounts that no arithmetic of plans can hold."""
    problems = Problems()
    for body in bodies:
        kind, metadata = body["kind"], _get_mapping(body.get("metadata"))
        holder = _get_mapping(body.get("template")) if kind == "PodTemplate" else body
        if kind == "DaemonSet":
            holder = _get_mapping(_get_mapping(body.get("spec")).get("template"))
        amounts = _iterate_amounts(_get_mapping(holder.get("spec"))) if kind in _WITH_PODS else _list_node_amounts(body)
        for where, amount in amounts:
            if _is_absurd(amount):
                named_as = "/".join(filter(None, (kind.lower(), metadata.get("namespace"), metadata.get("name"))))
                problems.add(f"{named_as}: {where}", f"is more than any machine has: {describe_value(amount)}")
    problems.raise_if_any()


_WITH_PODS: Final = ("Pod", "PodTemplate", "DaemonSet")


def _list_node_amounts(body: Json) -> Iterator[tuple[str, Any]]:
    status = _get_mapping(body.get("status")) if body["kind"] == "Node" else {}
    for part in ("capacity", "allocatable"):
        for name, amount in _get_mapping(status.get(part)).items():
            yield join_path(f"status.{part}", name), amount


def check_requests(requests: Iterable[ProvisioningRequest]) -> None:
    """Raises `InvalidDocument` for what no server would store."""
    problems = Problems()
    for request in requests:
        path = f"provisioningrequest/{request.metadata.namespace}/{request.metadata.name}.spec.podSets"
        sets = request.spec.pod_sets
        if not 1 <= len(sets) <= _POD_SETS:
            problems.add(path, f"must have 1 to {_POD_SETS} items, has {len(sets)}")
        for index, pod_set in enumerate(sets):
            if not 1 <= pod_set.count <= MOST:
                problems.add(f"{path}[{index}].count", f"must be a whole number from 1 to {MOST}, is {pod_set.count}")
            if not pod_set.pod_template_ref.name:
                problems.add(f"{path}[{index}].podTemplateRef.name", "is missing")
    problems.raise_if_any()


def join_problem_path(path: str, problem: str) -> tuple[str, str]:
    """A decoding error, `spec.x: expected …`, with its path appended to that of the object."""
    inside, colon, message = problem.partition(": ")
    return (f"{path}.{inside}", message) if colon and " " not in inside else (path, problem)


# ---- machine types and groups


def _check_type(body: Json, path: str, problems: Problems) -> None:
    try:
        one = msgspec.convert(body, MachineType)
    except msgspec.ValidationError as error:
        problems.add(*join_problem_path(path, describe_problem(error, value=body)))
        return
    whole = {"cpu": one.cpu, "memory": one.memory, "pods": one.pods}
    for name, amount in whole.items():
        _check_amount(amount, f"{path}.{name}", problems, positive=True)
    for name, amount in one.gpu.items():
        _check_amount(amount, join_path(f"{path}.gpu", name), problems)
    for name, amount in one.allocatable.items():
        where = join_path(f"{path}.allocatable", name)
        _check_amount(amount, where, problems, positive=name in whole)
        _check_within(amount, {**whole, **one.gpu}.get(name), where, problems)
    if one.capacity_type not in tuple(CapacityType):
        message = f"must be one of {', '.join(CapacityType)}, is {describe_value(one.capacity_type)}"
        problems.add(f"{path}.capacityType", message)
    _check_price(one.price, f"{path}.price", problems)
    _check_labels(one.labels, f"{path}.labels", problems)
    for index, zone in enumerate(one.zones):
        _add(find_label_value_problems(zone), f"{path}.zones[{index}]", zone, problems)


def _check_group(entry: GroupEntry, path: str, problems: Problems) -> None:
    try:
        spec = msgspec.convert(entry.spec, NodeGroupSpec)
    except msgspec.ValidationError as error:
        problems.add(*join_problem_path(path, describe_problem(error, value=entry.spec)))
        return
    for name, size, most in (("max", spec.max, MOST), ("target", spec.target, MOST_NODES)):
        if size > most:
            problems.add(f"{path}.{name}", f"must be at most {most}, is {size}")
    template = spec.template
    for name, amount in template.capacity.items():
        where = join_path(f"{path}.template.capacity", name)
        _check_amount(amount, where, problems, positive=name in {"cpu", "memory", "pods"})
    if template.capacity and not spec.machine_type:
        for name in ("cpu", "memory"):
            if name not in template.capacity:
                problems.add(f"{path}.template.capacity", f"{name} is missing: no pod could run there")
    for name, amount in template.allocatable.items():
        where = join_path(f"{path}.template.allocatable", name)
        _check_amount(amount, where, problems)
        _check_within(amount, template.capacity.get(name), where, problems)
    _check_price(spec.price, f"{path}.price", problems)
    _check_labels(template.labels, f"{path}.template.labels", problems)
    _check_taints(template.taints, f"{path}.template.taints", problems)
    for zone in spec.zones:
        _add(find_label_value_problems(zone), f"{path}.zone", zone, problems)


def _check_taints(taints: Sequence[Taint], path: str, problems: Problems) -> None:
    for index, taint in enumerate(taints):
        where = f"{path}[{index}]"
        _add(find_qualified_name_problems(taint.key), f"{where}.key", taint.key, problems)
        _add(find_label_value_problems(taint.value), f"{where}.value", taint.value, problems)
        if taint.effect not in _EFFECTS:
            problems.add(f"{where}.effect", f"must be one of {', '.join(_EFFECTS)}, is {describe_value(taint.effect)}")


def _check_amount(amount: Any, path: str, problems: Problems, *, positive: bool = False) -> None:
    try:
        quantity = Quantity.parse(amount)
    except InvalidInput as error:
        problems.add(path, f"must be a quantity such as 4, 500m or 16Gi: {error.problem}")
        return
    if quantity.nano < 0 or (positive and not quantity.nano):
        problems.add(path, f"must be {'more than' if positive else 'at least'} 0, is {describe_value(amount)}")
    elif quantity.round_up() > _LARGEST:
        problems.add(path, f"is more than any machine has: {describe_value(amount)}")


def _check_within(amount: Any, whole: Any, path: str, problems: Problems) -> None:
    """Pods may use at most what the machine has."""
    if whole is None:
        return
    try:
        if Quantity.parse(amount).nano > Quantity.parse(whole).nano:
            problems.add(path, f"is more than the machine has: {describe_value(amount)} of {describe_value(whole)}")
    except InvalidInput:
        return  # reported already


def _check_price(price: float | None, path: str, problems: Problems) -> None:
    if price is not None and price > _MOST_PRICE:
        problems.add(path, f"must be at most {_MOST_PRICE:.0f} an hour, is {describe_value(price)}")


# ---- pods


def _check_pods(entry: PodEntry, path: str, problems: Problems) -> None:
    if entry.count > MOST:
        problems.add(f"{path}.count", f"must be at most {MOST}, is {describe_value(entry.count)}")
    _add(find_subdomain_problems(entry.name), f"{path}.name", entry.name, problems)
    _add(find_dns1123_label_problems(entry.namespace), f"{path}.namespace", entry.namespace, problems)
    metadata, spec = (_get_mapping(entry.template.get(part)) for part in ("metadata", "spec"))
    if labels := _get_mapping(metadata.get("labels")):
        _check_labels(labels, f"{path}.template.metadata.labels", problems)
    if selector := _get_mapping(spec.get("nodeSelector")):
        _check_labels(selector, f"{path}.template.spec.nodeSelector", problems)
    for index, toleration in enumerate(_as_list(spec.get("tolerations"))):
        _check_toleration(toleration, f"{path}.template.spec.tolerations[{index}]", problems)
    for index, constraint in enumerate(_as_list(spec.get("topologySpreadConstraints"))):
        _check_spread(constraint, f"{path}.template.spec.topologySpreadConstraints[{index}]", problems)
    if spec.get("containers") in (None, []):
        problems.add(f"{path}.template.spec.containers", "must have one container at least")
    for where in _find_terms_without_topology(_get_mapping(spec.get("affinity"))):
        problems.add(f"{path}.template.spec.affinity.{where}.topologyKey", "is missing")
    for where, amount in _iterate_amounts(spec):
        if _is_absurd(amount):
            problems.add(f"{path}.template.spec.{where}", f"is more than any machine has: {describe_value(amount)}")


def _iterate_amounts(spec: Json) -> Iterator[tuple[str, Any]]:
    """Requests and limits of all containers, with their paths."""
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(_as_list(spec.get(kind))):
            yield from _list_amounts(container.get("resources"), f"{kind}[{index}].resources")
    yield from _list_amounts(spec.get("resources"), "resources")
    yield from ((join_path("overhead", name), amount) for name, amount in _get_mapping(spec.get("overhead")).items())


def _list_amounts(resources: Any, path: str) -> Iterator[tuple[str, Any]]:
    for part in ("requests", "limits"):
        for name, amount in _get_mapping(_get_mapping(resources).get(part)).items():
            yield join_path(f"{path}.{part}", name), amount


@functools.lru_cache(maxsize=4096, typed=True)
def _is_large(amount: str | float) -> bool:
    try:
        return Quantity.parse(amount).round_up() > _LARGEST
    except InvalidInput:
        return False  # the plan says what is wrong with it


def _is_absurd(amount: Any) -> bool:
    if isinstance(amount, str):
        return not _ORDINARY.fullmatch(amount) and _is_large(amount)
    return isinstance(amount, int | float) and not isinstance(amount, bool) and _is_large(amount)


def _find_terms_without_topology(affinity: Json) -> Iterator[str]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    for kind in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate(_as_list(_get_mapping(affinity.get(kind)).get(required))):
            if not term.get("topologyKey"):
                yield f"{kind}.{required}[{index}]"


def _check_toleration(toleration: Json, path: str, problems: Problems) -> None:
    operator, effect = toleration.get("operator") or "Equal", toleration.get("effect") or ""
    if operator not in ("Equal", "Exists"):  # a tuple: what people write need not be hashable
        problems.add(f"{path}.operator", f"must be one of Equal, Exists, is {describe_value(operator)}")
    elif operator == "Equal" and not toleration.get("key"):
        problems.add(f"{path}.operator", "must be Exists when key is empty")
    if effect and effect not in _EFFECTS:
        problems.add(f"{path}.effect", f"must be one of {', '.join(_EFFECTS)}, is {describe_value(effect)}")


def _check_spread(constraint: Json, path: str, problems: Problems) -> None:
    skew, key, how = constraint.get("maxSkew"), constraint.get("topologyKey"), constraint.get("whenUnsatisfiable")
    if isinstance(skew, int) and skew < 1:
        problems.add(f"{path}.maxSkew", f"must be a whole number of at least 1, is {describe_value(skew)}")
    if not key:
        problems.add(f"{path}.topologyKey", "is missing")
    if how is not None and how not in _CONTENT_OF_SPREAD:
        message = f"must be one of {', '.join(_CONTENT_OF_SPREAD)}, is {describe_value(how)}"
        problems.add(f"{path}.whenUnsatisfiable", message)


def _check_labels(labels: Mapping[str, Any], path: str, problems: Problems) -> None:
    """Texts only; what is of another type, decoding complains about."""
    for key, value in labels.items():
        if found := _find_label_problems(key, value if isinstance(value, str) else ""):
            problems.add(join_path(path, key[:64]), found)


@functools.lru_cache(maxsize=4096)
def _find_label_problems(key: str, value: str) -> str:
    found = [f"the key {problem}" for problem in find_qualified_name_problems(key)]
    return "; ".join(found + [f"the value {problem}" for problem in find_label_value_problems(value)])


def _add(found: Sequence[str], path: str, value: str, problems: Problems) -> None:
    if found:
        problems.add(path, f"{describe_value(value)}: {'; '.join(found)}")


def _get_mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
