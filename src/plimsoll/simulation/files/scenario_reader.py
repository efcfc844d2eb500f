"""Scenario files: YAML or JSON in, a `Scenario` out, or every mistake at once with the path of its field.

What needs a server to be judged (whether a manifest is valid) is not judged here, but when the world is built.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput, UnreadableDocument
from plimsoll.core.quantity import Quantity
from plimsoll.core.value_parsing import HIGHEST_PRICE
from plimsoll.objects.api.simulated_cloud import CAPACITY_TYPE_LABEL, CapacityType
from plimsoll.objects.codec.manifests import read_documents
from plimsoll.runtime.virtual_run import DEFAULT_START
from plimsoll.simulation.document import DocumentValue, Problems, describe_value
from plimsoll.simulation.files.fleet_entries import read_fleet
from plimsoll.simulation.files.kafka_entries import read_kafka_entries
from plimsoll.simulation.files.manifests import judge_template, read_checked_manifest, read_manifest
from plimsoll.simulation.files.steps import check_options, parse_step, read_step_options
from plimsoll.simulation.scenario import GroupEntry, Json, PodEntry, Scenario, WorldKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_FIELDS: Final = (
    "name",
    "description",
    "start",
    "seed",
    "world",
    "options",
    "machineTypes",
    "nodeGroups",
    "pods",
    "objects",
    "kafka",
    "fleet",
    "steps",
)
_BESIDE_FLEET: Final = frozenset({"name", "description", "start", "seed", "fleet", "steps"})
"""The other fields describe a single cluster."""
_TYPE_FIELDS: Final = (
    "name",
    "cpu",
    "memory",
    "pods",
    "gpu",
    "price",
    "labels",
    "zones",
    "allocatable",
    "currency",
    "family",
    "arch",
    "capacityType",
    "source",
    "date",
)
_GROUP_FIELDS: Final = (
    "id",
    "min",
    "max",
    "target",
    "machineType",
    "template",
    "price",
    "currency",
    "zone",
    "zones",
    "exist",
    "autoprovisioned",
    "atomic",
    "zeroOrMax",
    "autoscaled",
    "bootSeconds",
    "capacityType",
)
_DEFAULT_PODS: Final = 110
_COUNTED: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_NEEDED: Final = ("cpu", "memory")
"""A machine without one of them runs nothing."""


def read_scenario(data: bytes, *, source: str) -> Scenario:
    """Raises `InvalidDocument` with all mistakes, or `UnreadableDocument`."""
    documents = [document for _, document in read_documents(data, source=source, letters_are_text=True)]
    if len(documents) != 1:
        raise UnreadableDocument(f"holds {len(documents)} documents, a scenario is one", path=source)
    if not isinstance(documents[0], dict):
        raise UnreadableDocument(f"a scenario is a map of fields, this is {describe_value(documents[0])}", path=source)
    problems = Problems()
    given = DocumentValue(documents[0], "", problems)
    scenario = _read_scenario_document(given, manifest=read_checked_manifest)
    check_options(given.get_place("options"), scenario.options)
    _check_objects_once(scenario, given)
    _check_pods_once(scenario, given)
    problems.raise_if_any()
    return scenario


def read_scenario_dump(document: Json) -> Scenario:
    """Read parsed dumps, for planning: only the form of objects is checked."""
    problems = Problems()
    scenario = _read_scenario_document(DocumentValue(document, "", problems), manifest=read_manifest)
    problems.raise_if_any()
    return scenario


def _read_scenario_document(given: DocumentValue, *, manifest: Callable[[DocumentValue], Json]) -> Scenario:
    fields = given.read_fields(_FIELDS)
    has_fleet = "fleet" in fields
    for name in sorted(fields.keys() - _BESIDE_FLEET) if has_fleet else ():
        fields[name].add_problem("is of a single cluster, and a fleet makes its clusters")
    world = WorldKind(fields["world"].read_choice(*WorldKind)) if "world" in fields else WorldKind.STEPPED
    types = tuple(_read_machine_type(item) for item in _read_items(fields, "machineTypes"))
    groups = tuple(_read_group(item, {type_["name"] for type_ in types}) for item in _read_items(fields, "nodeGroups"))
    _check_unique([type_["name"] for type_ in types], fields.get("machineTypes"), "name")
    _check_unique([group_entry.id for group_entry in groups], fields.get("nodeGroups"), "id")
    start = _start_in(fields.get("start"))
    return Scenario(
        start=start,
        seed=_read_seed(fields.get("seed")),
        world=world,
        options=read_step_options(fields["options"]) if "options" in fields else {},
        machine_types=types,
        node_groups=groups,
        pods=tuple(_read_pods(item) for item in _read_items(fields, "pods")),
        objects=tuple(manifest(item) for item in _read_items(fields, "objects")),
        kafka=read_kafka_entries(fields["kafka"]) if "kafka" in fields else (),
        fleet=read_fleet(fields["fleet"], start) if has_fleet else None,
        steps=tuple(
            step
            for item in _read_items(fields, "steps")
            if (step := parse_step(item, world, has_fleet=has_fleet)) is not None
        ),
    )


def _read_items(fields: dict[str, DocumentValue], name: str) -> list[DocumentValue]:
    return list(fields[name].read_items()) if name in fields else []


def _start_in(given: DocumentValue | None) -> datetime:
    return DEFAULT_START if given is None else given.read_time()


def _read_seed(given: DocumentValue | None) -> int | str:
    if given is None:
        return 0
    if isinstance(given.value, str) or (isinstance(given.value, int) and not isinstance(given.value, bool)):
        return given.value
    given.add_problem(f"must be a whole number or a text, is {describe_value(given.value)}")
    return 0


def _check_unique(names: list[str], given: DocumentValue | None, field: str) -> None:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if given is not None and name and name in seen:
            given.get_item_field(index, field).add_problem(f"{name} occurs twice")
        seen.add(name)


def _check_objects_once(scenario: Scenario, given: DocumentValue) -> None:
    """Report objects that are given twice."""
    seen: dict[tuple[str, ...], int] = {}
    for index, body in enumerate(scenario.objects):
        identity = _get_identity(body)
        if identity and seen.setdefault(identity, index) != index:
            kind, namespace, name = identity[1:]
            message = (
                f"{kind} {namespace}/{name} is objects[{seen[identity]}] already; what changes on the way is a step"
            )
            given.get_place(f"objects[{index}]").add_problem(message)


def _check_pods_once(scenario: Scenario, given: DocumentValue) -> None:
    seen: dict[tuple[str, str], int] = {}
    for index, entry in enumerate(scenario.pods):
        first = seen.setdefault((entry.namespace, entry.name), index)
        if entry.name and first != index:
            message = f"{entry.namespace}/{entry.name} is pods[{first}] already; give it another name"
            given.get_place(f"pods[{index}].name").add_problem(message)
        judge_template(given.get_place(f"pods[{index}].template"), entry.template)
    for index, body in enumerate(scenario.objects):
        group, kind, namespace, name = _get_identity(body) or ("", "", "", "")
        owner, _, number = name.rpartition("-")
        made_by = seen.get((namespace, owner)) if (group, kind) == ("", "Pod") and _COUNTED.fullmatch(number) else None
        if made_by is not None and int(number) < scenario.pods[made_by].count:
            given.get_place(f"objects[{index}].metadata.name").add_problem(
                f"{namespace}/{name} is a pod of pods[{made_by}] already"
            )


def _get_identity(body: Json) -> tuple[str, ...]:
    """Group, kind, namespace and name; empty if it has none."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    names = (body.get("apiVersion"), body.get("kind"), metadata.get("namespace") or "default", metadata.get("name"))
    if not all(isinstance(name, str) and name for name in names):
        return ()
    api_version, *others = map(str, names)
    return (api_version.rpartition("/")[0], *others)


# ---- machine types and node groups


def _read_machine_type(given: DocumentValue) -> Json:
    fields = given.read_fields(_TYPE_FIELDS)
    for name in ("name", "cpu", "memory"):
        if name not in fields:
            given.add_problem(f"{name} is missing")
    body: Json = {name: field.value for name, field in fields.items()}
    body["name"] = fields["name"].read_text() if "name" in fields else ""
    for name in ("cpu", "memory"):
        body[name] = str(_read_amount(fields[name], positive=True)) if name in fields else "0"
    if "allocatable" in fields:
        parts = fields["allocatable"].read_members()
        body["allocatable"] = {
            name: str(_read_amount(amount, positive=name in _NEEDED)) for name, amount in parts.items()
        }
    if "pods" in fields:
        body["pods"] = fields["pods"].read_whole()
    if "price" in fields:
        body["price"] = fields["price"].read_number(most=HIGHEST_PRICE)
    if "labels" in fields:
        body["labels"] = fields["labels"].read_texts()
    if "gpu" in fields:
        body["gpu"] = {name: field.read_whole() for name, field in fields["gpu"].read_members().items()}
    if "zones" in fields:
        body["zones"] = [field.read_text() for field in fields["zones"].read_items()]
    return body


def _read_group(given: DocumentValue, types: set[str]) -> GroupEntry:
    fields = given.read_fields(_GROUP_FIELDS)
    if "id" not in fields:
        given.add_problem("id is missing")
    sizes: Json = {name: fields[name].read_whole() for name in ("min", "max", "target") if name in fields}
    spec: Json = {"min": 0, "target": 0, "bootSeconds": 0.0, **sizes}
    spec.setdefault("max", max(spec["min"], spec["target"]))
    _check_sizes(given, spec)
    for name in ("autoprovisioned", "atomic", "zeroOrMax", "autoscaled"):
        if name in fields:
            spec[name] = fields[name].read_flag()
    for name in ("price", "bootSeconds"):
        if name in fields:
            spec[name] = (
                fields[name].read_seconds() if name == "bootSeconds" else fields[name].read_number(most=HIGHEST_PRICE)
            )
    if "currency" in fields:
        spec["currency"] = fields["currency"].read_text()
    if zones := _read_zones(fields):
        spec["zones"] = zones
    _read_shape(given, fields, spec, types)
    if "capacityType" in fields:
        _read_capacity_type(fields["capacityType"], spec)
    exists = fields["exist"].read_flag() if "exist" in fields else True
    return GroupEntry(id=fields["id"].read_text() if "id" in fields else "", spec=spec, exists=exists)


def _check_sizes(given: DocumentValue, spec: Json) -> None:
    if spec["min"] > spec["max"]:
        given.add_problem(f"min {spec['min']} is above max {spec['max']}")
    if spec["target"] > spec["max"]:
        given.add_problem(f"target {spec['target']} is above max {spec['max']}")


def _read_zones(fields: dict[str, DocumentValue]) -> list[str]:
    one = [fields["zone"].read_text()] if "zone" in fields else []
    return one + ([given.read_text() for given in fields["zones"].read_items()] if "zones" in fields else [])


def _read_shape(given: DocumentValue, fields: dict[str, DocumentValue], spec: Json, types: set[str]) -> None:
    if "machineType" in fields:
        spec["machineType"] = fields["machineType"].read_text()
        if types and spec["machineType"] not in types:
            fields["machineType"].add_problem(f"{spec['machineType']} is not among machineTypes")
    elif "template" not in fields:
        given.add_problem("says neither machineType nor template: what are its machines?")
    if "template" in fields:
        parts = fields["template"].read_fields(("capacity", "allocatable", "labels", "taints"))
        spec["template"] = {name: part.value for name, part in parts.items()}
        for name in ("capacity", "allocatable"):
            if name in parts:
                found = parts[name].read_members()
                amounts = {key: str(_read_amount(amount, positive=key in _NEEDED)) for key, amount in found.items()}
                spec["template"][name] = amounts
        if "labels" in parts:
            spec["template"]["labels"] = parts["labels"].read_texts()
        if "capacity" in parts and "machineType" not in fields:
            spec["template"]["capacity"].setdefault("pods", str(_DEFAULT_PODS))
        if "machineType" not in fields and "capacity" not in parts:
            fields["template"].add_problem("without machineType it must have a capacity")


def _read_capacity_type(given: DocumentValue, spec: Json) -> None:
    """A group's machines say of themselves, by a label, whether they may be taken back."""
    kind = given.read_text()
    if kind not in tuple(CapacityType):
        given.add_problem(f"must be one of {', '.join(CapacityType)}, is {describe_value(kind)}")
    template = spec.setdefault("template", {})
    template["labels"] = {**(template.get("labels") or {}), CAPACITY_TYPE_LABEL: kind}


def _read_amount(given: DocumentValue, *, positive: bool = False) -> Any:
    try:
        amount = Quantity.parse(given.value)
    except (InvalidInput, TypeError, AttributeError):
        given.add_problem(f"must be a quantity such as 4, 500m or 16Gi, is {describe_value(given.value)}")
        return "0"
    if amount.nano < 0 or (positive and not amount.nano):
        given.add_problem(f"must be {'more than' if positive else 'at least'} 0, is {describe_value(given.value)}")
    return given.value


# ---- pods


def _read_pods(given: DocumentValue) -> PodEntry:
    fields = given.read_fields(("name", "namespace", "count", "template"))
    for name in ("name", "template"):
        if name not in fields:
            given.add_problem(f"{name} is missing")
    template: Json = {}
    if "template" in fields:
        parts = fields["template"].read_fields(("metadata", "spec"))
        template = {name: part.value for name, part in parts.items() if part.read_members() or part.value == {}}
        if "spec" not in parts:
            fields["template"].add_problem("spec is missing")
    return PodEntry(
        name=fields["name"].read_text() if "name" in fields else "",
        namespace=fields["namespace"].read_text() if "namespace" in fields else "default",
        count=fields["count"].read_whole() if "count" in fields else 1,
        template=template,
    )
