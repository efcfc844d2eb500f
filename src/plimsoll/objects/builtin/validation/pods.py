"""Validation of pods and of pod templates, in Kubernetes' order; and what may change in a pod.

Validates Pods, PodTemplates and the templates of workloads. Works on decoded, defaulted
objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_dns1123_label_problems, find_qualified_name_problems, find_subdomain_problems
from plimsoll.core.quantity import Quantity
from plimsoll.objects.builtin.validation import affinity, containers, resources, security, volumes
from plimsoll.objects.builtin.validation.syntax import (
    find_underscored_subdomain_problems,
    format_inclusive_range,
    validate_ip,
)
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.admission import metadata_checks
from plimsoll.objects.schema.field_errors import list_invalid
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_MAX_INT32: Final = 2**31 - 1
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_MIRROR: Final = "kubernetes.io/config.mirror"
_UPDATABLE: Final = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_new_pod(pod: Json) -> list[FieldError]:
    spec = pod.get("spec", {})
    errors = _validate_pod(pod)
    if spec.get("ephemeralContainers"):
        errors.append(fe.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(fe.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def _validate_pod(pod: Json) -> list[FieldError]:
    spec, meta = pod.get("spec", {}), pod.get("metadata", {})
    errors = _validate_annotations(meta.get("annotations", {}), "metadata.annotations", spec=spec)
    errors += validate_spec(spec, "spec", pod_name=meta.get("name", ""), is_pod=True)
    for name in ("containers", "initContainers"):
        for position, container in enumerate(spec.get(name, [])):
            errors += containers.validate_image_padding(container, f"spec.{name}[{position}]")
    return errors


def validate_template(template: Json, path: str) -> list[FieldError]:
    """A pod template. Kubernetes leaves `metadata` out of the paths of its labels and annotations."""
    spec, meta = template.get("spec", {}), template.get("metadata", {})
    errors = metadata_checks.validate_labels(meta.get("labels", {}), f"{path}.labels")
    errors += metadata_checks.validate_annotations(meta.get("annotations", {}), f"{path}.annotations")
    errors += _validate_annotations(meta.get("annotations", {}), f"{path}.annotations", spec=spec)
    errors += validate_spec(spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(fe.forbidden(f"{path}.spec.ephemeralContainers", detail))
    return errors


def validate_pod_template_create(obj: Json) -> list[FieldError]:
    return validate_template(obj.get("template", {}), "template")


def _validate_annotations(annotations: Json, path: str, *, spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    if _MIRROR in annotations and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(fe.invalid(f"{path}[{_MIRROR}]", annotations[_MIRROR], detail))
    cost = annotations.get(_DELETION_COST)
    if cost is not None and not _is_int32(cost):
        errors.append(fe.invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    return errors


def _is_int32(text: str) -> bool:
    digits = text.removeprefix("-")
    canonical = digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
    return canonical and len(digits) <= 10 and -(2**31) <= int(text) < 2**31


def validate_spec(spec: Json, path: str, *, pod_name: str = "", is_pod: bool = False) -> list[FieldError]:
    usable, errors = volumes.validate_volumes(spec.get("volumes", []), f"{path}.volumes", pod_name=pod_name)
    errors += _validate_resource_claims(spec.get("resourceClaims", []), f"{path}.resourceClaims")
    context = containers.PodContext(
        volumes=usable,
        claims=frozenset(claim["name"] for claim in spec.get("resourceClaims", []) if claim.get("name")),
        restart_policy=spec.get("restartPolicy", ""),
        grace_period_s=spec.get("terminationGracePeriodSeconds"),
        host_users=spec.get("hostUsers", True),
    )
    regular, initial = spec.get("containers", []), spec.get("initContainers", [])
    errors += containers.validate_container_list(regular, f"{path}.containers", context)
    errors += containers.validate_init_containers(initial, f"{path}.initContainers", context, regular=regular)
    errors += containers.validate_ephemeral_containers(
        spec.get("ephemeralContainers", []), f"{path}.ephemeralContainers", context, others=[*regular, *initial]
    )
    errors += _validate_pod_resources(spec, f"{path}.resources")
    if spec.get("hostNetwork"):
        errors += _validate_host_network(regular, f"{path}.containers", is_pod=is_pod)
    errors += fe.validate_choice(f"{path}.restartPolicy", spec.get("restartPolicy", ""), RESTART_POLICIES)
    errors += fe.validate_choice(f"{path}.dnsPolicy", spec.get("dnsPolicy", ""), _DNS_POLICIES)
    errors += metadata_checks.validate_labels(spec.get("nodeSelector", {}), f"{path}.nodeSelector")
    errors += security.validate_pod(spec.get("securityContext", {}), f"{path}.securityContext", spec=spec)
    errors += affinity.validate_affinity(spec.get("affinity", {}), f"{path}.affinity")
    errors += _validate_dns(spec, f"{path}.dnsConfig")
    errors += _validate_gates(spec, path)
    errors += affinity.validate_spread_constraints(
        spec.get("topologySpreadConstraints", []), f"{path}.topologySpreadConstraints"
    )
    if spec.get("hostUsers") is False:
        errors += _validate_host_users(spec, path)
    return [*errors, *_validate_scalars(spec, path)]


def _validate_resource_claims(claims: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for position, claim in enumerate(claims):
        here, name = f"{path}[{position}]", claim.get("name", "")
        if not name:
            errors.append(fe.required(f"{here}.name"))
        elif name in names:
            errors.append(fe.duplicate(f"{here}.name", name))
        else:
            errors += list_invalid(f"{here}.name", name, find_dns1123_label_problems)
            names.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if field in claim]
        if len(given) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(fe.invalid(here, claim, detail))
        if not given:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(fe.invalid(here, claim, detail))
        for field in given:
            errors += list_invalid(f"{here}.{field}", claim[field], find_subdomain_problems)
    return errors


def _validate_pod_resources(spec: Json, path: str) -> list[FieldError]:
    """Requests and limits of the whole pod, and the containers' against them."""
    requested = spec.get("resources")
    if requested is None:
        return []
    errors: list[FieldError] = []
    if requested.get("claims"):
        errors.append(fe.forbidden(f"{path}.claims", "claims cannot be set for Resources at pod-level"))
    errors += resources.validate_requirements(requested, path, name_rule=resources.validate_pod_name)
    totals: dict[str, Quantity] = {}
    for container in spec.get("containers", []):
        for name, amount in container.get("resources", {}).get("requests", {}).items():
            totals[name] = totals.get(name, Quantity(0)) + Quantity.parse(amount)
    for name, total in totals.items():
        mine = requested.get("requests", {}).get(name, "0")
        if total > Quantity.parse(mine):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(fe.invalid(f"{path}.requests[{name}]", mine, detail))
    for position, container in enumerate(spec.get("containers", [])):
        for name, amount in container.get("resources", {}).get("limits", {}).items():
            limit = requested.get("limits", {}).get(name)
            if limit is not None and Quantity.parse(amount) > Quantity.parse(limit):
                detail = f"must be less than or equal to pod limits of {limit}"
                errors.append(fe.invalid(f"{path}.containers[{position}][{name}].limits", amount, detail))
    return errors


def _validate_host_network(regular: list[Json], path: str, *, is_pod: bool) -> list[FieldError]:
    return [
        fe.invalid(
            f"{path}[{position}].ports[{number}].hostPort",
            port.get("hostPort", 0),
            "must match `containerPort` when `hostNetwork` is true",
        )
        for position, container in enumerate(regular)
        for number, port in enumerate(container.get("ports", []))
        if (is_pod or port.get("hostPort")) and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


def _validate_dns(spec: Json, path: str) -> list[FieldError]:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [fe.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [fe.required(f"{path}.nameservers", detail)]
    config = config or {}
    errors: list[FieldError] = []
    servers, searches = config.get("nameservers", []), config.get("searches", [])
    if len(servers) > 3:
        errors.append(fe.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for position, server in enumerate(servers):
        errors += validate_ip(f"{path}.nameservers[{position}]", server)
    if len(searches) > 32:
        errors.append(fe.invalid(f"{path}.searches", searches, "must not have more than 32 search paths"))
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        errors.append(fe.invalid(f"{path}.searches", searches, detail))
    for position, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            errors += list_invalid(f"{path}.searches[{position}]", name, find_underscored_subdomain_problems)
    for position, option in enumerate(config.get("options", [])):
        if not option.get("name"):
            errors.append(fe.required(f"{path}.options[{position}]", "must not be empty"))
    return errors


def _validate_gates(spec: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, gate in enumerate(spec.get("readinessGates", [])):
        here = f"{path}.readinessGates[{position}].conditionType"
        errors += list_invalid(here, gate.get("conditionType", ""), find_qualified_name_problems)
    seen: set[str] = set()
    for position, gate in enumerate(spec.get("schedulingGates", [])):
        here, name = f"{path}.schedulingGates[{position}]", gate.get("name", "")
        errors += list_invalid(here, name, find_qualified_name_problems)
        if name in seen:
            errors.append(fe.duplicate(here, name))
        seen.add(name)
    return errors


def _validate_host_users(spec: Json, path: str) -> list[FieldError]:
    """The spelling of the paths is Kubernetes'."""
    named = (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC"))
    detail = "when `pod.Spec.HostUsers` is false"
    return [fe.forbidden(f"{path}.{shown}", detail) for field, shown in named if spec.get(field)]


def _validate_scalars(spec: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("serviceAccountName", "nodeName"):
        if spec.get(field):
            errors += list_invalid(f"{path}.{field}", spec[field], find_subdomain_problems)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_INT32:
        errors.append(fe.invalid(f"{path}.activeDeadlineSeconds", deadline, format_inclusive_range(1, _MAX_INT32)))
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            errors += list_invalid(f"{path}.{field}", spec[field], find_dns1123_label_problems)
    errors += affinity.validate_tolerations(spec.get("tolerations", []), f"{path}.tolerations")
    errors += _validate_aliases(spec.get("hostAliases", []), f"{path}.hostAliases")
    if spec.get("priorityClassName"):
        errors += list_invalid(f"{path}.priorityClassName", spec["priorityClassName"], find_subdomain_problems)
    if "runtimeClassName" in spec:
        errors += list_invalid(f"{path}.runtimeClassName", spec["runtimeClassName"], find_subdomain_problems)
    if "preemptionPolicy" in spec:
        errors += fe.validate_choice(f"{path}.preemptionPolicy", spec["preemptionPolicy"], PREEMPTION_POLICIES)
    if "overhead" in spec:
        errors += resources.validate_requirements({"limits": spec["overhead"]}, f"{path}.overhead")
    return [*errors, *(_validate_os(spec["os"], f"{path}.os") if "os" in spec else [])]


def _validate_aliases(aliases: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, alias in enumerate(aliases):
        errors += validate_ip(f"{path}[{position}].ip", alias.get("ip", ""))
        for number, name in enumerate(alias.get("hostnames", [])):
            errors += list_invalid(f"{path}[{position}].hostnames[{number}]", name, find_subdomain_problems)
    return errors


def _validate_os(system: Json, path: str) -> list[FieldError]:
    name = system.get("name", "")
    if not name:
        return [fe.required(f"{path}.name", "cannot be empty")]
    return [] if name in ("linux", "windows") else [fe.not_supported(path, name, ("linux", "windows"))]


def validate_pod_update(pod: Json, old: Json) -> list[FieldError]:
    """Almost nothing of a pod may change. The difference Kubernetes prints after its sentence is left out."""
    spec, before = pod.get("spec", {}), old.get("spec", {})
    errors = _validate_pod(pod)
    for name in ("containers", "initContainers"):
        if len(spec.get(name, [])) != len(before.get(name, [])):
            return [*errors, fe.forbidden(f"spec.{name}", "pod updates may not add or remove containers")]
    deadline, earlier = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    here = "spec.activeDeadlineSeconds"
    if deadline is not None and earlier is not None and earlier < deadline:
        return [*errors, fe.invalid(here, deadline, "must be less than or equal to previous value")]
    if deadline is None and earlier is not None:
        errors.append(fe.invalid(here, None, "must not update from a positive integer to nil value"))
    errors += _check_kept_tolerations(spec.get("tolerations", []), before.get("tolerations", []))
    known = {gate.get("name") for gate in before.get("schedulingGates", [])}
    for position, gate in enumerate(spec.get("schedulingGates", [])):
        if gate.get("name") not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            errors.append(fe.forbidden(f"spec.schedulingGates[{position}].name", detail))
    if not is_same(_extract_immutable_part(spec, before), _extract_immutable_part(before, before)):
        errors.append(fe.forbidden("spec", f"pod updates may not change fields other than {_UPDATABLE}"))
    return errors


def _check_kept_tolerations(tolerations: list[Json], before: list[Json]) -> list[FieldError]:
    kept = {_strip_seconds(toleration) for toleration in tolerations}
    if all(_strip_seconds(toleration) in kept for toleration in before):
        return []
    return [fe.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _strip_seconds(toleration: Json) -> tuple[str, ...]:
    return tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))


def _extract_immutable_part(spec: Json, before: Json) -> Json:
    """A spec without what may change. A gated pod's node selector and affinity may still be narrowed."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        free.add("terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        free |= {"nodeSelector", "affinity"}
    frozen = {field: value for field, value in spec.items() if field not in free}
    for name in ("containers", "initContainers"):
        frozen[name] = [{**container, "image": ""} for container in spec.get(name, [])]
    return frozen
