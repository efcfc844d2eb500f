"""Catalogues of machine types: JSON files, shipped with the package or provided by users.

`catalogues/catalogue.schema.json` is the contract; the schema of `Cloud.spec.machineTypes` is the same. What a schema
cannot express (valid quantities, unique names) is checked here. Every error names its field: `machineTypes[3].price`.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput, UnreadableDocument
from plimsoll.core.quantity import Quantity
from plimsoll.core.value_parsing import HIGHEST_PRICE
from plimsoll.core.values import Value
from plimsoll.objects.api.simulated_cloud import MachineType
from plimsoll.objects.schema.admission.pruning import prune
from plimsoll.objects.schema.admission.validation import ValueValidator
from plimsoll.objects.schema.structural import parse_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.objects.api.simulated_cloud import CloudSpec
    from plimsoll.objects.schema.structural import StructuralSchema

_FOLDER: Final = files("plimsoll.local.cloud").joinpath("catalogues")
_SCHEMA: Final = "catalogue.schema.json"
_INHERITED: Final = ("currency", "source", "date")


class Catalogue(Value):
    """Machine types under a name."""

    name: str
    machine_types: tuple[MachineType, ...]


class SoldMachineTypes(Value):
    """What a cloud sells, by name, and what in its description could not be used."""

    machine_types: dict[str, MachineType]
    problems: tuple[str, ...] = ()


def list_shipped_names() -> tuple[str, ...]:
    names = (file.name for file in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and name != _SCHEMA))


@functools.cache
def load_shipped_catalogue(name: str) -> Catalogue:
    """A catalogue by name; raises InvalidInput for one that is not shipped."""
    if name not in list_shipped_names():
        raise InvalidInput(
            f"there is no catalogue {name!r}; shipped are {', '.join(list_shipped_names())}", path="name"
        )
    return read_catalogue(_FOLDER.joinpath(f"{name}.json").read_bytes(), source=f"{name}.json")


def read_catalogue(data: bytes, *, source: str) -> Catalogue:
    """Parse a catalogue; raises InvalidInput with the path of the first field that is wrong."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableDocument(f"is not JSON: {error}", path=source) from error
    schema = load_catalogue_schema()
    for wrong in ValueValidator(schema).validate(document):
        raise InvalidInput(wrong.message, path=wrong.path or source)
    for unknown in prune(document, schema, is_resource=False):
        raise InvalidInput("is not a field of a catalogue", path=unknown)
    inherited = {field: document[field] for field in _INHERITED if field in document}
    types = [msgspec.convert({**inherited, **type_}, MachineType) for type_ in document["machineTypes"]]
    for mistake in validate_machine_types(types):
        raise mistake
    return Catalogue(name=document["name"], machine_types=tuple(types))


@functools.cache
def load_catalogue_schema() -> StructuralSchema:
    document: dict[str, Any] = msgspec.json.decode(_FOLDER.joinpath(_SCHEMA).read_bytes())
    return parse_schema({name: part for name, part in document.items() if not name.startswith("$")}, "")


def validate_machine_types(types: Iterable[MachineType]) -> list[InvalidInput]:
    """What the schema cannot see."""
    errors: list[InvalidInput] = []
    names: set[str] = set()
    for position, machine_type in enumerate(types):
        path = f"machineTypes[{position}]"
        if machine_type.name in names:
            errors.append(InvalidInput(f"{machine_type.name!r} is there twice", path=f"{path}.name"))
        names.add(machine_type.name)
        amounts = {f"{path}.cpu": machine_type.cpu, f"{path}.memory": machine_type.memory}
        amounts |= {f"{path}.allocatable.{resource}": amount for resource, amount in machine_type.allocatable.items()}
        errors += _validate_amounts(amounts)
        if machine_type.price is not None and not 0 <= machine_type.price <= HIGHEST_PRICE:
            problem = f"{machine_type.price:g} is out of range; the most is {HIGHEST_PRICE:g} per hour"
            errors.append(InvalidInput(problem, path=f"{path}.price"))
    return errors


def list_sold_machine_types(spec: CloudSpec) -> SoldMachineTypes:
    """All types of the cloud: those of its catalogues, and its own, which go before. What is wrong is left out."""
    offered: dict[str, MachineType] = {}
    problems: list[str] = []
    for position, name in enumerate(spec.catalogues):
        try:
            offered |= {
                machine_type_.name: machine_type_ for machine_type_ in load_shipped_catalogue(name).machine_types
            }
        except InvalidInput as error:
            problems.append(f"spec.catalogues[{position}]: {error.problem}")
    for position, machine_type in enumerate(spec.machine_types):
        errors = validate_machine_types([machine_type])
        problems += (f"spec.{error}".replace("machineTypes[0]", f"machineTypes[{position}]") for error in errors)
        if not errors:
            offered[machine_type.name] = machine_type
    return SoldMachineTypes(machine_types=offered, problems=tuple(problems))


def _validate_amounts(amounts: Mapping[str, str | float]) -> list[InvalidInput]:
    errors: list[InvalidInput] = []
    for path, amount in amounts.items():
        try:
            if Quantity.parse(amount).nano <= 0:
                errors.append(InvalidInput(f"must be more than 0, is {amount}", path=path))
        except InvalidInput as error:
            errors.append(error.with_parent(path))
    return errors
