"""ProvisioningRequests as people read them: the table of all, and the description of one. Text only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.cli.shared.output import format_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    Json = dict[str, Any]

_WIDE = 80
"""So much of a message stands in the table."""


def format_request_table(found: list[Json], *, everywhere: bool) -> Iterator[str]:
    head: tuple[str, ...] = ("NAME", "CLASS", "PODS", "STATE", "NODES", "COST/H", "AGE", "SAYS")
    rows: list[tuple[Any, ...]] = [
        (
            one["name"],
            one["class"],
            one["pods"],
            one["state"],
            _nodes(one),
            one["costPerHour"] or "-",
            _age(one["ageSeconds"]),
            _shortened(one["message"]),
        )
        for one in found
    ]
    if everywhere:
        head = ("NAMESPACE", *head)
        rows = [(one["namespace"], *row) for one, row in zip(found, rows, strict=True)]
    return format_table(head, rows)


def format_request(report: Json) -> Iterator[str]:
    yield f"request      {report['namespace']}/{report['name']}"
    yield f"class        {report['class']}"
    sets = ", ".join(f"{one['count']} x {one['template']}" for one in report["podSets"])
    yield f"pods         {report['pods']} ({sets})"
    if report["parameters"]:
        yield f"parameters   {', '.join(f'{key}={value}' for key, value in report['parameters'].items())}"
    since = f", since {report['since']}" if report["since"] else ""
    yield f"state        {report['state']}{since}"
    yield f"             {report['message']}"
    if report["attempts"]:
        next_one = f", next after {report['nextAttempt']}" if report["nextAttempt"] else ""
        yield f"attempts     {report['attempts']}, last at {report['lastAttempt']}{next_one}"
    if report["nodeGroups"]:
        yield f"nodes        {_nodes(report)}"
    if report["costPerHour"]:
        bound = report["costLowerBoundPerHour"]
        yield f"cost         {report['costPerHour']} per hour; no plan could cost less than {bound}"
    if report["bookedUntil"]:
        yield f"booked       until {report['bookedUntil']}"
    yield from _blocking(report["blocking"])
    yield ""
    rows = [(one["type"], one["status"], one["reason"], one["since"] or "-") for one in report["conditions"]]
    yield from format_table(("CONDITION", "STATUS", "REASON", "SINCE"), rows)


def _blocking(blocking: Any) -> Iterator[str]:
    """Per pod set what stands in its way, or a list of it."""
    parts = blocking.items() if isinstance(blocking, dict) else [("", blocking)] if blocking else []
    for index, (pod_set, reasons) in enumerate(parts):
        told = "; ".join(map(str, reasons)) if isinstance(reasons, list) else str(reasons)
        yield f"{'blocked by' if not index else '':12} {f'pod set {pod_set}: ' if pod_set else ''}{told}"


def _nodes(report: Json) -> str:
    return ", ".join(f"{group} +{nodes}" for group, nodes in report["nodeGroups"].items()) or "-"


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, length_s in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length_s:
            return f"{int(seconds // length_s)}{unit}"
    return f"{int(seconds)}s"
