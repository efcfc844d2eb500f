"""Reads the query of a request: names in any case, values by the type of each parameter.

Everything wrong is refused with status 400 and the name of the parameter. A boolean that is neither true nor false is
refused too: Cruise Control reads it as false, so that `dryrun=maybe` moves replicas there.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl

from plimsoll.core.value_parsing import parse_list, quote, read_whole_number
from plimsoll.kafka.cruise_control.server.endpoints import Endpoint, ParameterType
from plimsoll.kafka.cruise_control.server.errors import (
    ILLEGAL_ARGUMENT,
    NUMBER_FORMAT,
    PATTERN_SYNTAX,
    RequestRefused,
)
from plimsoll.kafka.model.requests import BrokerLogDir
from plimsoll.objects.schema.regular_expressions import BadPattern, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MAX_QUERY_BYTES: Final = 64 * 1024
_MAX_PARAMETERS: Final = 100
_MAX_PATTERN: Final = 1_000
_LARGEST: Final = 2**62


class Parameters:
    """The parameters of a request, read and checked; `key` is the same for the same request."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self.key = tuple(sorted((name, repr(value)) for name, value in values.items()))

    def get(self, name: str, default: T) -> T:
        """The value of a parameter; the default if it is absent."""
        value: T = self._values.get(name, default)
        return value

    def get_names(self, name: str) -> tuple[str, ...]:
        """The names of a list; empty if the parameter is absent."""
        return self.get(name, ())

    def get_optional(self, name: str) -> Any:
        return self._values.get(name)


def parse_parameters(endpoint: Endpoint, query: bytes) -> Parameters:
    """The parameters of a query string. Raises `RequestRefused`."""
    if len(query) > MAX_QUERY_BYTES:
        raise RequestRefused(f"The query has {len(query)} bytes; at most {MAX_QUERY_BYTES} are allowed.")
    pairs = _split(query)
    unknown = sorted({name for name, _ in pairs if name.lower() not in endpoint.parameters})
    if unknown:
        shown = ", ".join(name[:100] for name in unknown[:10])
        raise RequestRefused(
            f"Unrecognized endpoint parameters in {endpoint.name} {endpoint.method} request: [{shown}].", cause=""
        )
    values: dict[str, Any] = {}
    for name, text in pairs:
        lower = name.lower()
        if lower in values:
            raise RequestRefused(f"Parameter {lower} is given twice.")
        values[lower] = _READERS[endpoint.parameters[lower]](lower, text)
    return Parameters(values)


def wants_json(query: bytes) -> bool:
    """Whether the answer shall be JSON, even if the rest of the query is wrong."""
    try:
        return any(name.lower() == "json" and text.lower() == "true" for name, text in _split(query[:MAX_QUERY_BYTES]))
    except RequestRefused:
        return True


def _split(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MAX_PARAMETERS,
            encoding="utf-8",
            errors="strict",
        )
    except (ValueError, UnicodeError) as error:
        raise RequestRefused(f"The query cannot be read: {error}.") from error


def _read_boolean(name: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise RequestRefused(f"Parameter {name} must be true or false (Requested: {quote(text)}).")
    return text.lower() == "true"


def _read_text(_name: str, text: str) -> str:
    return text[:1_000]


def _read_number(name: str, text: str) -> int:
    number = read_whole_number(text.strip(), least=-_LARGEST, most=_LARGEST)
    if number is None:
        raise RequestRefused(f'For input string: "{text[:100]}" (parameter {name})', cause=NUMBER_FORMAT)
    return number


def _read_count(name: str, text: str) -> int:
    number = _read_number(name, text)
    if not 0 < number <= 2**31 - 1:
        raise RequestRefused(f"Parameter {name} must be a whole number above 0 (Requested: {number}).")
    return number


def _read_not_negative(name: str, text: str) -> int:
    number = _read_number(name, text)
    if number < 0 and name == "replication_throttle":
        raise RequestRefused(f"Requested rebalance throttle must be non-negative (Requested: {number}).")
    if number < 0:
        raise RequestRefused(f"Parameter {name} must be non-negative (Requested: {number}).")
    return number


def _read_ids(name: str, text: str) -> tuple[int, ...]:
    ids = tuple(_read_number(name, part) for part in _split_list(text))
    for broker in ids:
        if not 0 <= broker <= 2**31 - 1:
            raise RequestRefused(f"Parameter {name} must hold broker ids (Requested: {broker}).")
    return tuple(dict.fromkeys(ids))


def _read_names(_name: str, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_split_list(text)))


def _read_pattern(name: str, text: str) -> str:
    if len(text) > _MAX_PATTERN:
        raise RequestRefused(f"Parameter {name} has {len(text)} characters; at most {_MAX_PATTERN} are allowed.")
    try:
        compile_pattern(text)
    except (BadPattern, UnicodeEncodeError) as error:
        raise RequestRefused(f"Parameter {name} is not a regular expression: {error}", cause=PATTERN_SYNTAX) from error
    return text


def _read_uuids(_name: str, text: str) -> tuple[str, ...]:
    read = []
    for part in _split_list(text):
        try:
            read.append(str(uuid.UUID(part)))
        except ValueError:
            raise RequestRefused(f"Invalid UUID string: {part[:100]}", cause=ILLEGAL_ARGUMENT) from None
    return tuple(read)


def _read_log_dirs(name: str, text: str) -> tuple[BrokerLogDir, ...]:
    pairs = []
    for part in _split_list(text):
        broker, _, path = part.partition("-")
        if not path.startswith("/"):
            raise RequestRefused(f"Parameter {name} must look like 0-/data/a,1-/data/b (Requested: {quote(part)}).")
        pairs.append(BrokerLogDir(broker=_read_ids(name, broker)[0] if broker else -1, path=path))
    return tuple(dict.fromkeys(pairs))


def _split_list(text: str) -> list[str]:
    return parse_list(text, commas=True)


_READERS: Final[dict[ParameterType, Callable[[str, str], Any]]] = {
    ParameterType.BOOLEAN: _read_boolean,
    ParameterType.TEXT: _read_text,
    ParameterType.COUNT: _read_count,
    ParameterType.NOT_NEGATIVE: _read_not_negative,
    ParameterType.IDS: _read_ids,
    ParameterType.NAMES: _read_names,
    ParameterType.PATTERN: _read_pattern,
    ParameterType.UUIDS: _read_uuids,
    ParameterType.LOG_DIRS: _read_log_dirs,
}
