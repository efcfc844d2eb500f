"""Reads ProvisioningRequests from a file, as the controller reads those of a cluster (`nodes.requests.reader`). Pure.

A plan from a file shows the result of each request if it were tried now: back-off and expiry are ignored. Requests that
were answered before are not answered again, but keep their reserved capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.requests.classes import find_class_kind
from plimsoll.nodes.requests.lifecycle import is_over
from plimsoll.nodes.requests.model import Phase
from plimsoll.nodes.requests.reader import read_requests, sort_queue
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.provisioning_requests import ProvisioningClass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from plimsoll.nodes.requests.model import RequestView
    from plimsoll.nodes.requests.reader import ListedRequests
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
    from plimsoll.simulation.scenario import Json

_OPTIONS: Final = ("check-capacity-processor-instance", "provreq-booking-default")
"""The options that reading uses; the others are for planning."""
_PENDING: Final = (Phase.DUE, Phase.WAITING, Phase.INTENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequests:
    """What a file asks for."""

    line: tuple[RequestView, ...] = ()
    """In queue order."""
    held: tuple[RequestView, ...] = ()
    """Requests with room reserved earlier."""
    warnings: tuple[str, ...] = ()


def read_plan_requests(listed: ListedRequests, options: Mapping[str, Any], now: datetime) -> PlanRequests:
    policy = read_options({name: options[name] for name in _OPTIONS if name in options})
    seen = read_requests(listed, policy, now)
    pending = {
        request.name: request for request in seen.all if request.phase in _PENDING and not is_over(request.conditions)
    }
    answered = {request.name for request in seen.all} - {*pending}
    return PlanRequests(
        line=sort_queue(pending.values(), seen.priorities),
        held=seen.held,
        warnings=tuple(_list_warnings(listed.requests, pending, answered, instance=policy.requests.instance)),
    )


def read_classes(bodies: Iterable[Json]) -> tuple[ProvisioningClass, ...]:
    """ProvisioningClasses of a file, in which numbers may stand without quotes."""
    return tuple(
        ProvisioningClass(
            metadata=ObjectMeta(name=str(body["metadata"]["name"])),
            parameters=_get_texts(body.get("parameters")),
            first_parameters=_get_texts(body.get("Parameters")),
        )
        for body in bodies
    )


def _list_warnings(
    requests: Iterable[ProvisioningRequest], pending: Mapping[str, RequestView], answered: set[str], *, instance: str
) -> Iterator[str]:
    """List reasons of requests that are not answered, and of those that are wrong."""
    for request in requests:
        name, kind = f"{request.metadata.namespace}/{request.metadata.name}", request.spec.provisioning_class_name
        known_as = f"ProvisioningRequest {name}"
        if name in pending:
            yield from (
                f"{known_as}: parameter {problem}, and ignored" for problem in pending[name].parameters.problems
            )
        elif name in answered:
            yield f"{known_as} is answered already and not planned for"
        elif request.metadata.deletion_timestamp is not None:
            yield f"{known_as} is being deleted and not answered"
        elif find_class_kind(kind, instance=instance) is None:
            yield f"{known_as} is of class {kind or 'none'}, which no handler here answers"
        else:
            yield f"{known_as} is for another instance and not answered"


def _get_texts(given: Any) -> dict[str, str]:
    return {key: str(value) for key, value in given.items()} if isinstance(given, dict) else {}
