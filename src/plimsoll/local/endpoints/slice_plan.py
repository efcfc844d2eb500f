"""The layout of a Service's backends in EndpointSlices. Pure.

A slice holds up to a hundred endpoints of one address family and one set of ports. An endpoint stays in its slice, so
that a change of one pod changes one slice; new ones fill slices that are written anyway, then the fullest ones. A
Service without any endpoint has one empty slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.local.endpoints.backends import HEADLESS, Backend, Port, is_headless
from plimsoll.objects.api.services import EndpointSlice  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.objects.api.services import Endpoint, Service

MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"
SERVICE_NAME: Final = "kubernetes.io/service-name"
MOST_IN_A_SLICE: Final = 100


class SliceChange(Value):
    """A slice that is to hold other endpoints, ports or labels."""

    slice: EndpointSlice
    endpoints: tuple[dict[str, Any], ...]
    ports: tuple[dict[str, Any], ...] | None


class NewSlice(Value):
    """A slice that is to be made. `ports` None: of the empty one that stands for no endpoints."""

    family: str
    endpoints: tuple[dict[str, Any], ...]
    ports: tuple[dict[str, Any], ...] | None


class SlicePlan(Value):
    """What has to be done to the slices of a Service."""

    create: tuple[NewSlice, ...] = ()
    update: tuple[SliceChange, ...] = ()
    delete: tuple[EndpointSlice, ...] = ()


class SliceLabels(Value):
    """The labels of a Service's slices. Those of the Service go along, where they are not ours."""

    wanted: dict[str, str]

    @classmethod
    def of(cls, service: Service) -> SliceLabels:
        ours = {MANAGED_BY: MANAGER, SERVICE_NAME: service.metadata.name}
        if is_headless(service):
            ours[HEADLESS] = ""
        reserved = {MANAGED_BY, SERVICE_NAME, HEADLESS}
        copied = {key: value for key, value in service.metadata.labels.items() if key not in reserved}
        return cls(wanted={**copied, **ours})


def plan_slices(
    family: str, backends: Sequence[Backend], slices: Sequence[EndpointSlice], *, drawn: SliceManifests
) -> SlicePlan:
    """`slices` are those of the family that are ours."""
    by_ports: dict[tuple[Port, ...], list[Backend]] = {}
    for backend in backends:
        by_ports.setdefault(backend.ports, []).append(backend)
    plans: list[SlicePlan] = []
    left = {
        endpoint_slice.metadata.name: endpoint_slice
        for endpoint_slice in sorted(slices, key=lambda slice_: slice_.metadata.name)
    }
    for ports, group in by_ports.items():
        fitting = [item for item in left.values() if _read_ports(item) == set(ports) and item.endpoints]
        for endpoint_slice in fitting:
            del left[endpoint_slice.metadata.name]
        plans.append(_Layout(family, ports, group, drawn).plan(fitting))
    return _join_plans(plans, tuple(left.values()), family=family, drawn=drawn)


def _join_plans(
    plans: Iterable[SlicePlan], unused: tuple[EndpointSlice, ...], *, family: str, drawn: SliceManifests
) -> SlicePlan:
    plans = list(plans)
    if plans:
        return _reuse_slices(
            create=[new_slice for plan in plans for new_slice in plan.create],
            update=[slice_change for plan in plans for slice_change in plan.update],
            delete=[*unused, *(endpoint_slice for plan in plans for endpoint_slice in plan.delete)],
        )
    if not unused:
        return SlicePlan(create=(NewSlice(family=family, endpoints=(), ports=None),))
    # The first is emptied instead of deleted: an empty slice shows that a Service has no endpoints.
    first, *others = unused
    is_as_wanted = not first.endpoints and not first.ports and drawn.has_labels(first)
    update = () if is_as_wanted else (SliceChange(slice=first, endpoints=(), ports=None),)
    return SlicePlan(update=update, delete=tuple(others))


def _reuse_slices(
    *, create: Sequence[NewSlice], update: Sequence[SliceChange], delete: Sequence[EndpointSlice]
) -> SlicePlan:
    """A slice that would be deleted while another is made becomes that one."""
    turned = [
        SliceChange(slice=old, endpoints=new.endpoints, ports=new.ports)
        for new, old in zip(create, delete, strict=False)
    ]
    both = len(turned)
    return SlicePlan(create=tuple(create[both:]), update=(*update, *turned), delete=tuple(delete[both:]))


class SliceManifests:
    """How endpoints look in the slices of one Service."""

    def __init__(self, service: Service, zones: Mapping[str, str]) -> None:
        self._namespace = service.metadata.namespace
        self._zones = zones
        self.labels = SliceLabels.of(service).wanted

    def build_endpoint(self, backend: Backend) -> dict[str, Any]:
        body: dict[str, Any] = {
            "addresses": [backend.address],
            "conditions": {
                "ready": backend.is_ready,
                "serving": backend.is_serving,
                "terminating": backend.is_terminating,
            },
            "targetRef": {"kind": "Pod", "namespace": self._namespace, "name": backend.pod, "uid": backend.uid},
        }
        more = {"nodeName": backend.node, "zone": self._zones.get(backend.node, ""), "hostname": backend.hostname}
        return {**body, **{key: value for key, value in more.items() if value}}

    def has_labels(self, endpoint_slice: EndpointSlice) -> bool:
        return endpoint_slice.metadata.labels == self.labels


class _Layout:
    """The endpoints of one set of ports."""

    def __init__(
        self, family: str, ports: tuple[Port, ...], backends: Sequence[Backend], drawn: SliceManifests
    ) -> None:
        self._family = family
        self._ports = tuple(encode_port(port) for port in ports)
        self._wanted = {backend.uid: drawn.build_endpoint(backend) for backend in backends}
        self._drawn = drawn

    def plan(self, slices: Sequence[EndpointSlice]) -> SlicePlan:
        kept, placed = self._keep(slices)
        new = [body for uid, body in self._wanted.items() if uid not in placed]
        changed = {slice_.metadata.name for slice_ in slices if self._is_changed(slice_, kept[slice_.metadata.name])}
        # Fullest first: slices fill up before new ones are begun.
        order = sorted(slices, key=lambda item: (item.metadata.name not in changed, -len(kept[item.metadata.name])))
        for endpoint_slice in order:
            room = MOST_IN_A_SLICE - len(kept[endpoint_slice.metadata.name])
            if new and room > 0:
                kept[endpoint_slice.metadata.name] += new[:room]
                new = new[room:]
                changed.add(endpoint_slice.metadata.name)
        emptied = [item for item in slices if not kept[item.metadata.name]]
        return SlicePlan(
            create=tuple(
                NewSlice(family=self._family, endpoints=tuple(new[at : at + MOST_IN_A_SLICE]), ports=self._ports)
                for at in range(0, len(new), MOST_IN_A_SLICE)
            ),
            update=tuple(
                SliceChange(slice=item, endpoints=tuple(kept[item.metadata.name]), ports=self._ports)
                for item in slices
                if item.metadata.name in changed and kept[item.metadata.name]
            ),
            delete=tuple(emptied),
        )

    def _keep(self, slices: Sequence[EndpointSlice]) -> tuple[dict[str, list[dict[str, Any]]], set[str]]:
        """The endpoints that stay in each slice, in their wanted form; and the uids of their pods."""
        placed: set[str] = set()
        kept: dict[str, list[dict[str, Any]]] = {}
        for endpoint_slice in slices:
            bodies = kept.setdefault(endpoint_slice.metadata.name, [])
            for endpoint in endpoint_slice.endpoints:
                uid = _get_uid(endpoint)
                if uid in self._wanted and uid not in placed and len(bodies) < MOST_IN_A_SLICE:
                    placed.add(uid)
                    bodies.append(self._wanted[uid])
        return kept, placed

    def _is_changed(self, endpoint_slice: EndpointSlice, kept: Sequence[Mapping[str, Any]]) -> bool:
        return [_write_endpoint(endpoint) for endpoint in endpoint_slice.endpoints] != list(
            kept
        ) or not self._drawn.has_labels(endpoint_slice)


def encode_port(port: Port) -> dict[str, Any]:
    body: dict[str, Any] = {"name": port.name, "protocol": port.protocol, "port": port.number}
    return {**body, "appProtocol": port.app_protocol} if port.app_protocol else body


def _read_ports(endpoint_slice: EndpointSlice) -> set[Port]:
    return {
        Port(name=port.name, protocol=port.protocol or "TCP", number=port.port or 0, app_protocol=port.app_protocol)
        for port in endpoint_slice.ports
    }


def _get_uid(endpoint: Endpoint) -> str:
    return "" if endpoint.target_ref is None else endpoint.target_ref.uid


def _write_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    """An endpoint of the cache in the words of `SliceManifests.build_endpoint`."""
    target, conditions = endpoint.target_ref, endpoint.conditions
    body: dict[str, Any] = {
        "addresses": list(endpoint.addresses),
        "conditions": {
            "ready": conditions.ready,
            "serving": conditions.serving,
            "terminating": conditions.terminating,
        },
    }
    if target is not None:
        body["targetRef"] = {
            "kind": target.kind,
            "namespace": target.namespace,
            "name": target.name,
            "uid": target.uid,
        }
    more = {"nodeName": endpoint.node_name, "zone": endpoint.zone, "hostname": endpoint.hostname}
    return {**body, **{key: value for key, value in more.items() if value}}
