"""Validates a value by its schema: the checks of JSON Schema, with the messages of the real server's validator.

A `ValueValidator` is built once per schema and reused for every object; patterns and formats are looked up when built.
It never changes a value and never raises. With a `Correlation`, errors in unchanged parts of an update are dropped
(ratcheting). Lists of type set and map, embedded resources and CEL rules have their own modules.

Some messages are odd (`must be of type int32: ""`, `multipleOf` of integers); they are those of the real server.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema import go_text, regular_expressions
from plimsoll.objects.schema.admission import formats
from plimsoll.objects.schema.field_errors import FieldError, child
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from plimsoll.objects.schema.rules.correlation import Correlation
    from plimsoll.objects.schema.structural import Number, StructuralSchema

_JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_GO_FORMATS = {int: "int64", float: "float64"}
_NUMERIC_FORMATS = {"integer": {"int32", "int64"}, "number": {"float", "double"}}
# Beyond these, a float64 cannot represent every integer; JSON Schema does not count such a value as an integer.
_JSON_INTEGER_LIMIT = 2**53 - 1


class _Findings:
    """The result of a validation. `matches` counts passed checks: the closest of failed alternatives is reported."""

    __slots__ = ("errors", "matches")

    def __init__(self) -> None:
        self.errors: list[FieldError] = []
        self.matches = 0

    def merge(self, other: _Findings) -> None:
        self.errors += other.errors
        self.matches += other.matches


class _Place:
    """The position of a value: its name in messages (`spec.count`), its parent field, and its old value.

    The root's name is empty. Its field is not, for the status of a resource and for defaults.
    """

    __slots__ = ("before", "name", "root")

    def __init__(self, name: str, root: str, before: Correlation | None) -> None:
        self.name = name
        self.root = root
        self.before = before

    @property
    def field(self) -> str:
        return child(self.root, self.name) if self.name else self.root

    def enter_item(self, position: int) -> _Place:
        before = self.before.index(position) if self.before else None
        return _Place(f"{self.name}[{position}]", self.root, before)

    def enter_property(self, key: str) -> _Place:
        # The old apiVersion and kind are unknown: both states were converted to the same version.
        hidden = not self.name and not self.root and key in {"apiVersion", "kind"}
        before = self.before.key(key) if self.before and not hidden else None
        return _Place(f"{self.name}.{key}" if self.name else key, self.root, before)


class ValueValidator:
    """The checks of one schema node and of those below it."""

    def __init__(self, schema: StructuralSchema) -> None:
        self._schema = schema
        self._types = ("integer", "string") if schema.int_or_string else (schema.type,) if schema.type else ()
        self._format = _find_enforced_format(schema)
        self._has_format = formats.find_checker(self._format) if self._format else None
        self._properties = {
            name: ValueValidator(structural_schema) for name, structural_schema in schema.properties.items()
        }
        self._items = ValueValidator(schema.items) if schema.items else None
        additional = schema.additional_properties
        self._additional = ValueValidator(additional) if additional else None
        self._all_of = [ValueValidator(structural_schema) for structural_schema in schema.all_of]
        self._any_of = [ValueValidator(structural_schema) for structural_schema in schema.any_of]
        self._one_of = [ValueValidator(structural_schema) for structural_schema in schema.one_of]
        self._not = ValueValidator(schema.not_) if schema.not_ else None
        self._has_junctors = bool(self._all_of or self._any_of or self._one_of or self._not)

    def validate(self, value: Any, *, path: str = "", correlation: Correlation | None = None) -> list[FieldError]:
        """All errors of a value that was taken over; errors without a field are reported for `path`."""
        found = self.judge(value, _Place("", path, correlation))
        return list({error.text: error for error in found.errors}.values())

    def judge(self, value: Any, place: _Place) -> _Findings:
        """Like `inspect`, but errors in unchanged parts of an update are tolerated."""
        found = self.inspect(value, place)
        if found.errors and place.before is not None and place.before.is_unchanged():
            found.errors = []
        return found

    def inspect(self, value: Any, place: _Place) -> _Findings:
        found = _Findings()
        if self._types or self._format:
            problem = self._find_type_problem(value, place)
            found.matches += 1 if problem else 2
            found.errors += [problem] if problem else []
        if value is None:
            self._check_enum(value, place, found)
            return found
        if self._has_junctors:
            self._check_junctors(value, place, found)
        found.matches += 2
        if isinstance(value, str):
            self._check_string(value, place, found)
        elif isinstance(value, list):
            self._check_list(value, place, found)
        elif not isinstance(value, (bool, dict)):
            self._check_number(value, place, found)
        self._check_enum(value, place, found)
        if isinstance(value, dict):
            self._check_object(value, place, found)
        found.matches += 2
        return found

    def _find_type_problem(self, value: Any, place: _Place) -> FieldError | None:
        if value is None:
            if self._types and not self._schema.nullable:
                return _wrong_type(place, ",".join(self._types), "null")
            return None
        type_ = _JSON_TYPES[type(value)]
        fits = type_ in self._types or _fits_number(value, self._types)
        if self._format and not isinstance(value, (str, list)) and not fits:
            go_format = _GO_FORMATS.get(type(value), "")
            return None if go_format == self._format else _wrong_type(place, self._format, go_format)
        is_numeric = "number" in self._types or "integer" in self._types
        if not is_numeric and self._format and isinstance(value, (str, list)):
            return None
        return None if fits or not self._types else _wrong_type(place, ",".join(self._types), type_)

    def _check_junctors(self, value: Any, place: _Place, found: _Findings) -> None:
        if self._any_of:
            self._check_any_of([validator.inspect(value, place) for validator in self._any_of], place, found)
        if self._one_of:
            self._check_one_of([validator.inspect(value, place) for validator in self._one_of], place, found)
        if self._all_of:
            results = [validator.inspect(value, place) for validator in self._all_of]
            for result in results:
                found.merge(result)
            failed = sum(bool(result.errors) for result in results)
            if failed:
                none = ". None validated" if failed == len(results) else ""
                found.errors.append(_build_error_of_whole(place, f"must validate all the schemas (allOf){none}"))
        if self._not is not None and not self._not.inspect(value, place).errors:
            found.errors.append(_build_error_of_whole(place, "must not validate the schema (not)"))

    @staticmethod
    def _check_any_of(results: list[_Findings], place: _Place, found: _Findings) -> None:
        fitting = next((result for result in results if not result.errors), None)
        if fitting is None:
            found.errors.append(_build_error_of_whole(place, "must validate at least one schema (anyOf)"))
        found.merge(fitting or _choose_closest(results))

    @staticmethod
    def _check_one_of(results: list[_Findings], place: _Place, found: _Findings) -> None:
        fitting = [result for result in results if not result.errors]
        if len(fitting) == 1:
            found.merge(fitting[0])
            return
        count = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
        found.errors.append(_build_error_of_whole(place, f"must validate one and only one schema (oneOf). {count}"))
        if not fitting:
            found.merge(_choose_closest(results))

    def _check_string(self, value: str, place: _Place, found: _Findings) -> None:
        schema = self._schema
        if schema.max_length is not None and len(value) > schema.max_length:
            found.errors.append(fields.too_long(place.field, schema.max_length))
        elif schema.min_length is not None and len(value) < schema.min_length:
            found.errors.append(_invalid(place, value, f"should be at least {schema.min_length} chars long"))
        elif schema.pattern and not _matches(schema.pattern, value):
            found.errors.append(_invalid(place, value, f"should match '{schema.pattern}'"))
        if self._has_format is not None and not self._has_format(value):
            found.errors.append(_wrong_type(place, self._format, value))

    def _check_number(self, value: Number, place: _Place, found: _Findings) -> None:
        schema = self._schema
        if schema.multiple_of is not None and (error := _find_multiple_error(value, schema.multiple_of, place)):
            found.errors.append(error)
        if schema.maximum is not None:
            limit = _convert_limit(schema.maximum, value)
            if value > limit or (schema.exclusive_maximum and value == limit):
                words = "should be less than" if schema.exclusive_maximum else "should be less than or equal to"
                found.errors.append(_invalid(place, value, f"{words} {go_text.format_number(limit)}"))
        if schema.minimum is not None:
            limit = _convert_limit(schema.minimum, value)
            if value < limit or (schema.exclusive_minimum and value == limit):
                words = "should be greater than" if schema.exclusive_minimum else "should be greater than or equal to"
                found.errors.append(_invalid(place, value, f"{words} {go_text.format_number(limit)}"))

    def _check_list(self, value: list[Any], place: _Place, found: _Findings) -> None:
        schema = self._schema
        if self._items is not None:
            for position, item in enumerate(value):
                found.merge(self._items.judge(item, place.enter_item(position)))
        if schema.min_items is not None and len(value) < schema.min_items:
            found.errors.append(_invalid(place, len(value), f"should have at least {schema.min_items} items"))
        if schema.max_items is not None and len(value) > schema.max_items:
            found.errors.append(fields.too_many(place.field, len(value), schema.max_items))

    def _check_enum(self, value: Any, place: _Place, found: _Findings) -> None:
        allowed = self._schema.enum
        if not allowed or (value is not None and any(is_same(value, choice) for choice in allowed)):
            return
        texts = [choice if isinstance(choice, str) else go_text.as_json(choice) for choice in allowed]
        found.errors.append(fields.not_supported(place.field, value, texts))

    def _check_object(self, value: dict[str, Any], place: _Place, found: _Findings) -> None:
        schema = self._schema
        if schema.min_properties is not None and len(value) < schema.min_properties:
            found.errors.append(_invalid(place, len(value), f"should have at least {schema.min_properties} properties"))
            return
        if schema.max_properties is not None and len(value) > schema.max_properties:
            found.errors.append(fields.too_many(place.field, len(value), schema.max_properties))
            return
        for key, item in value.items():
            described = self._properties.get(key, self._additional)
            if described is not None:
                found.merge(described.judge(item, place.enter_property(key)))
            elif schema.additional_properties_allowed is False:
                detail = f"{place.name}.{key} in body is a forbidden property"
                found.errors.append(fields.invalid(child(place.field, key), "", detail))
        found.errors += [fields.required(child(place.field, key)) for key in schema.required if key not in value]


def _find_enforced_format(schema: StructuralSchema) -> str:
    if schema.int_or_string or not schema.format:
        return ""
    if schema.type in {"", "string"}:
        return schema.format if formats.find_checker(schema.format) else ""
    return schema.format if schema.format in _NUMERIC_FORMATS.get(schema.type, ()) else ""


def _invalid(place: _Place, value: Any, words: str) -> FieldError:
    return fields.invalid(place.field, value, f"{place.name} in body {words}")


def _wrong_type(place: _Place, wanted: str, got: str) -> FieldError:
    detail = f"{place.name} in body must be of type {wanted}: {go_text.quote(got)}"
    return fields.type_invalid(place.field, got, detail)


def _build_error_of_whole(place: _Place, words: str) -> FieldError:
    """The real server does not say which field an alternative belongs to, only the name of what it validated."""
    return fields.invalid(place.root, "", f'"{place.name}" {words}')


def _fits_number(value: Any, types: tuple[str, ...]) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, float):
        return "integer" in types and _is_json_integer(value)
    return isinstance(value, int) and "number" in types


def _is_json_integer(value: float) -> bool:
    if not math.isfinite(value) or abs(value) > _JSON_INTEGER_LIMIT:
        return False
    distance = abs(value - math.floor(value))
    return min(distance, 1 - distance) < 1e-9 * max(1.0, abs(value))


def _convert_limit(limit: Number, value: Number) -> Number:
    """The limit in the type of the value: an integer is compared with an integer, whatever the schema has."""
    return int(limit) if isinstance(value, int) else float(limit)


def _find_multiple_error(value: Number, factor: Number, place: _Place) -> FieldError | None:
    """An integer is compared with the factor's integer part, which is 0 for 0.5; the message then blames the schema."""
    shown = int(factor) if isinstance(value, int) else float(factor)
    if shown <= 0:
        detail = f"factor MultipleOf declared for {place.name} must be positive: {go_text.format_number(shown)}"
        return fields.invalid(place.field, shown, detail)
    if isinstance(value, int):
        fits = value % shown == 0
    else:
        fits = _is_json_integer(1 / shown * value if shown < 1 else value / shown)
    return None if fits else _invalid(place, value, f"should be a multiple of {go_text.format_number(shown)}")


def _matches(pattern: str, value: str) -> bool:
    try:
        return regular_expressions.compile_pattern(pattern).search(value) is not None
    except regular_expressions.BadPattern:
        return False


def _choose_closest(results: list[_Findings]) -> _Findings:
    return max(results, key=lambda result: result.matches)
