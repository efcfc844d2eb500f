"""Functions on text: the standard ones, the strings extension (version 2, so no `reverse`), and Kubernetes' regex.

Patterns are RE2's, which cannot be made to hang; positions count code points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import re2

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.types.signatures import Library
from plimsoll.objects.cel.values.values import raise_no_such_overload

if TYPE_CHECKING:
    from collections.abc import Sequence

LIBRARY = Library()

# CEL's trim removes Unicode's White_Space, which differs from Python's strip().
_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r",
    "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Any:
    """The pattern, or an evaluation error with RE2's complaint."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise CelEvaluationError(f"error parsing regexp: {_format_complaint(error)}") from None


# RE2 for C++ and for Go have one grammar and two wordings; Kubernetes prints Go's.
_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "trailing \\": "trailing backslash at end of expression",
}


def _format_complaint(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    problem, _, part = text.partition(": ")
    return f"{_GO_WORDS.get(problem, problem)}: `{part}`"


def _replace_surrogates(text: str) -> str:
    """RE2 works on UTF-8, which has no lone surrogates; JSON text may hold them."""
    return text.encode("utf-8", "replace").decode("utf-8")


@LIBRARY.function("<string>.matches(string) -> bool", "matches(string, string) -> bool")
def matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(_replace_surrogates(text)) is not None


@LIBRARY.function("<string>.find(string) -> string")
def find(text: str, pattern: str) -> str:
    found = compile_pattern(pattern).search(_replace_surrogates(text))
    return str(found.group()) if found is not None else ""


@LIBRARY.function("<string>.findAll(string) -> list(string)", "<string>.findAll(string, int) -> list(string)")
def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    results: list[str] = []
    if limit == 0:
        return results
    for found in compile_pattern(pattern).finditer(_replace_surrogates(text)):
        results.append(str(found.group()))
        if len(results) == limit:
            break
    return results


@LIBRARY.function("<string>.contains(string) -> bool")
def contains(text: str, part: str) -> bool:
    return part in text


@LIBRARY.function("<string>.startsWith(string) -> bool")
def starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@LIBRARY.function("<string>.endsWith(string) -> bool")
def ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@LIBRARY.function("<string>.charAt(int) -> string")
def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelEvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


@LIBRARY.function("<string>.indexOf(string) -> int", "<string>.indexOf(string, int) -> int")
def index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        if part == "" and start == 0:
            return 0
        raise CelEvaluationError(f"index out of range: {start}")
    return text.find(part, start) if part else start


@LIBRARY.function("<string>.lastIndexOf(string) -> int", "<string>.lastIndexOf(string, int) -> int")
def last_index_of(text: str, part: str, last: int | None = None) -> int:
    if last is None:
        return text.rfind(part)
    if not 0 <= last <= len(text):
        raise CelEvaluationError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part)) if part else last


@LIBRARY.function("<string>.lowerAscii() -> string")
def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


@LIBRARY.function("<string>.upperAscii() -> string")
def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


@LIBRARY.function("<string>.replace(string, string) -> string", "<string>.replace(string, string, int) -> string")
def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    times = limit if limit >= 0 else max(text.count(old), 0)
    # Replacements multiply: 1,000 characters by 1,000 of a million each would be a gigabyte.
    if len(text) + min(times, len(text) + 1) * len(new) > _LONGEST_RESULT:
        raise CelEvaluationError("result of replace is too long")
    return text.replace(old, new, limit)


_LONGEST_RESULT = 50_000_000


@LIBRARY.function("<string>.split(string) -> list(string)", "<string>.split(string, int) -> list(string)")
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


@LIBRARY.function("<list(string)>.join() -> string", "<list(string)>.join(string) -> string")
def join(parts: Sequence[object], separator: str = "") -> str:
    texts = [part if isinstance(part, str) else raise_no_such_overload("join") for part in parts]
    if sum(map(len, texts)) + len(separator) * len(texts) > _LONGEST_RESULT:
        raise CelEvaluationError("result of join is too long")
    return separator.join(texts)


@LIBRARY.function("<string>.substring(int) -> string", "<string>.substring(int, int) -> string")
def substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise CelEvaluationError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise CelEvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise CelEvaluationError(f"index out of range: {position}")
    return text[start:end]


@LIBRARY.function("<string>.trim() -> string")
def trim(text: str) -> str:
    return text.strip(_BLANKS)


@LIBRARY.function("strings.quote(string) -> string")
def quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'
