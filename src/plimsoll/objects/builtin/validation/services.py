"""Validation of Services, and what of their addresses may change."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_dns1123_label_problems, find_qualified_name_problems, find_subdomain_problems
from plimsoll.objects.builtin.validation.containers import PROTOCOLS
from plimsoll.objects.builtin.validation.syntax import (
    find_port_number_problems,
    find_port_problems,
    parse_ip,
    validate_cidr,
    validate_ip,
)
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.admission.metadata_checks import validate_labels
from plimsoll.objects.schema.field_errors import list_invalid
from plimsoll.objects.schema.go_text import GoStruct

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICIES: Final = ("Cluster", "Local")
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameNode", "PreferSameZone")
_LONGEST_AFFINITY_S: Final = 86400
_KEPT: Final = "may not change once set"
_BALANCER_ONLY: Final = "may only be used when `type` is 'LoadBalancer'"


def is_headless(spec: Json) -> bool:
    return spec.get("clusterIPs") == ["None"]


def is_external(spec: Json) -> bool:
    """Whether the type makes a service reachable from outside the cluster."""
    if spec.get("type") in ("LoadBalancer", "NodePort"):
        return True
    return spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs"))


def validate_service(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    ports = spec.get("ports", [])
    errors: list[FieldError] = []
    if not ports and not is_headless(spec) and spec.get("type") != "ExternalName":
        errors.append(fe.required("spec.ports"))
    errors += _validate_type(spec)
    names: set[str] = set()
    for position, port in enumerate(ports):
        errors += _validate_port(port, f"spec.ports[{position}]", named=len(ports) > 1, names=names)
    errors += validate_labels(spec.get("selector", {}), "spec.selector")
    errors += _validate_affinity(spec)
    errors += _validate_addresses(spec)
    for position, address in enumerate(spec.get("externalIPs", [])):
        path = f"spec.externalIPs[{position}]"
        errors += validate_ip(path, address) or _validate_special_ip(address, path)
    errors += fe.validate_choice("spec.type", spec.get("type", ""), _TYPES)
    errors += _validate_node_ports(spec)
    errors += _validate_load_balancer(spec)
    return [*errors, *_validate_traffic(spec)]


def _validate_type(spec: Json) -> list[FieldError]:
    kind = spec.get("type")
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        return [fe.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")]
    if kind != "ExternalName":
        return []
    errors = [
        fe.forbidden(f"spec.{field}", "may not be set for ExternalName services")
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field)
    ]
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        return [*errors, fe.required("spec.externalName")]
    return [*errors, *list_invalid("spec.externalName", name, find_subdomain_problems)]


def _validate_port(port: Json, path: str, *, named: bool, names: set[str]) -> list[FieldError]:
    name, number = port.get("name", ""), port.get("port", 0)
    errors: list[FieldError] = []
    if named and not name:
        errors.append(fe.required(f"{path}.name"))
    elif name:
        errors += list_invalid(f"{path}.name", name, find_dns1123_label_problems)
        if name in names:
            errors.append(fe.duplicate(f"{path}.name", name))
        names.add(name)
    errors += [fe.invalid(f"{path}.port", number, problem) for problem in find_port_number_problems(number)]
    errors += fe.validate_choice(f"{path}.protocol", port.get("protocol", ""), PROTOCOLS)
    target = port.get("targetPort", 0)
    errors += [fe.invalid(f"{path}.targetPort", target, problem) for problem in find_port_problems(target)]
    if "appProtocol" in port:
        errors += list_invalid(f"{path}.appProtocol", port["appProtocol"], find_qualified_name_problems)
    return errors


def _validate_affinity(spec: Json) -> list[FieldError]:
    affinity, path = spec.get("sessionAffinity", ""), "spec.sessionAffinityConfig"
    errors = fe.validate_choice("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    if affinity == "ClientIP":
        seconds = spec.get("sessionAffinityConfig", {}).get("clientIP", {}).get("timeoutSeconds")
        if seconds is None:
            errors.append(fe.required(f"{path}.clientIP.timeoutSeconds", "when session affinity type is ClientIP"))
        elif not 0 < seconds <= _LONGEST_AFFINITY_S:
            detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY_S}"
            errors.append(fe.invalid(f"{path}.clientIP.timeoutSeconds", seconds, detail))
    elif affinity == "None" and "sessionAffinityConfig" in spec:
        errors.append(fe.forbidden(path, "must not be set when session affinity is None"))
    return errors


def _validate_addresses(spec: Json) -> list[FieldError]:
    """clusterIP, clusterIPs and the families they belong to."""
    if spec.get("type") == "ExternalName":
        return []
    errors: list[FieldError] = []
    primary, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs", [])
    path, families = "spec.clusterIPs", spec.get("ipFamilies", [])
    if primary and not addresses:
        errors.append(fe.required(path))
    elif primary and addresses[0] != primary:
        errors.append(fe.invalid(path, addresses, "first value must match `clusterIP`"))
    elif not primary and addresses:
        errors.append(fe.invalid(path, addresses, "must be empty when `clusterIP` is not specified"))
    seen: set[str] = set()
    for position, family in enumerate(families):
        if family not in _FAMILIES:
            errors.append(fe.not_supported(f"spec.ipFamilies[{position}]", family, _FAMILIES))
        if family in seen:
            errors.append(fe.duplicate(f"spec.ipFamilies[{position}]", family))
        seen.add(family)
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        errors.append(fe.not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    return [*errors, *_validate_cluster_ips(addresses, families, path)]


def _validate_cluster_ips(addresses: list[str], families: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, address in enumerate(addresses):
        if position == 0 and address == "None":
            if len(addresses) > 1:
                errors.append(fe.invalid(path, addresses, "'None' must be the first and only value"))
            continue
        errors += validate_ip(f"{path}[{position}]", address)
    broken = bool(errors)
    if len(addresses) > 2:
        errors.append(fe.invalid(path, addresses, "may only hold up to 2 values"))
    if broken or addresses == ["None"]:
        return errors
    six = [isinstance(parse_ip(address), ipaddress.IPv6Address) for address in addresses]
    if len(addresses) > 1 and len(set(six)) == 1:
        errors.append(fe.invalid(path, addresses, "may specify no more than one IP for each IP family"))
    for position, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if family in _FAMILIES and (family == "IPv6") != six[position]:
            detail = f"expected an {family} value as indicated by `ipFamilies[{position}]`"
            errors.append(fe.invalid(f"{path}[{position}]", address, detail))
    return errors


def _validate_special_ip(address: str, path: str) -> list[FieldError]:
    parsed = parse_ip(address)
    if parsed is None:
        return []
    errors: list[FieldError] = []
    if parsed.is_unspecified:
        errors.append(fe.invalid(path, address, f"may not be unspecified ({address})"))
    if parsed.is_loopback:
        errors.append(fe.invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if parsed.is_link_local:
        errors.append(fe.invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    return errors


def _validate_node_ports(spec: Json) -> list[FieldError]:
    ports = spec.get("ports", [])
    errors: list[FieldError] = []
    if spec.get("type") == "ClusterIP":
        errors += [
            fe.forbidden(f"spec.ports[{position}].nodePort", "may not be used when `type` is 'ClusterIP'")
            for position, port in enumerate(ports)
            if port.get("nodePort")
        ]
    taken: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        used = (port.get("protocol", ""), port.get("nodePort", 0))
        if used[1] and used in taken:
            errors.append(fe.duplicate(f"spec.ports[{position}].nodePort", used[1]))
        taken.add(used)
    served: set[tuple[str, int]] = set()
    for position, port in enumerate(ports):
        offered = (port.get("protocol", ""), port.get("port", 0))
        if offered in served:
            errors.append(fe.duplicate(f"spec.ports[{position}]", _print_port(*offered)))
        served.add(offered)
    return errors


def _print_port(protocol: str, number: int) -> GoStruct:
    """The key by which Kubernetes compares ports, as Go prints it."""
    return GoStruct(
        fields={
            "Name": "",
            "Protocol": protocol,
            "AppProtocol": None,
            "Port": number,
            "TargetPort": 0,
            "NodePort": 0,
        }
    )


def _validate_load_balancer(spec: Json) -> list[FieldError]:
    balanced = spec.get("type") == "LoadBalancer"
    errors: list[FieldError] = []
    ranges = spec.get("loadBalancerSourceRanges", [])
    if ranges and not balanced:
        errors.append(fe.forbidden("spec.LoadBalancerSourceRanges", _BALANCER_ONLY))
    for position, block in enumerate(ranges):
        errors += validate_cidr(f"spec.LoadBalancerSourceRanges[{position}]", block.strip())
    if "allocateLoadBalancerNodePorts" in spec and not balanced:
        errors.append(fe.forbidden("spec.allocateLoadBalancerNodePorts", _BALANCER_ONLY))
    if "loadBalancerClass" in spec:
        if balanced:
            errors += list_invalid("spec.loadBalancerClass", spec["loadBalancerClass"], find_qualified_name_problems)
        else:
            errors.append(fe.forbidden("spec.loadBalancerClass", _BALANCER_ONLY))
    return errors


def _validate_traffic(spec: Json) -> list[FieldError]:
    """A missing healthCheckNodePort is not an error: the API server allocates one first."""
    errors: list[FieldError] = []
    outer, inner = spec.get("externalTrafficPolicy", ""), spec.get("internalTrafficPolicy")
    if is_external(spec):
        errors += fe.validate_choice("spec.externalTrafficPolicy", outer, _POLICIES)
    elif outer:
        detail = "may only be set for externally-accessible services"
        errors.append(fe.invalid("spec.externalTrafficPolicy", outer, detail))
    health = spec.get("healthCheckNodePort", 0)
    if spec.get("type") != "LoadBalancer" or outer != "Local":
        if health:
            detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
            errors.append(fe.invalid("spec.healthCheckNodePort", health, detail))
    elif health:
        errors += [
            fe.invalid("spec.healthCheckNodePort", health, problem) for problem in find_port_number_problems(health)
        ]
    if inner is not None and inner not in _POLICIES:
        errors.append(fe.not_supported("spec.internalTrafficPolicy", inner, _POLICIES))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        errors.append(fe.not_supported("spec.trafficDistribution", distribution, _DISTRIBUTIONS))
    return errors


def validate_service_update(new: Json, old: Json) -> list[FieldError]:
    spec, before = new["spec"], old["spec"]
    if "ExternalName" in (spec.get("type"), before.get("type")):
        return []
    errors = _check_kept_addresses(spec, before)
    families, were = spec.get("ipFamilies", []), before.get("ipFamilies", [])
    if (
        is_headless(spec) == is_headless(before)
        and not is_headless(spec)
        and families
        and were
        and families[0] != were[0]
    ):
        errors.append(fe.invalid("spec.ipFamilies[0]", families, _KEPT))
    both_balanced = spec.get("type") == before.get("type") == "LoadBalancer"
    if both_balanced and spec.get("loadBalancerClass") != before.get("loadBalancerClass"):
        errors.append(fe.invalid("spec.loadBalancerClass", spec.get("loadBalancerClass"), _KEPT))
    return errors


def _check_kept_addresses(spec: Json, before: Json) -> list[FieldError]:
    """Copy the stored addresses into an update that names none, as the API server does."""
    addresses, were = spec.get("clusterIPs", []), before.get("clusterIPs", [])
    if not addresses or not were or (is_headless(spec) and is_headless(before)):
        return []
    if len(addresses) == len(were):
        return [
            fe.invalid(f"spec.clusterIPs[{position}]", addresses, _KEPT)
            for position, address in enumerate(were[:2])
            if address != addresses[position]
        ]
    errors = [] if addresses[0] == were[0] else [fe.invalid("spec.clusterIPs[0]", addresses, _KEPT)]
    if len(addresses) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        detail = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        errors.append(fe.invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), detail))
    return errors
