"""What an object says of itself as a node group: bounds, options, whether auto-provisioning made it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.values import Value
from plimsoll.nodes.flags import Flag, parse_duration_s, parse_number, parse_switch, problem_of
from plimsoll.nodes.planning.node_templates import AUTOPROVISIONED_LABEL
from plimsoll.nodes.providers.clusterapi.keys import NAP_MAX_SIZE, NAP_TEMPLATE
from plimsoll.objects.cluster_api import MachineDeployment

if TYPE_CHECKING:
    from plimsoll.nodes.providers.clusterapi.keys import Keys
    from plimsoll.nodes.providers.values import GroupOptions
    from plimsoll.objects.cluster_api import Scalable

_OWNED_BY: Final = "MachineDeployment"


class Sizes(Value):
    """Of a group. Groups of auto-provisioning carry no marks of autoscaling: those are for people's own."""

    least: int
    most: int
    autoprovisioned: bool = False


class NotAGroup(Value):
    """`problem` is empty where nobody meant it to be one."""

    problem: str = ""


_NOT_MEANT: Final = NotAGroup()


def group_id(found: Scalable) -> str:
    return f"{found.kind_name()}/{found.metadata.namespace}/{found.metadata.name}"


def is_nap_template(found: Scalable) -> bool:
    return isinstance(found, MachineDeployment) and found.metadata.annotations.get(NAP_TEMPLATE) == "true"


def sizes_of(found: Scalable, keys: Keys) -> Sizes | NotAGroup:
    """Whether the object is a group, and between which sizes it is kept."""
    written = found.metadata.annotations
    is_owned = any(owner.kind == _OWNED_BY for owner in found.metadata.owner_references)
    if is_owned or keys.paused in written or is_nap_template(found) or found.metadata.deletion_timestamp is not None:
        return _NOT_MEANT
    made = written.get(AUTOPROVISIONED_LABEL) == "true" and NAP_MAX_SIZE in written
    least, most = ("0", written[NAP_MAX_SIZE]) if made else (written.get(keys.min_size), written.get(keys.max_size))
    if least is None or most is None:
        return _NOT_MEANT
    for name, text in ((keys.min_size, least), (keys.max_size, most)):
        if not (text.isascii() and text.isdigit()):
            return NotAGroup(problem=f"{name}: {text!r} is not a whole number")
    if int(most) < int(least):
        return NotAGroup(problem=f"its greatest size {most} is below its least, {least}")
    if int(most) == 0:
        return _NOT_MEANT
    if found.spec.replicas is None:
        return NotAGroup(problem="spec.replicas is not set")
    return Sizes(least=int(least), most=int(most), autoprovisioned=made)


# ---- options of one group


def _ratio(value: object) -> float:
    return parse_number(value, most=1.0)


_OPTIONS: Final = (
    ("scaledownutilizationthreshold", "utilization_threshold", "number", _ratio),
    ("scaledowngpuutilizationthreshold", "gpu_utilization_threshold", "number", _ratio),
    ("scaledownunneededtime", "unneeded_s", "duration", parse_duration_s),
    ("scaledownunreadytime", "unready_s", "duration", parse_duration_s),
    ("maxnodeprovisiontime", "provision_s", "duration", parse_duration_s),
    ("maxnodestartuptime", "startup_s", "duration", parse_duration_s),
    ("ignoredaemonsetsutilization", "ignore_daemon_sets", "true or false", parse_switch),
)


def options_of(found: Scalable, defaults: GroupOptions, keys: Keys) -> tuple[GroupOptions, tuple[str, ...]]:
    """The options with what the annotations change, and what is wrong with those that change nothing."""
    changed: dict[str, float | bool] = {}
    problems: list[str] = []
    for name, field, kind, parse in _OPTIONS:
        text = found.metadata.annotations.get(f"{keys.options}{name}")
        if text is None:
            continue
        problem = problem_of(Flag(name=name, kind=kind, default=None, parse=parse), text)
        if problem is None:
            changed[field] = parse(text)
        else:
            problems.append(f"{keys.options}{name}: {problem}")
    return (structs.replace(defaults, **changed) if changed else defaults), tuple(problems)
