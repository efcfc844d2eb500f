"""Whether a Kubernetes 1.34 API server would accept an object of a built-in kind, and in which form.

`check_create` and `check_update` take the steps of the server: decode, default, validate; a decode problem is final.
`validate_create` and `validate_update` only validate, for objects that are decoded and defaulted. The functions are
pure: they do not check what an API server looks up elsewhere (quota, priority classes, service accounts, free
addresses).
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.values import Value
from plimsoll.objects.builtin.decoding import decode, openapi
from plimsoll.objects.builtin.decoding.decode import DecodeProblem
from plimsoll.objects.builtin.defaults import defaults
from plimsoll.objects.builtin.validation import metadata
from plimsoll.objects.builtin.validation.table import NOT_OURS, REVIEWS, find_rules
from plimsoll.objects.schema.field_errors import FieldError  # noqa: TC001 msgspec reads the field types of Verdict
from plimsoll.objects.schema.json_values import Refused, take_over

Json = dict[str, Any]


class ObjectProblems(Value):
    """The problems of an object. Unknown fields alone do not make it invalid; the caller decides (strict, warn).

    `is_ours` is false for kinds that this package does not validate: custom resources and CustomResourceDefinitions.
    """

    decode_problems: list[DecodeProblem] = []
    errors: list[FieldError] = []
    unknown_fields: list[str] = []
    is_ours: bool = True

    @property
    def is_good(self) -> bool:
        return not self.decode_problems and not self.errors

    @property
    def decode_error(self) -> str | None:
        """The sentence an API server's 400 would end with."""
        return decode.choose_go_error(self.decode_problems)


def is_builtin(api_version: Any, kind: Any) -> bool:
    """Whether it is for this package to judge objects of that kind."""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return False
    return (api_version, kind) not in NOT_OURS and openapi.is_known(api_version, kind)


def check_create(obj: Json) -> ObjectProblems:
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not is_builtin(api_version, kind):
        return ObjectProblems(is_ours=False)
    decoded = _decode(obj)
    if decoded.problems:
        return ObjectProblems(decode_problems=decoded.problems, unknown_fields=decoded.unknown_fields)
    whole = defaults.copy_prepared_for_create(decoded.value)
    return ObjectProblems(errors=validate_create(whole), unknown_fields=decoded.unknown_fields)


def check_update(obj: Json, old: Json) -> ObjectProblems:
    """Check an update of `old`, the stored object. It is ignored if it cannot be decoded or is of another kind."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not is_builtin(api_version, kind):
        return ObjectProblems(is_ours=False)
    decoded = _decode(obj)
    if decoded.problems:
        return ObjectProblems(decode_problems=decoded.problems, unknown_fields=decoded.unknown_fields)
    before = _decode(old) if (old.get("apiVersion"), old.get("kind")) == (api_version, kind) else None
    if before is None or before.problems:
        return check_create(obj)
    errors = validate_update(defaults.copy_with_defaults(decoded.value), defaults.copy_with_defaults(before.value))
    return ObjectProblems(errors=errors, unknown_fields=decoded.unknown_fields)


def validate_create(obj: Json) -> list[FieldError]:
    """The errors of a new object of a built-in kind that is decoded and prepared for creation."""
    if (obj["apiVersion"], obj["kind"]) in REVIEWS:
        return []
    rules = find_rules(obj["apiVersion"], obj["kind"])
    about_metadata = metadata.validate_new_metadata(
        obj.get("metadata", {}), rule=rules.name_rule, namespaced=rules.namespaced
    )
    others = (rules.create or rules.valid)(obj)
    if rules.spec_first:
        return others or about_metadata
    return [*about_metadata, *others]


def validate_update(new: Json, old: Json) -> list[FieldError]:
    """The errors of an update of an object of a built-in kind; both states are decoded and defaulted."""
    rules = find_rules(new["apiVersion"], new["kind"])
    new = _restore_stored_status(new, old)
    about_metadata = metadata.validate_metadata_update(new.get("metadata", {}), old.get("metadata", {}))
    others = rules.update(new, old)
    if not rules.update_is_all:
        others = [*others, *rules.valid(new)]
    # The API server checks twice: once for every kind, once in the kind's own rules.
    return [*about_metadata, *about_metadata, *others]


def default(obj: Json) -> Json:
    """A new object as a client reads it back: defaults filled in, nulls and unknown fields gone, quantities canonical.

    It lacks what an API server adds from elsewhere (uid, times, addresses, admission). An object that cannot be
    decoded, or is not of a built-in kind, is returned unchanged.
    """
    if not is_builtin(obj.get("apiVersion"), obj.get("kind")):
        return obj
    decoded = _decode(obj)
    if decoded.problems:
        return obj
    return defaults.copy_spelled_out(defaults.copy_prepared_for_create(decoded.value))


def _decode(obj: Json) -> decode.Decoded:
    taken = take_over(obj)
    if isinstance(taken, Refused):
        return decode.Decoded(value={}, problems=[DecodeProblem(path=taken.path, text=taken.problem)])
    component = openapi.find_schema_name(taken["apiVersion"], taken["kind"])
    assert component is not None  # is_builtin has checked it
    return decode.decode(taken, component)


def _restore_stored_status(new: Json, old: Json) -> Json:
    """An update does not reach the status: the server puts the stored one back before it judges."""
    kept = {"status": old["status"]} if "status" in old else {}
    return {**{key: value for key, value in new.items() if key != "status"}, **kept}
