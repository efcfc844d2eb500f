"""Messages that are not objects in JSON: quantities, times, ints or strings, embedded JSON, one-of schemas.

Each function gets the decoded fields by JSON name and returns the JSON value. `NOTHING` stands for a value that Go
writes as null, such as an empty time or an empty extension.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.objects.protobuf.messages import EXTENSIONS, META, RUNTIME
from plimsoll.objects.protobuf.wire import InvalidProtobuf

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS_A_SECOND: Final = 10**9


class Nothing(Enum):
    """The value that stays out of the JSON."""

    NOTHING = "nothing"


NOTHING: Final = Nothing.NOTHING


def _convert_quantity(fields: dict[str, Any]) -> Any:
    return fields.get("string") or "0"


def _convert_int_or_string(fields: dict[str, Any]) -> Any:
    return fields.get("strVal", "") if fields.get("type", 0) == 1 else fields.get("intVal", 0)


def _convert_time(fields: dict[str, Any]) -> Any:
    """Whole seconds: JSON clients never saw more, so the real server drops what protobuf clients send."""
    return _build_datetime(fields.get("seconds", 0), 0).strftime("%Y-%m-%dT%H:%M:%SZ") if fields else NOTHING


def _convert_micro_time(fields: dict[str, Any]) -> Any:
    if not fields:
        return NOTHING
    return _build_datetime(fields.get("seconds", 0), fields.get("nanos", 0)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _build_datetime(seconds: int, nanos: int) -> datetime:
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError:
        raise InvalidProtobuf(f"a time {seconds} seconds after 1970 cannot be written") from None
    if moment.year < 1000:
        raise InvalidProtobuf(f"a time {seconds} seconds after 1970 cannot be written")
    return moment


def _convert_duration(fields: dict[str, Any]) -> Any:
    """Format like Go's time.Duration: `1h30m0s`, `1.5s`, `20ms`."""
    nanos = fields.get("duration", 0)
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    if nanos == 0:
        return "0s"
    if nanos < _NANOS_A_SECOND:
        unit, size = next((unit, size) for unit, size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)) if nanos >= size)
        return f"{sign}{_format_decimal(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * _NANOS_A_SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_format_decimal(rest, _NANOS_A_SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _format_decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    return f"{whole}.{str(rest).rjust(len(str(unit)) - 1, '0').rstrip('0')}" if rest else str(whole)


def _decode_embedded_json(fields: dict[str, Any]) -> Any:
    """`raw` arrives as bytes in base64, as every bytes field does."""
    raw = base64.b64decode(fields.get("raw") or fields.get("Raw") or "")
    if not raw:
        return NOTHING
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, binascii.Error) as error:
        raise InvalidProtobuf(f"embedded JSON cannot be read: {error}") from None


def _convert_schema_or_array(fields: dict[str, Any]) -> Any:
    return fields.get("schema", fields.get("jSONSchemas", NOTHING))


def _convert_schema_or_bool(fields: dict[str, Any]) -> Any:
    return fields.get("schema", fields.get("allows", False))


def _convert_schema_or_texts(fields: dict[str, Any]) -> Any:
    return fields.get("property", fields.get("schema", NOTHING))


def _convert_items(fields: dict[str, Any]) -> Any:
    return fields.get("items", [])


SPECIALS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _convert_quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _convert_int_or_string,
    f"{META}Time": _convert_time,
    f"{META}MicroTime": _convert_micro_time,
    f"{META}Duration": _convert_duration,
    f"{META}FieldsV1": _decode_embedded_json,
    f"{META}Verbs": _convert_items,
    f"{RUNTIME}RawExtension": _decode_embedded_json,
    f"{EXTENSIONS}JSON": _decode_embedded_json,
    f"{EXTENSIONS}JSONSchemaPropsOrArray": _convert_schema_or_array,
    f"{EXTENSIONS}JSONSchemaPropsOrBool": _convert_schema_or_bool,
    f"{EXTENSIONS}JSONSchemaPropsOrStringArray": _convert_schema_or_texts,
    "k8s.io.api.authentication.v1.ExtraValue": _convert_items,
    "k8s.io.api.authorization.v1.ExtraValue": _convert_items,
}
