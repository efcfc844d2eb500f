"""Validation of containers: names, images, ports, variables, mounts, probes, hooks.

`PodContext` has the properties of the pod. One container list is validated at a time; what two lists may not share
(names, host ports) is checked with the second list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import build_prefix_rule, find_dns1123_label_problems, find_subdomain_problems
from plimsoll.core.values import Value
from plimsoll.objects.builtin.validation import probes, references, resources, security
from plimsoll.objects.builtin.validation.syntax import (
    find_env_name_problems,
    find_port_name_problems,
    find_port_number_problems,
)
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESIZABLE: Final = ("cpu", "memory")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
_PROPAGATIONS: Final = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS: Final = ("Disabled", "Enabled", "IfPossible")
_ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_ENV_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
_NOT_FOR_EPHEMERAL: Final = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_ONE_SOURCE: Final = "may not have more than one field specified at a time"


class PodContext(Value):
    """The properties of a pod that the validity of its containers depends on."""

    volumes: dict[str, Json]
    claims: frozenset[str]
    restart_policy: str
    grace_period_s: int | None
    host_users: bool


def validate_container_list(containers: list[Json], path: str, context: PodContext) -> list[FieldError]:
    if not containers:
        return [fe.required(path)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for position, container in enumerate(containers):
        here, name = f"{path}[{position}]", container.get("name", "")
        errors += _validate_common(container, here, context)
        if name in names:
            errors.append(fe.duplicate(f"{here}.name", name))
        names.add(name)
        errors += probes.validate_container_probes(container, here, grace_period_s=context.grace_period_s)
        if "restartPolicy" in container:
            errors.append(fe.forbidden(f"{here}.restartPolicy", "may not be set for non-init containers"))
    return [*errors, *_validate_host_ports(containers, path)]


def validate_init_containers(
    containers: list[Json], path: str, context: PodContext, *, regular: list[Json]
) -> list[FieldError]:
    errors: list[FieldError] = []
    names = {container.get("name", "") for container in regular}
    for position, container in enumerate(containers):
        here, name = f"{path}[{position}]", container.get("name", "")
        errors += _validate_common(container, here, context)
        policy = container.get("restartPolicy")
        if policy not in (None, "Always"):
            errors.append(fe.not_supported(f"{here}.restartPolicy", policy, ("Always",)))
        if name in names:
            errors.append(fe.duplicate(f"{here}.name", name))
        elif name:
            names.add(name)
        # Kubernetes validates each init container as if it were the only one, with index 0.
        errors += _validate_host_ports([container], path)
        if policy == "Always":
            errors += probes.validate_container_probes(container, here, grace_period_s=context.grace_period_s)
            continue
        errors += [
            fe.forbidden(f"{here}.{field}", "may not be set for init containers without restartPolicy=Always")
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
            if field in container
        ]
    return errors


def validate_ephemeral_containers(
    containers: list[Json], path: str, context: PodContext, *, others: list[Json]
) -> list[FieldError]:
    errors: list[FieldError] = []
    targets = {container.get("name", "") for container in others}
    names = set(targets)
    for position, container in enumerate(containers):
        here, name = f"{path}[{position}]", container.get("name", "")
        errors += _validate_common(container, here, context)
        errors += validate_image_padding(container, here)
        if name in names:
            errors.append(fe.duplicate(f"{here}.name", name))
        names.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in targets:
            errors.append(fe.not_found(f"{here}.targetContainerName", target))
        errors += [
            fe.forbidden(f"{here}.{field}", "cannot be set for an Ephemeral Container")
            for field in _NOT_FOR_EPHEMERAL
            if container.get(field)
        ]
    return errors


def validate_image_padding(container: Json, path: str) -> list[FieldError]:
    """Checked for pods only; Kubernetes has always accepted such templates."""
    image = container.get("image", "")
    if image == image.strip():
        return []
    return [fe.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _validate_common(container: Json, path: str, context: PodContext) -> list[FieldError]:
    errors: list[FieldError] = []
    name = container.get("name", "")
    errors += list_invalid(f"{path}.name", name, find_dns1123_label_problems) if name else [fe.required(f"{path}.name")]
    if not container.get("image"):
        errors.append(fe.required(f"{path}.image"))
    errors += fe.validate_choice(
        f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy", ""), _MESSAGE_POLICIES
    )
    errors += _validate_port(container.get("ports", []), f"{path}.ports")
    errors += _validate_env(container.get("env", []), f"{path}.env")
    errors += _validate_env_from(container.get("envFrom", []), f"{path}.envFrom")
    errors += _validate_mounts(container, f"{path}.volumeMounts", context)
    errors += _validate_devices(container, f"{path}.volumeDevices", context)
    errors += fe.validate_choice(f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), PULL_POLICIES)
    requirements = container.get("resources", {})
    errors += resources.validate_requirements(requirements, f"{path}.resources")
    errors += resources.validate_claim_references(
        requirements.get("claims", []), f"{path}.resources.claims", pod_claims=context.claims
    )
    errors += _validate_resize_policy(container.get("resizePolicy", []), f"{path}.resizePolicy", context.restart_policy)
    if "securityContext" in container:
        errors += security.validate_container(
            container["securityContext"], f"{path}.securityContext", host_users=context.host_users
        )
    return errors


def _validate_port(ports: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for position, port in enumerate(ports):
        here, name = f"{path}[{position}]", port.get("name", "")
        if name:
            problems = list_invalid(f"{here}.name", name, find_port_name_problems)
            if not problems and name in names:
                problems = [fe.duplicate(f"{here}.name", name)]
            errors += problems
            names.add(name)
        for field in ("containerPort", "hostPort"):
            number = port.get(field, 0)
            if number:
                errors += [
                    fe.invalid(f"{here}.{field}", number, problem) for problem in find_port_number_problems(number)
                ]
            elif field == "containerPort":
                errors.append(fe.required(f"{here}.{field}"))
        errors += fe.validate_choice(f"{here}.protocol", port.get("protocol", ""), PROTOCOLS)
    return errors


def _validate_host_ports(containers: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    taken: set[str] = set()
    for position, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", [])):
            if not port.get("hostPort"):
                continue
            used = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if used in taken:
                errors.append(fe.duplicate(f"{path}[{position}].ports[{number}].hostPort", used))
            taken.add(used)
    return errors


def _validate_env(variables: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, variable in enumerate(variables):
        here, name = f"{path}[{position}]", variable.get("name", "")
        errors += list_invalid(f"{here}.name", name, find_env_name_problems) if name else [fe.required(f"{here}.name")]
        if "valueFrom" in variable:
            errors += _validate_value_from(variable, f"{here}.valueFrom")
    return errors


def _validate_value_from(variable: Json, path: str) -> list[FieldError]:
    source = variable["valueFrom"]
    errors: list[FieldError] = []
    if "fieldRef" in source:
        errors += references.validate_field_ref(source["fieldRef"], f"{path}.fieldRef", _ENV_FIELDS)
    if "resourceFieldRef" in source:
        errors += references.validate_resource_ref(
            source["resourceFieldRef"], f"{path}.resourceFieldRef", needs_container=False
        )
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            errors += references.validate_key_ref(source[name], f"{path}.{name}")
    given = sum(name in source for name in _ENV_SOURCES)
    if not given:
        detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        errors.append(fe.invalid(path, "", detail))
    elif variable.get("value"):
        errors.append(fe.invalid(path, "", "may not be specified when `value` is not empty"))
    elif given > 1:
        errors.append(fe.invalid(path, "", _ONE_SOURCE))
    return errors


def _validate_env_from(sources: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, source in enumerate(sources):
        here = f"{path}[{position}]"
        if source.get("prefix"):
            errors += list_invalid(f"{here}.prefix", source["prefix"], find_env_name_problems)
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        for kind in given:
            name = source[kind].get("name", "")
            rule = build_prefix_rule(find_subdomain_problems)
            errors += list_invalid(f"{here}.{kind}.name", name, rule) if name else [fe.required(f"{here}.{kind}.name")]
        if not given:
            errors.append(fe.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(fe.invalid(path, "", _ONE_SOURCE))
    return errors


def _validate_mounts(container: Json, path: str, context: PodContext) -> list[FieldError]:
    errors: list[FieldError] = []
    devices = {device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices", [])}
    device_paths = set(devices.values())
    taken: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts", [])):
        here = f"{path}[{position}]"
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(fe.required(f"{here}.name"))
        if name not in context.volumes:
            errors.append(fe.not_found(f"{here}.name", name))
        if not target:
            errors.append(fe.required(f"{here}.mountPath"))
        if target in taken:
            errors.append(fe.invalid(f"{here}.mountPath", target, "must be unique"))
        taken.add(target)
        if name in devices:
            errors.append(fe.invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if target in device_paths:
            detail = "must not already exist as a path in volumeDevices"
            errors.append(fe.invalid(f"{here}.mountPath", target, detail))
        errors += _validate_sub_path(mount, path, index_path=here)
        errors += _validate_propagation(mount, path, container=container)
    return errors


def _validate_sub_path(mount: Json, path: str, *, index_path: str) -> list[FieldError]:
    """The paths of these errors have no index, as in Kubernetes."""
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    errors = references.validate_descending_path(sub_path, f"{path}.subPath") if sub_path else []
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(fe.invalid(f"{index_path}.subPathExpr", expression, detail))
        errors += references.validate_descending_path(expression, f"{path}.subPathExpr")
    return errors


def _validate_propagation(mount: Json, path: str, *, container: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    propagation, recursion = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation is not None and propagation not in _PROPAGATIONS:
        errors.append(fe.not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS))
    if propagation == "Bidirectional" and not container.get("securityContext", {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(fe.forbidden(f"{path}.mountPropagation", detail))
    here = f"{path}.recursiveReadOnly"
    if recursion is not None and recursion not in _RECURSIONS:
        errors.append(fe.not_supported(here, recursion, _RECURSIONS))
    elif recursion in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            errors.append(fe.forbidden(here, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.append(fe.forbidden(here, detail))
    return errors


def _validate_devices(container: Json, path: str, context: PodContext) -> list[FieldError]:
    errors: list[FieldError] = []
    mounts = {mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts", [])}
    mount_paths = set(mounts.values())
    names: set[str] = set()
    paths: set[str] = set()
    for position, device in enumerate(container.get("volumeDevices", [])):
        here = f"{path}[{position}]"
        name, target = device.get("name", ""), device.get("devicePath", "")
        if not name:
            errors.append(fe.required(f"{here}.name"))
        if name in names:
            errors.append(fe.invalid(f"{here}.name", name, "must be unique"))
        volume = context.volumes.get(name)
        if volume is None:
            errors.append(fe.not_found(f"{here}.name", name))
        elif not {"persistentVolumeClaim", "ephemeral"} & volume.keys():
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(fe.invalid(f"{here}.name", name, detail))
        if not target:
            errors.append(fe.required(f"{here}.devicePath"))
        if target in paths:
            errors.append(fe.invalid(f"{here}.devicePath", target, "must be unique"))
        if ".." in target.split("/"):
            errors.append(fe.invalid(f"{here}.devicePath", target, "can not contain backsteps ('..')"))
        else:
            paths.add(target)
        if name in mounts:
            errors.append(fe.invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        if target in mount_paths:
            detail = "must not already exist as a path in volumeMounts"
            errors.append(fe.invalid(f"{here}.devicePath", target, detail))
        names.add(name)
    return errors


def _validate_resize_policy(policies: list[Json], path: str, restart_policy: str) -> list[FieldError]:
    errors: list[FieldError] = []
    named: set[str] = set()
    for position, policy in enumerate(policies):
        name, action = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in named:
            errors.append(fe.duplicate(f"{path}[{position}]", name))
        named.add(name)
        errors += fe.validate_choice(path, name, _RESIZABLE)
        errors += fe.validate_choice(path, action, _RESIZE_POLICIES)
        if restart_policy == "Never" and action != "NotRequired":
            detail = "must be 'NotRequired' when `restartPolicy` is 'Never'"
            errors.append(fe.invalid(path, action, detail))
    return errors
