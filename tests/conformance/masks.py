"""What no two servers agree on: uids, resourceVersions, times, generated suffixes, addresses, tokens.

`masked` is applied to a recorded answer and to ours before they are compared. It hides as little as it can: times are
hidden only if a server made them (the replay's clock starts on the day of the recording, so that everything else that
depends on the time agrees), and a resourceVersion only where it is a number.
"""

from __future__ import annotations

import re
from typing import Any, Final

_SUFFIX: Final = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_TEXTS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    # The day on which the recordings were made, and on which the replay takes place.
    (re.compile(r"2026-11-15T\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(rf"kube-api-access-{_SUFFIX}\b"), "kube-api-access-<suffix>"),
    (re.compile(r"\b10\.(?:9[6-9]|10\d|11[01])\.\d+\.\d+\b"), "<cluster IP>"),
    (re.compile(r"too old resource version: \d+ \(\d+\)"), "too old resource version: N (M)"),
    (re.compile(r"Too large resource version: (\d+), current: \d+"), r"Too large resource version: \1, current: N"),
    (re.compile(r"the ResourceVersion in record \(\d+\)"), "the ResourceVersion in record (N)"),
    (re.compile(r'resourceVersion: "\d+"'), 'resourceVersion: "N"'),
    (re.compile(rf"\bBad_{_SUFFIX}\b"), "Bad_<suffix>"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "<jwt>"),
    (re.compile(r"(\?hash=)[0-9A-F]+"), r"\1<hash>"),
    (re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----"), "<certificate>"),
    # The whole object, printed by a patch that cannot be read back, with its uid, times and all.
    (re.compile(r'Invalid value: "\{\\"apiVersion.*\}(\\n)?"', re.DOTALL), 'Invalid value: "<object>"'),
)
_AGE: Final = re.compile(r"(\d+[ywdhms])+")
_NUMBER: Final = re.compile(r"-?\d+")


def masked(value: Any, *, key: str = "") -> Any:
    """`value` without what differs between any two servers."""
    if isinstance(value, dict):
        return _masked_object(value)
    if isinstance(value, list):
        cells = key == "cells"
        return [_masked_cell(item) if cells else masked(item, key=key) for item in value]
    if isinstance(value, str):
        return _masked_text(value, key)
    return value


def _masked_object(value: dict[str, Any]) -> dict[str, Any]:
    result = {_masked_text(name, ""): masked(item, key=name) for name, item in value.items()}
    if value.get("kind") == "SelfSubjectRulesReview" and "status" in value:
        result["status"] = _rules_in_any_order(result["status"])
    prefix = value.get("generateName")
    if prefix and re.fullmatch(re.escape(prefix) + _SUFFIX, value.get("name", "")):
        result["name"] = f"{prefix}<suffix>"
    return result


def _rules_in_any_order(status: dict[str, Any]) -> dict[str, Any]:
    """Rules are collected from bindings in the order of a Go map: two recordings of the same roles differ in it."""
    return {key: sorted(item, key=repr) if isinstance(item, list) else item for key, item in status.items()}


def _masked_text(text: str, key: str) -> str:
    if key == "resourceVersion" and _NUMBER.fullmatch(text):
        return "<resourceVersion>"
    if key == "continue" and text:
        return "<continue>"
    for pattern, replacement in _TEXTS:
        text = pattern.sub(replacement, text)
    return text


def _masked_cell(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    return "<age>" if _AGE.fullmatch(cell) else _masked_text(cell, "")


def in_any_order(status: Any) -> Any:
    """A Status of an invalid custom resource with its causes as a set: their order is that of a Go map."""
    if not isinstance(status, dict) or status.get("reason") != "Invalid":
        return status
    causes = status.get("details", {}).get("causes", [])
    message = status["message"]
    texts = sorted(
        (f"{cause.get('field', '')}: {cause['message']}" for cause in causes), key=lambda text: (-len(text), text)
    )
    for text in texts:
        message = message.replace(text, "", 1)
    ordered = sorted(causes, key=lambda cause: (cause.get("field", ""), cause["reason"], cause["message"]))
    details = {**status["details"], "causes": ordered}
    return {**status, "message": f"{message} {sorted(texts)}", "details": details}
