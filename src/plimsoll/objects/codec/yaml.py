"""YAML as Kubernetes reads it: version 1.1, turned into plain JSON values.

Built on the event stream of libyaml instead of PyYAML's composer, for three reasons: the composer recurses in C and
a file of brackets ends the process; PyYAML's scalars are not Kubernetes' (`y` is a text there and true here, a date is
a date there and a text here); and a repeated key is lost there without a word. Everything here is iterative, and what
aliases may blow up is counted.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from plimsoll.core.errors import UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEEPEST: Final = 500
_MOST_VALUES: Final = 5_000_000

_TRUE: Final = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
_FALSE: Final = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
_LETTERS: Final = {"y", "Y", "n", "N"}
_NULL: Final = {"", "~", "null", "Null", "NULL"}
_INTEGER: Final = re.compile(r"[-+]?(0b[01]+|0o[0-7]+|0x[0-9a-fA-F]+|0[0-7]+|0|[1-9][0-9]*)", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NO_JSON: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LONGEST_NUMBER: Final = 400
_ODD_BREAKS: Final = "\x85\u2028\u2029\ufeff"
_MERGE: Final = "<<"
_TAG: Final = "tag:yaml.org,2002:"
_READ_DIFFERENTLY: Final = ("<<", "\\ud", "\\uD", "\\/")
_LONGEST_PLAIN_JSON: Final = 4_000_000
_LONGEST_PLAIN_KEY: Final = 150
"""libyaml finds no key of more than 1,024 characters, escapes included."""


class RepeatedKey(UnreadableDocument):
    """A key occurs twice in one mapping. `line` and `column` are those of the second one, from 1."""

    line = 0
    column = 0
    key = ""


def load_all(text: str, *, letters_are_text: bool = False, odd_numbers: bool = False) -> Iterator[tuple[int, Any]]:
    """Each document of the text with the line it starts on. Empty documents are left out.

    `letters_are_text`: a bare `y` or `N` is a name and not a boolean, as in YAML 1.2.
    `odd_numbers`: `.nan` and `.inf` are numbers, for callers that report them with their path.
    """
    builder = _Builder(letters_are_text=letters_are_text, odd_numbers=odd_numbers)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
            if isinstance(event, yaml.DocumentEndEvent):
                if builder.root is not None:
                    yield builder.line, builder.root
                builder = _Builder(letters_are_text=letters_are_text, odd_numbers=odd_numbers)
    except yaml.YAMLError as error:
        raise UnreadableDocument(_describe(error)) from error


def load_first(text: str) -> Any:
    """The first document, as Go's reader takes a request: what follows it is not looked at. None for an empty one."""
    if _may_be_plain_json(text):
        try:
            return _load_plain_json(text)
        except (ValueError, RecursionError, UnreadableDocument):
            pass  # the events name the mistake, if it is one in YAML
    builder = _Builder(bounds_aliases=True)
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            builder.take(event)
            if isinstance(event, yaml.DocumentEndEvent):
                break
    except yaml.YAMLError as error:
        raise UnreadableDocument(_describe(error)) from error
    return builder.root


def _may_be_plain_json(text: str) -> bool:
    """Whether the text looks like JSON in one line that YAML reads alike. Clients that apply objects send such text.

    What the two read differently is left out: breaks beyond ASCII, surrogates, merge keys.
    """
    return (
        text.startswith("{")
        and len(text) <= _LONGEST_PLAIN_JSON
        and text.isascii()
        and text.isprintable()
        and not any(mark in text for mark in _READ_DIFFERENTLY)
    )


def _load_plain_json(text: str) -> Any:
    """Many times faster than events. Raises what means that the text must be read as YAML."""
    document = _PLAIN_JSON.decode(text)
    level = [document]
    for _ in range(DEEPEST):
        nested = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in nested for value in values if isinstance(value, dict | list)]
        if not level:
            return document
    raise UnreadableDocument(f"nested deeper than {DEEPEST} levels")


def _build_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs) or any(len(key) > _LONGEST_PLAIN_KEY for key in mapping):
        raise UnreadableDocument("a key is repeated or too long")
    return mapping


def _refuse_constant(constant: str) -> None:
    raise UnreadableDocument(f"{constant} is no number")


def dump(value: Any) -> str:
    """YAML that reads back as the same value, here and in Kubernetes."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Quotes what Kubernetes would not read as text; PyYAML thinks that `y` is one."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if any(mark in text for mark in _ODD_BREAKS):  # between single quotes they would read back as a space
        return dumper.represent_scalar(f"{_TAG}str", text, style='"')
    try:
        quoted = not isinstance(resolve(text), str)
    except UnreadableDocument:
        quoted = True
    return dumper.represent_scalar(f"{_TAG}str", text, style="'" if quoted else None)


def resolve(plain: str) -> Any:
    """The value of an unquoted scalar."""
    if plain in _NULL:
        return None
    if plain in _TRUE:
        return True
    if plain in _FALSE:
        return False
    if len(plain) > _LONGEST_NUMBER or plain[0] not in "+-.0123456789":
        return plain
    if _NO_JSON.fullmatch(plain):
        raise UnreadableDocument(
            f"{plain} is a number that JSON, and so Kubernetes, cannot hold; quote it to mean text"
        )
    digits = plain.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return _parse_integer(digits)
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        if number in {float("inf"), float("-inf")}:
            raise UnreadableDocument(f"{plain} is too large a number")
        return number
    return plain


_PLAIN_JSON: Final = json.JSONDecoder(
    object_pairs_hook=_build_mapping, parse_int=resolve, parse_float=resolve, parse_constant=_refuse_constant
)


def _parse_integer(digits: str) -> int:
    sign = -1 if digits[0] == "-" else 1
    bare = digits.lstrip("+-")
    if len(bare) > 1 and bare[0] == "0" and bare[1].isdigit():
        return sign * int(bare, 8)
    return sign * int(bare, 0)


class _Open:
    """A mapping or sequence that is not complete yet."""

    __slots__ = ("anchor", "counted_before", "key", "keyed", "merges", "values")

    def __init__(self, values: dict[str, Any] | list[Any], anchor: str | None, *, counted_before: int) -> None:
        self.values = values
        self.anchor = anchor
        self.counted_before = counted_before
        self.key: str | None = None
        self.keyed = False
        self.merges: list[Any] = []


class _Builder:
    """Builds one document from its events."""

    def __init__(
        self, *, letters_are_text: bool = False, odd_numbers: bool = False, bounds_aliases: bool = False
    ) -> None:
        self._bounds_aliases = bounds_aliases
        self._letters_are_text = letters_are_text
        self._odd_numbers = odd_numbers
        self.root: Any = None
        self.line = 1
        self._open: list[_Open] = []
        self._anchors: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        """The number of values of an anchor: known at its end, before an alias can refer to it."""
        self._count = 0
        self._aliased = 0
        """How many of the values counted stand for an alias."""

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._on_scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._start(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._end(event)
        elif isinstance(event, yaml.AliasEvent):
            self._on_alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.line = _place(event)[0]

    def _start(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        if len(self._open) >= DEEPEST:
            raise _build_error(event, f"nested deeper than {DEEPEST} levels")
        if event.tag not in {None, "!", f"{_TAG}map", f"{_TAG}seq"}:
            raise _build_error(event, f"tag {event.tag} is not known")
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.values, dict) and not top.keyed:
            raise _build_error(event, "a key must be a plain value, not a mapping or a list (is a '{{ }}' unquoted?)")
        values: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._open.append(_Open(values, event.anchor, counted_before=self._count))
        self._count += 1

    def _end(self, event: yaml.Event) -> None:
        done = self._open.pop()
        for merged in done.merges:
            assert isinstance(done.values, dict)
            done.values.update({key: value for key, value in merged.items() if key not in done.values})
        if done.anchor is not None:
            self._anchors[done.anchor] = done.values
            self._sizes[done.anchor] = self._count - done.counted_before
        self._add(event, done.values, grown=0)

    def _on_scalar(self, event: yaml.ScalarEvent) -> None:
        value: Any
        if self._letters_are_text and event.implicit[0] and event.value in _LETTERS:
            value = event.value
        elif self._odd_numbers and event.implicit[0] and _NO_JSON.fullmatch(event.value):
            value = float(event.value.replace(".", ""))
        else:
            value = _resolve_value(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.values, dict) and not top.keyed:
            self._add_key(event, top, _MERGE if event.value == _MERGE and event.implicit[0] else _as_key(event, value))
            return
        self._add(event, value, grown=1)

    def _add_key(self, event: yaml.Event, top: _Open, key: str) -> None:
        if key in top.values and key != _MERGE:
            raise _build_repeated_key_error(event, key)
        top.key, top.keyed = key, True

    def _on_alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchors:
            raise _build_error(event, f"alias *{event.anchor} has no anchor before it")
        target = self._anchors[event.anchor]
        grown = self._sizes.get(event.anchor, 1)
        self._aliased += grown
        if self._bounds_aliases and _is_excessive(self._aliased, self._count + grown):
            raise UnreadableDocument("document contains excessive aliasing")
        self._add(event, target, grown=grown)

    def _add(self, event: yaml.Event, value: Any, *, grown: int) -> None:
        self._count += grown
        if self._count > _MOST_VALUES:
            raise _build_error(event, f"the document holds more than {_MOST_VALUES} values")
        if not self._open:
            self.root = value
            return
        top = self._open[-1]
        if isinstance(top.values, list):
            top.values.append(value)
        elif top.key == _MERGE:
            self._merge(event, top, value)
        else:
            assert top.key is not None
            top.values[top.key] = value
        top.key, top.keyed = None, False

    def _merge(self, event: yaml.Event, top: _Open, value: Any) -> None:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise _build_error(event, "<< merges a mapping or a list of mappings")
        top.merges.extend(sources)


# Up to this many values nearly all may come from aliases, from the second number on a tenth; in between, in proportion.
_ALIASES_FREE_UP_TO: Final = 400_000
_ALIASES_STRICT_FROM: Final = 4_000_000
_MOST_ALIASED: Final = 0.99
_LEAST_ALIASED: Final = 0.10


def _is_excessive(aliased: int, count: int) -> bool:
    """Whether too large a share of a document comes from aliases: go-yaml's bounds."""
    if aliased <= 100 or count <= 1_000:
        return False
    beyond = (count - _ALIASES_FREE_UP_TO) / (_ALIASES_STRICT_FROM - _ALIASES_FREE_UP_TO)
    allowed = _MOST_ALIASED - min(1.0, max(0.0, beyond)) * (_MOST_ALIASED - _LEAST_ALIASED)
    return aliased / count > allowed


def _resolve_value(event: yaml.ScalarEvent) -> Any:
    tag = event.tag
    if tag is None:
        try:
            return resolve(event.value) if event.implicit[0] else event.value
        except UnreadableDocument as error:
            raise _build_error(event, error.problem) from None
    short = tag.removeprefix(_TAG)
    if short in {"str", "!"}:
        return event.value
    reader = _TAGGED.get(short)
    if reader is None:
        raise _build_error(event, f"tag {tag} is not known")
    try:
        return reader(event.value)
    except (ValueError, binascii.Error):
        raise _build_error(event, f"{event.value!r} is no !!{short}") from None


def _as_bool(text: str) -> bool:
    value = resolve(text)
    if not isinstance(value, bool):
        raise ValueError(text)  # noqa: TRY004 - the caller distinguishes it from success, not by type
    return value


_TAGGED: Final[dict[str, Callable[[str], Any]]] = {
    "int": _parse_integer,
    "float": float,
    "bool": _as_bool,
    "null": lambda _: None,
    "binary": lambda text: base64.b64decode(text).decode(),
    "timestamp": str,
}


def _as_key(event: yaml.Event, value: Any) -> str:
    """Keys are text in JSON: `y:` is the key "true", `8080:` the key "8080"."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise _build_error(event, "a key must not be null")


def _build_error(event: yaml.Event, problem: str) -> UnreadableDocument:
    line, column = _place(event)
    return UnreadableDocument(f"line {line}, column {column}: {problem}")


def _build_repeated_key_error(event: yaml.Event, key: str) -> RepeatedKey:
    line, column = _place(event)
    error = RepeatedKey(f'line {line}, column {column}: key "{key}" occurs twice in one mapping')
    error.line, error.column, error.key = line, column, key
    return error


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    assert mark is not None, "libyaml marks every event"
    return mark.line + 1, mark.column + 1


_Dumper.add_representer(str, _represent_text)


def _describe(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        context = f" {error.context}" if error.context else ""
        return f"line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1}: {error.problem}{context}"
    return str(error).replace("\n", " ")
