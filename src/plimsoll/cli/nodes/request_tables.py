"""ProvisioningRequests for people: a table of all, and the description of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.cli.shared.output import Table
from plimsoll.core.formatting import format_money

if TYPE_CHECKING:
    from collections.abc import Iterator

    Json = dict[str, Any]

_WIDE = 80
"""The maximum length of a message in the table."""


def format_request_table(found: list[Json], *, everywhere: bool) -> Table:
    head: tuple[str, ...] = ("NAME", "CLASS", "PODS", "STATE", "NODES", "COST/H", "AGE", "SAYS")
    rows: list[tuple[Any, ...]] = [
        (
            request["name"],
            request["class"],
            request["pods"],
            request["state"],
            _format_nodes(request),
            _format_cost(request["costPerHour"]) or "-",
            _format_age(request["ageSeconds"]),
            _shorten(request["message"]),
        )
        for request in found
    ]
    if everywhere:
        head = ("NAMESPACE", *head)
        rows = [(request["namespace"], *row) for request, row in zip(found, rows, strict=True)]
    return Table(head, rows)


def format_request(report: Json) -> Iterator[str | Table]:
    yield f"request      {report['namespace']}/{report['name']}"
    yield f"class        {report['class']}"
    sets = ", ".join(f"{pod_set['count']} x {pod_set['template']}" for pod_set in report["podSets"])
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
        yield f"nodes        {_format_nodes(report)}"
    if report["costPerHour"]:
        bound = _format_cost(report["costLowerBoundPerHour"])
        least = f"; at least {bound} is needed" if bound else ""
        yield f"cost         {_format_cost(report['costPerHour'])} per hour{least}"
    if report["bookedUntil"]:
        yield f"booked       until {report['bookedUntil']}"
    yield from _list_blocking_reasons(report["blocking"])
    yield ""
    rows = [
        (condition["type"], condition["status"], condition["reason"], condition["since"] or "-")
        for condition in report["conditions"]
    ]
    yield Table(("CONDITION", "STATUS", "REASON", "SINCE"), rows)


def _format_cost(written: Any) -> str:
    """A cost from the status of a request, which may have been edited."""
    try:
        return format_money(float(written)) if written not in {None, ""} else ""
    except (TypeError, ValueError):
        return str(written)


def _list_blocking_reasons(blocking: Any) -> Iterator[str]:
    """What blocks the request, per pod set."""
    parts = blocking.items() if isinstance(blocking, dict) else [("", blocking)] if blocking else []
    for index, (pod_set, reasons) in enumerate(parts):
        text = "; ".join(map(str, reasons)) if isinstance(reasons, list) else str(reasons)
        yield f"{'blocked by' if not index else '':12} {f'pod set {pod_set}: ' if pod_set else ''}{text}"


def _format_nodes(report: Json) -> str:
    return ", ".join(f"{group} +{nodes}" for group, nodes in report["nodeGroups"].items()) or "-"


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"


def _format_age(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, length_s in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length_s:
            return f"{int(seconds // length_s)}{unit}"
    return f"{int(seconds)}s"
