"""YAML request bodies: as `objects.codec.yaml` reads them, but repeated keys are reported instead of rejected.

kube-apiserver takes the last of two equal keys, and so does this.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import yaml

from plimsoll.core.errors import UnreadableDocument
from plimsoll.objects.codec import yaml as yaml_text

# Every repeated key costs two more readings of the text. Beyond this one gets the complaint instead of the object.
_MOST_DUPLICATES: Final = 10
_LONGEST_REPAIRED: Final = 32_768


class YamlRead(NamedTuple):
    """The first document, and the line and key of every key that repeats one."""

    value: Any
    duplicates: tuple[tuple[int, str], ...] = ()


def read_yaml(text: str) -> YamlRead:
    """Raises `UnreadableDocument`, worded as Go's reader words it as far as libyaml is the same."""
    duplicates: list[tuple[int, str]] = []
    while True:
        try:
            value = yaml_text.load_first(text)
        except yaml_text.RepeatedKey as error:
            without = None
            if len(duplicates) < _MOST_DUPLICATES and len(text) <= _LONGEST_REPAIRED:
                without = _blank_first_entry(text, line=error.line, column=error.column)
            if without is None:
                raise UnreadableDocument(_format_as_go(error.problem)) from error
            text = without
            duplicates.append((error.line, error.key))
            continue
        except UnreadableDocument as error:
            raise UnreadableDocument(_format_as_go(error.problem)) from error
        return YamlRead(value, tuple(duplicates))


def _blank_first_entry(text: str, *, line: int, column: int) -> str | None:
    """The text with the first entry of that key blanked out, so that the second one counts."""
    starts = _find_first_entry(text, line=line, column=column)
    if starts is None:
        return None
    begin, end = starts
    blank = "".join(character if character == "\n" else " " for character in text[begin:end])
    return text[:begin] + blank + text[end:]


def _find_first_entry(text: str, *, line: int, column: int) -> tuple[int, int] | None:
    """Where the entry stands that the key at `line` and `column` repeats: from its key to the next key or the end."""
    open_maps: list[dict[str, tuple[int, int]]] = []
    expects_key: list[bool] = []
    depth_is_map: list[bool] = []
    entry_of: list[str] = []
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        mark = event.start_mark
        assert mark is not None
        if isinstance(event, yaml.ScalarEvent) and depth_is_map and depth_is_map[-1] and expects_key[-1]:
            if (mark.line + 1, mark.column + 1) == (line, column):
                return open_maps[-1].get(event.value)
            entry_of[-1] = event.value
            open_maps[-1][event.value] = (mark.index, mark.index)
            expects_key[-1] = False
            continue
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            is_map = isinstance(event, yaml.MappingStartEvent)
            depth_is_map.append(is_map)
            open_maps.append({})
            expects_key.append(is_map)
            entry_of.append("")
            continue
        if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            for stack in (depth_is_map, open_maps, expects_key, entry_of):
                stack.pop()
        if depth_is_map and depth_is_map[-1] and not expects_key[-1]:
            begin, _ = open_maps[-1][entry_of[-1]]
            end = event.end_mark.index if event.end_mark is not None else begin
            open_maps[-1][entry_of[-1]] = (begin, end)
            expects_key[-1] = True
    return None


def _format_as_go(problem: str) -> str:
    """Without the column and libyaml's context; Go counts the lines of its parser's complaints from zero."""
    place, _, rest = problem.partition(": ")
    if not place.startswith("line "):
        return problem
    line = int(place.split()[1].rstrip(","))
    message, parsing, _ = rest.partition(" while parsing")
    message = message.partition(" while scanning")[0]
    line -= bool(parsing)
    return f"line {line}: {message}" if line else message
