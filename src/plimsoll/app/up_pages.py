"""The pages of `plimsoll up`, on one port: metrics, the last plan, explanations, and the health of every service.

The paths are those of `plimsoll run nodes`; `/healthz` lists all services of the process, as kube-apiserver lists its
checks.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controller.controller import Controller
from plimsoll.nodes.reporting.http.pages import DebugPages
from plimsoll.operator.debug_access import DebugGuard
from plimsoll.operator.pages import OperatorPages
from plimsoll.runtime.supervisor import ServiceState
from plimsoll.web.responses import build_text_response

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.responses import Response

    from plimsoll.app.embedded_election import EmbeddedElection
    from plimsoll.app.embedded_nodes import EmbeddedNodeAutoscaler
    from plimsoll.core.clock import Clock
    from plimsoll.local.components import Components
    from plimsoll.nodes.reporting.http.debug import DebugViews
    from plimsoll.operator.debug_access import AccessReviewer
    from plimsoll.operator.metrics import ControllerMetrics
    from plimsoll.operator.pages import Exposition
    from plimsoll.runtime.supervisor import Service, ServiceStatus, Supervisor

PATHS: Final = ("/metrics", "/healthz", "/plan", "/explain?pod=NAMESPACE/NAME")
_WELL: Final = {ServiceState.RUNNING, ServiceState.WAITING, ServiceState.ENDED, ServiceState.STOPPING}


class UpHealth:
    """The health of the services of a process, and of the loop of its node autoscaler."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._supervisor: Supervisor | None = None
        self.autoscaler: EmbeddedNodeAutoscaler | None = None
        self.elections: dict[str, EmbeddedElection] = {}
        """By the names of the controllers that contend."""

    def watch(self, supervisor: Supervisor) -> None:
        """From now on this supervisor runs the services."""
        self._supervisor = supervisor

    def respond(self) -> Response:
        """A line per service; an error if one of them fails or the node autoscaler's loop is overdue."""
        statuses = () if self._supervisor is None else self._supervisor.get_status()
        lines = [_describe(status) for status in statuses]
        is_well = all(status.state in _WELL for status in statuses)
        if self.autoscaler is not None:
            now_s = self._clock.monotonic_s()
            health, role = self.autoscaler.parts.health, self.autoscaler.describe_role()
            problem = health.find_problem(now_s)
            current = ", ".join(part for part in (role, health.describe(now_s)) if part)
            lines.append(f"[-]node autoscaler: {problem}" if problem else f"[+]node autoscaler: {current}")
            is_well = is_well and not problem
        lines += [f"[+]{name}: {election.describe_role()}" for name, election in self.elections.items()]
        text = "\n".join([*lines, "healthz check passed" if is_well else "healthz check failed"])
        return build_text_response(text, HTTPStatus.OK if is_well else HTTPStatus.INTERNAL_SERVER_ERROR)


def _describe(status: ServiceStatus) -> str:
    mark = "[+]" if status.state in _WELL else "[-]"
    restarts = f", restarted {status.restarts} times" if status.restarts else ""
    error = f": {status.last_error}" if status.last_error and status.state not in _WELL else ""
    return f"{mark}{status.name} {status.state.value}{restarts}{error}"


def build_up_pages(
    views: DebugViews, *, metrics: Sequence[Exposition], health: UpHealth, reviewer: AccessReviewer
) -> OperatorPages:
    pages = DebugPages(views)
    return OperatorPages(
        metrics=metrics,
        health={
            "/": _list_pages,
            **dict.fromkeys(("/healthz", "/livez", "/readyz", "/health-check"), health.respond),
        },
        debug={"/snapshotz": pages.show_snapshot, "/plan": pages.show_plan, "/explain": pages.explain},
        guard=DebugGuard(reviewer),
    )


def _list_pages() -> Response:
    return build_text_response("\n".join(PATHS))


def add_controllers(metrics: ControllerMetrics, services: Iterable[Service], components: Components) -> None:
    """Add all controllers that the services run, and the informers and recorders that they share."""
    for service in services:
        controller: Any = getattr(service.run, "__self__", None)
        if isinstance(controller, Controller):
            metrics.add_controller(controller)
    metrics.add_informers(components.informers)
    for recorder in components.recorders:
        metrics.add_recorder(recorder)
