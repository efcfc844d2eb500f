"""Whether an answer is the recorded one: status, content type, warnings, and the body after masking.

Every difference is a line a reader can act on: the path into the body, what was recorded, what came.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.conformance.masks import in_any_order, masked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conformance.exchanges import Reply
    from tests.conformance.recordings import RecordedExchange
    from tests.conformance.substitutions import Substitutions

# Recordings whose answer was cut without a note: only what is there is compared.
_CUT = frozenset({"auth-002", "read-072", "read-074", "subresources-032", "discovery/version"})

_SHOWN_CHARACTERS = 300


def differences(recorded: RecordedExchange, reply: Reply, ours: Substitutions) -> tuple[str, ...]:
    """What differs, a line each; nothing if the answers are the same."""
    return tuple(_differences(recorded, reply, ours))


def _differences(recorded: RecordedExchange, reply: Reply, ours: Substitutions) -> Iterator[str]:
    if recorded.status != reply.status:
        yield f"status: recorded {recorded.status}, ours {reply.status}: {_short(reply.text)}"
        return
    yield from _header_differences(recorded, reply)
    if isinstance(recorded.response, str) and reply.events is None:
        yield from _text_differences(masked(recorded.response), masked(reply.text))
        return
    came = ours.answer(reply.body if reply.events is None else reply.events)
    is_cut = "trimmed" in recorded.note or recorded.id in _CUT
    yield from body_differences(recorded.response, came, is_cut=is_cut, id_=recorded.id)


def _header_differences(recorded: RecordedExchange, reply: Reply) -> Iterator[str]:
    content_type = recorded.response_headers.get("Content-Type", "")
    if content_type and content_type != reply.content_type:
        yield f"Content-Type: recorded {content_type!r}, ours {reply.content_type!r}"
    warnings = recorded.response_headers.get("Warning") or []
    warnings = [warnings] if isinstance(warnings, str) else warnings
    if warnings != reply.warnings:
        yield f"Warning: recorded {warnings}, ours {reply.warnings}"
    retry = recorded.response_headers.get("Retry-After")
    came = next((value for name, value in reply.headers if name.lower() == "retry-after"), None)
    if retry != came:
        yield f"Retry-After: recorded {retry}, ours {came}"


def _text_differences(recorded: str, came: str) -> Iterator[str]:
    if recorded.endswith("…"):  # the recording says that it was cut
        came = came[: len(recorded) - 1] + "…"
    if recorded != came:
        yield f"text: recorded {_short(recorded)}, ours {_short(came)}"


def body_differences(recorded: Any, came: Any, *, is_cut: bool, id_: str) -> Iterator[str]:
    """Two decoded bodies. `is_cut`: the recording holds a part of the answer, which alone is compared."""
    came = _cut_like(recorded, came) if is_cut else came
    left, right = masked(recorded), masked(came)
    if id_.startswith(("crd-", "provisioningrequest-")):
        left, right = in_any_order(left), in_any_order(right)
    yield from _walk(left, right, "")


def _cut_like(recorded: Any, came: Any) -> Any:
    """Only the parts of `came` that a cut recording shows: the top of the object, its metadata and its items."""
    if not isinstance(recorded, dict) or not isinstance(came, dict) or recorded.get("kind") == "Status":
        return came
    result = {key: came[key] for key in recorded if key in came}
    if "items" in recorded:
        paired = zip(recorded["items"], came["items"], strict=False)
        result["items"] = [_cut_like(item, other) for item, other in paired] + came["items"][len(recorded["items"]) :]
    elif "metadata" in recorded:
        result["metadata"] = {key: came["metadata"].get(key) for key in recorded["metadata"]}
    return result


def _walk(recorded: Any, came: Any, path: str) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(came, dict):
        for key in recorded.keys() | came.keys():
            here = f"{path}.{key}" if path else key
            if key not in came:
                yield f"{here}: missing, recorded {_short(recorded[key])}"
            elif key not in recorded:
                yield f"{here}: ours alone, {_short(came[key])}"
            else:
                yield from _walk(recorded[key], came[key], here)
    elif isinstance(recorded, list) and isinstance(came, list):
        if len(recorded) != len(came):
            yield f"{path}: recorded {len(recorded)} elements, ours {len(came)}: {_short(came)}"
        for number, (item, other) in enumerate(zip(recorded, came, strict=False)):
            yield from _walk(item, other, f"{path}[{number}]")
    elif isinstance(recorded, str) and recorded.endswith("…"):
        yield from (f"{path}: {line}" for line in _text_differences(recorded, str(came)))
    elif recorded != came or isinstance(recorded, bool) != isinstance(came, bool):
        yield f"{path}: recorded {_short(recorded)}, ours {_short(came)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
