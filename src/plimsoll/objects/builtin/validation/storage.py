"""Validation of PersistentVolumes, PersistentVolumeClaims, StorageClasses and CSINodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import (
    count_bytes,
    find_dns1123_label_problems,
    find_qualified_name_problems,
    find_subdomain_problems,
)
from plimsoll.core.quantity import Quantity
from plimsoll.objects.builtin.validation import references, volumes
from plimsoll.objects.builtin.validation.affinity import validate_node_selector
from plimsoll.objects.builtin.validation.claims import VOLUME_MODES, validate_access_modes, validate_claim_spec
from plimsoll.objects.builtin.validation.metadata import validate_unchanged
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_RECLAIM_POLICIES: Final = ("Delete", "Recycle", "Retain")
_BINDING_MODES: Final = ("Immediate", "WaitForFirstConsumer")
_ONE_TYPE: Final = "may not specify more than 1 volume type"
_CLAIM_FROZEN: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_MOST_PARAMETERS: Final = 512
_PARAMETER_BYTES: Final = 256 * 1024


def validate_claim(obj: Json) -> list[FieldError]:
    return validate_claim_spec(obj.get("spec", {}), "spec")


def validate_claim_update(new: Json, old: Json) -> list[FieldError]:
    """The difference that Kubernetes prints after its sentence is left out."""
    spec, before = new["spec"], old["spec"]
    bound = new.get("status", {}).get("phase") == "Bound"
    errors: list[FieldError] = []
    if not is_same(
        _extract_immutable_claim(spec, before, bound=bound), _extract_immutable_claim(before, before, bound=bound)
    ):
        errors.append(fe.forbidden("spec", _CLAIM_FROZEN))
    sizes = [
        Quantity.parse(version.get("resources", {}).get("requests", {}).get("storage", "0"))
        for version in (spec, before)
    ]
    capacity = Quantity.parse(old.get("status", {}).get("capacity", {}).get("storage", "0"))
    if sizes[0] < sizes[1] and sizes[0] <= capacity:
        detail = "field can not be less than status.capacity"
        errors.append(fe.forbidden("spec.resources.requests.storage", detail))
    return [*errors, *validate_unchanged("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))]


def _extract_immutable_claim(spec: Json, before: Json, *, bound: bool) -> Json:
    free = {"volumeAttributesClassName"} if bound else set()
    if not before.get("volumeName"):
        free.add("volumeName")
    if "storageClassName" not in before:
        free.add("storageClassName")
    frozen = {field: value for field, value in spec.items() if field not in free}
    if bound:
        frozen["resources"] = {**spec.get("resources", {}), "requests": {}}
    return frozen


def validate_volume(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    modes = spec.get("accessModes", [])
    errors = [] if modes else [fe.required("spec.accessModes")]
    errors += validate_access_modes(modes, "spec.accessModes")
    errors += _validate_capacity(spec.get("capacity", {}))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and policy not in _RECLAIM_POLICIES:
        errors.append(fe.not_supported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES))
    if "nodeAffinity" in spec:
        required = spec["nodeAffinity"].get("required")
        if required is None:
            detail = "must specify required node constraints"
            errors.append(fe.required("spec.nodeAffinity.required", detail))
        else:
            errors += validate_node_selector(required, "spec.nodeAffinity.required")
    errors += _validate_volume_source(spec)
    if spec.get("storageClassName"):
        errors += list_invalid("spec.storageClassName", spec["storageClassName"], find_subdomain_problems)
    if spec.get("volumeMode", "Block") not in VOLUME_MODES:
        errors.append(fe.not_supported("spec.volumeMode", spec["volumeMode"], VOLUME_MODES))
    return errors


def _validate_capacity(capacity: Json) -> list[FieldError]:
    errors = [] if capacity else [fe.required("spec.capacity")]
    if "storage" not in capacity or len(capacity) > 1:
        # A nil map is shown as null.
        errors.append(fe.not_supported("spec.capacity", capacity or None, ("storage",)))
    for name, amount in capacity.items():
        value = Quantity.parse(amount)
        if value.round_up() < 0:
            errors.append(fe.invalid(f"spec.capacity[{name}]", value.round_up(), "must be a valid resource quantity"))
        if value.nano <= 0:
            errors.append(fe.invalid(f"spec.capacity[{name}]", amount, "must be greater than zero"))
    return errors


def _validate_volume_source(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    found = False
    for name, shown, check in _SOURCES:
        source = spec.get(name)
        if source is None:
            continue
        if found:
            errors.append(fe.forbidden(f"spec.{name}", _ONE_TYPE))
            continue
        found = True
        errors += check(source, f"spec.{shown}")
        if name == "local" and "nodeAffinity" not in spec:
            errors.append(fe.required("spec.nodeAffinity", "Local volume requires node affinity"))
    if not found:
        errors.append(fe.required("spec", "must specify a volume type"))
    at_root = spec.get("hostPath", {}).get("path", "").rstrip("/") == "" and spec.get("hostPath", {}).get("path")
    if at_root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(fe.forbidden("spec.persistentVolumeReclaimPolicy", detail))
    return errors


def _validate_local(source: Json, path: str) -> list[FieldError]:
    if not source.get("path"):
        return [fe.required(f"{path}.path")]
    return references.validate_no_backsteps(source["path"], f"{path}.path")


def _validate_csi(source: Json, path: str) -> list[FieldError]:
    errors = volumes.validate_csi_driver(source.get("driver", ""), f"{path}.driver")
    errors += volumes.needs("volumeHandle")(source, path)
    for field in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        if field in source:
            errors += _validate_secret_ref(source[field], f"{path}.{field}")
    return errors


def _validate_secret_ref(ref: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, rule in (("name", find_subdomain_problems), ("namespace", find_dns1123_label_problems)):
        value = ref.get(field, "")
        errors += list_invalid(f"{path}.{field}", value, rule) if value else [fe.required(f"{path}.{field}")]
    return errors


_SOURCES: Final = (
    ("hostPath", "hostPath", volumes.validate_host_path),
    ("gcePersistentDisk", "persistentDisk", volumes.build_disk_validator("pdName")),
    ("awsElasticBlockStore", "awsElasticBlockStore", volumes.build_disk_validator("volumeID")),
    ("glusterfs", "glusterfs", volumes.needs("endpoints", "path")),
    ("flocker", "flocker", volumes.validate_flocker),
    ("nfs", "nfs", volumes.validate_nfs),
    ("rbd", "rbd", volumes.needs("monitors", "image")),
    ("quobyte", "quobyte", volumes.needs("registry", "volume")),
    ("cephfs", "cephfs", volumes.needs("monitors")),
    ("iscsi", "iscsi", volumes.needs("targetPortal", "iqn")),
    ("cinder", "cinder", volumes.needs("volumeID")),
    ("fc", "fc", volumes.validate_fibre_channel),
    ("flexVolume", "flexVolume", volumes.validate_flex),
    ("azureFile", "azureFile", volumes.needs("secretName", "shareName")),
    ("vsphereVolume", "vsphereVolume", volumes.needs("volumePath")),
    ("photonPersistentDisk", "photonPersistentDisk", volumes.needs("pdID")),
    ("portworxVolume", "portworxVolume", volumes.needs("volumeID")),
    ("azureDisk", "azureDisk", volumes.needs("diskName", "diskURI")),
    ("scaleIO", "scaleIO", volumes.needs("gateway", "system", "volumeName")),
    ("local", "local", _validate_local),
    ("storageos", "storageos", volumes.needs("volumeName")),
    ("csi", "csi", _validate_csi),
)


def validate_volume_update(new: Json, old: Json) -> list[FieldError]:
    spec, before = new["spec"], old["spec"]
    errors: list[FieldError] = []
    if any(not is_same(spec.get(name), before.get(name)) for name, _, _ in _SOURCES):
        detail = "spec.persistentvolumesource is immutable after creation"
        errors.append(fe.forbidden("spec.persistentvolumesource", detail))
    errors += validate_unchanged("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
    if "nodeAffinity" in before and not is_same(spec.get("nodeAffinity"), before["nodeAffinity"]):
        detail = "field is immutable, except for updating from beta label to GA"
        errors.append(fe.invalid("nodeAffinity", spec.get("nodeAffinity"), detail))
    return errors


def validate_class(obj: Json) -> list[FieldError]:
    provisioner = obj.get("provisioner", "")
    errors = [] if provisioner else [fe.required("provisioner")]
    errors += [
        fe.invalid("provisioner", provisioner, problem)
        for problem in find_qualified_name_problems(provisioner.lower())
        if provisioner
    ]
    errors += _validate_parameters(obj.get("parameters", {}))
    if obj.get("reclaimPolicy", "Delete") not in _RECLAIM_POLICIES:
        errors.append(fe.not_supported("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain")))
    mode = obj.get("volumeBindingMode", "Immediate")
    if mode not in _BINDING_MODES:
        errors.append(fe.not_supported("volumeBindingMode", mode, _BINDING_MODES))
    return errors


def _validate_parameters(parameters: Json) -> list[FieldError]:
    if len(parameters) > _MOST_PARAMETERS:
        return [fe.too_long("parameters", _MOST_PARAMETERS)]
    errors = [fe.invalid("parameters", "", "field can not be empty.")] if "" in parameters else []
    if sum(count_bytes(key) + count_bytes(value) for key, value in parameters.items()) > _PARAMETER_BYTES:
        errors.append(fe.too_long("parameters", _PARAMETER_BYTES))
    return errors


def validate_class_update(new: Json, old: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.get("parameters", {}) != old.get("parameters", {}):
        errors.append(fe.forbidden("parameters", "updates to parameters are forbidden."))
    if new.get("provisioner") != old.get("provisioner"):
        errors.append(fe.forbidden("provisioner", "updates to provisioner are forbidden."))
    errors += validate_unchanged("reclaimPolicy", new.get("reclaimPolicy"), old.get("reclaimPolicy"))
    return [
        *errors,
        *validate_unchanged("volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode")),
    ]


def validate_csi_node(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for position, driver in enumerate(obj.get("spec", {}).get("drivers", [])):
        here, name = f"spec.drivers[{position}]", driver.get("name", "")
        errors += volumes.validate_csi_driver(name, f"{here}.name")
        if not driver.get("nodeID"):
            errors.append(fe.required(f"{here}.nodeID"))
        count = driver.get("allocatable", {}).get("count", 0)
        if count < 0:
            errors.append(fe.invalid(f"{here}.allocatable.count", count, "must be greater than or equal to 0"))
        if name in names:
            errors.append(fe.duplicate(f"{here}.name", name))
        names.add(name)
        for key in driver.get("topologyKeys", []):
            errors += (
                list_invalid(f"{here}.topologyKeys", key, find_qualified_name_problems) if key else [fe.required(here)]
            )
    return errors
