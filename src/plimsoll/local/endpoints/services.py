"""Both endpoint controllers at once: what whoever puts a cluster together asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.endpoints import endpoints, slices
from plimsoll.local.endpoints.endpoints import EndpointsObjects
from plimsoll.local.endpoints.slices import EndpointSlices
from plimsoll.runtime.services import Service

if TYPE_CHECKING:
    from plimsoll.local.components import Components


def endpoint_services(components: Components) -> list[Service]:
    parts = (EndpointSlices(components.component(slices.NAME)), EndpointsObjects(components.component(endpoints.NAME)))
    return [Service(name=part.controller.name, run=part.controller.run) for part in parts]
