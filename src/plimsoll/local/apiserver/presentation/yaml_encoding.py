"""Responses in YAML, in the style of sigs.k8s.io/yaml: sorted keys, quotes where plain text would be ambiguous.

The events go to libyaml's emitter one by one instead of through PyYAML's representer, which recurses per level and
would crash the process on an object nested a thousand times.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from plimsoll.core.errors import UnreadableDocument
from plimsoll.objects.codec.yaml import resolve
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?", re.ASCII)


class _Closing:
    """Marks the end of a mapping or list on the stack of what is still to be written."""

    def __init__(self, event: yaml.Event) -> None:
        self.event = event


def encode_yaml(value: Any) -> bytes:
    text: str = yaml.emit(_generate_events(value), Dumper=yaml.CSafeDumper, allow_unicode=True)
    return text.encode("utf-8", "surrogatepass")


def _generate_events(value: Any) -> Iterator[yaml.Event]:
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Closing):
            yield one.event
        elif isinstance(one, dict):
            yield yaml.MappingStartEvent(anchor=None, tag=None, implicit=True, flow_style=not one)
            waiting.append(_Closing(yaml.MappingEndEvent()))
            for key in sorted(one, reverse=True):
                waiting += (one[key], key)
        elif isinstance(one, list):
            yield yaml.SequenceStartEvent(anchor=None, tag=None, implicit=True, flow_style=not one)
            waiting.append(_Closing(yaml.SequenceEndEvent()))
            waiting.extend(reversed(one))
        else:
            yield _build_scalar_event(one)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _build_scalar_event(value: Any) -> yaml.ScalarEvent:
    if isinstance(value, str):
        return yaml.ScalarEvent(anchor=None, tag=None, implicit=(True, True), value=value, style=_choose_style(value))
    written = "null" if value is None else go_text.format_plain(value)
    return yaml.ScalarEvent(anchor=None, tag=None, implicit=(True, False), value=written)


def _choose_style(text: str) -> str | None:
    if "\n" in text:
        return "|"
    return None if _reads_as_itself(text) else '"'


def _reads_as_itself(text: str) -> bool:
    if text == "<<" or _TIMESTAMP.fullmatch(text) or _BASE_60.fullmatch(text):
        return False
    try:
        return isinstance(resolve(text), str)
    except UnreadableDocument:
        return False
