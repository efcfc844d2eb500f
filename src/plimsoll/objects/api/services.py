"""Service and EndpointSlice."""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import Condition, IntOrString, ObjectReference, WireObject


class ServicePort(Wire):
    name: str = ""
    protocol: str = ""
    port: Int64 = 0
    target_port: IntOrString | None = None
    node_port: Int64 = 0
    app_protocol: str = ""


class ServiceSpec(Wire):
    """Without a selector, the endpoints are managed elsewhere. The `cluster_ip` "None" makes a service headless."""

    type: str = ""
    selector: dict[str, str] = {}
    ports: tuple[ServicePort, ...] = ()
    cluster_ip: str = ""
    cluster_ips: tuple[str, ...] = ()
    external_ips: tuple[str, ...] = ()
    external_name: str = ""
    load_balancer_ip: str = ""
    load_balancer_class: str = ""
    ip_families: tuple[str, ...] = ()
    publish_not_ready_addresses: bool = False


class LoadBalancerIngress(Wire):
    ip: str = ""
    hostname: str = ""


class LoadBalancerStatus(Wire):
    ingress: tuple[LoadBalancerIngress, ...] = ()


class ServiceStatus(Wire):
    load_balancer: LoadBalancerStatus = LoadBalancerStatus()
    conditions: tuple[Condition, ...] = ()


class Service(WireObject):
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()


class EndpointConditions(Wire):
    """Absent `ready` and `serving` mean unknown, which readers are to take for true."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class Endpoint(Wire):
    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str = ""
    node_name: str = ""
    target_ref: ObjectReference | None = None
    zone: str = ""


class EndpointPort(Wire):
    name: str = ""
    protocol: str = ""
    port: Int64 | None = None
    app_protocol: str = ""


class EndpointSlice(WireObject):
    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[EndpointPort, ...] = ()
