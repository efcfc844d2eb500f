"""The services of both endpoint controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.endpoints import endpoints_controller, slice_controller
from plimsoll.local.endpoints.endpoints_controller import EndpointsController
from plimsoll.local.endpoints.slice_controller import EndpointSliceController
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from plimsoll.local.components import Components


def build_endpoint_services(components: Components) -> list[Service]:
    parts = (
        EndpointSliceController(components.build_component(slice_controller.NAME)),
        EndpointsController(components.build_component(endpoints_controller.NAME)),
    )
    return [Service(name=part.controller.name, run=part.controller.run) for part in parts]
