"""Validation of the volumes of a pod: one source per volume, and the rules of the sources.

Persistent volumes share some of the sources. Most sources only have fields that must not be empty; those are in a
table, the others have a function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import count_bytes, find_dns1123_label_problems, find_subdomain_problems
from plimsoll.core.quantity import Quantity
from plimsoll.objects.builtin.validation import references
from plimsoll.objects.builtin.validation.claims import validate_claim_spec
from plimsoll.objects.builtin.validation.syntax import format_inclusive_range
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.admission import metadata_checks
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_ONE_TYPE: Final = "may not specify more than 1 volume type"
_MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_NOT_ALLOWED_IN_TEMPLATE_METADATA: Final = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_DOWNWARD_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)


def validate_volumes(volumes: list[Json], path: str, *, pod_name: str = "") -> tuple[dict[str, Json], list[FieldError]]:
    """The usable volumes by name, and what is wrong with the others."""
    usable: dict[str, Json] = {}
    errors: list[FieldError] = []
    created = (
        {f"{pod_name}-{volume.get('name', '')}" for volume in volumes if "ephemeral" in volume} if pod_name else set()
    )
    for position, volume in enumerate(volumes):
        here, name = f"{path}[{position}]", volume.get("name", "")
        found = _validate_source(volume, here, pod_name=pod_name)
        found += (
            list_invalid(f"{here}.name", name, find_dns1123_label_problems) if name else [fe.required(f"{here}.name")]
        )
        if name in usable:
            found.append(fe.duplicate(f"{here}.name", name))
        if not found:
            usable[name] = volume
        errors += found
        claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        if claim in created and "persistentVolumeClaim" in volume:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(fe.invalid(f"{here}.persistentVolumeClaim.claimName", claim, detail))
    return usable, errors


def _validate_source(volume: Json, path: str, *, pod_name: str) -> list[FieldError]:
    errors: list[FieldError] = []
    found = False
    for name, shown, check in _SOURCES:
        source = volume.get(name)
        if source is None:
            continue
        if found:
            errors.append(fe.forbidden(f"{path}.{_FORBIDDEN_AS.get(name, name)}", _ONE_TYPE))
            continue
        found = True
        errors += check(source, f"{path}.{shown}")
        if name == "ephemeral" and pod_name and volume.get("name"):
            errors += _check_created_claim(pod_name, volume["name"], path)
    return errors if found else [fe.required(path, "must specify a volume type")]


def _check_created_claim(pod_name: str, volume_name: str, path: str) -> list[FieldError]:
    claim = f"{pod_name}-{volume_name}"
    return [
        fe.invalid(f"{path}.name", volume_name, f'PVC name "{claim}": {problem}')
        for problem in find_subdomain_problems(claim)
    ]


def needs(*fields: str) -> Callable[[Json, str], list[FieldError]]:
    """A source whose only rule is that these fields are set."""

    def check(source: Json, path: str) -> list[FieldError]:
        return [fe.required(f"{path}.{field}") for field in fields if not source.get(field)]

    return check


def _validate_empty_dir(source: Json, path: str) -> list[FieldError]:
    if Quantity.parse(source.get("sizeLimit", "0")).nano < 0:
        return [fe.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def validate_host_path(source: Json, path: str) -> list[FieldError]:
    if not source.get("path"):
        return [fe.required(f"{path}.path")]
    errors = references.validate_no_backsteps(source["path"], f"{path}.path")
    if source.get("type", "") not in _HOST_PATH_TYPES:
        errors.append(fe.not_supported(f"{path}.type", source["type"], _HOST_PATH_TYPES))
    return errors


def _validate_git_repo(source: Json, path: str) -> list[FieldError]:
    errors = needs("repository")(source, path)
    return [*errors, *references.validate_descending_path(source.get("directory", ""), f"{path}.directory")]


def build_disk_validator(id_field: str) -> Callable[[Json, str], list[FieldError]]:
    """A cloud's disk with partitions."""

    def check(source: Json, path: str) -> list[FieldError]:
        errors = needs(id_field)(source, path)
        partition = source.get("partition", 0)
        if not 0 <= partition <= 255:
            errors.append(fe.invalid(f"{path}.partition", partition, format_inclusive_range(1, 255)))
        return errors

    return check


def validate_nfs(source: Json, path: str) -> list[FieldError]:
    errors = needs("server", "path")(source, path)
    if not source.get("path", "").startswith("/"):
        errors.append(fe.invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return errors


def _validate_mode(source: Json, path: str, field: str = "defaultMode") -> list[FieldError]:
    mode = source.get(field, 0)
    return [] if 0 <= mode <= 0o777 else [fe.invalid(f"{path}.{field}", mode, _MODE_RULE)]


def _build_files_validator(name_field: str) -> Callable[[Json, str], list[FieldError]]:
    """A Secret or ConfigMap as files."""

    def check(source: Json, path: str) -> list[FieldError]:
        errors = [*needs(name_field)(source, path), *_validate_mode(source, path)]
        for position, item in enumerate(source.get("items", [])):
            errors += _validate_key_to_path(item, f"{path}.items[{position}]")
        return errors

    return check


def _validate_key_to_path(item: Json, path: str) -> list[FieldError]:
    errors = needs("key", "path")(item, path)
    errors += references.validate_non_reserved_path(item.get("path", ""), f"{path}.path")
    return [*errors, *_validate_mode(item, path, "mode")]


def _validate_downward(source: Json, path: str) -> list[FieldError]:
    errors = _validate_mode(source, path)
    for item in source.get("items", []):
        errors += _validate_downward_file(item, path)
    return errors


def _validate_downward_file(item: Json, path: str) -> list[FieldError]:
    """The path has no index, as in Kubernetes."""
    errors = needs("path")(item, path)
    errors += references.validate_non_reserved_path(item.get("path", ""), f"{path}.path")
    if "fieldRef" in item:
        errors += references.validate_field_ref(item["fieldRef"], f"{path}.fieldRef", _DOWNWARD_FIELDS)
        if "resourceFieldRef" in item:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(fe.invalid(path, "resource", detail))
    elif "resourceFieldRef" in item:
        errors += references.validate_resource_ref(
            item["resourceFieldRef"], f"{path}.resourceFieldRef", needs_container=True
        )
    else:
        errors.append(fe.required(path, "one of fieldRef and resourceFieldRef is required"))
    return [*errors, *_validate_mode(item, path, "mode")]


def _check_projected(source: Json, path: str) -> list[FieldError]:
    errors = _validate_mode(source, path)
    taken: set[str] = set()
    for position, projection in enumerate(source.get("sources", [])):
        here = f"{path}.sources[{position}]"
        for name in ("secret", "configMap"):
            if name in projection:
                errors += _check_projected_keys(projection[name], f"{here}.{name}", root=path, taken=taken)
        for item in projection.get("downwardAPI", {}).get("items", []):
            errors += _validate_downward_file(item, f"{here}.downwardAPI")
            errors += _check_taken_paths(item.get("path", ""), item.get("path", ""), root=path, taken=taken)
        if "serviceAccountToken" in projection:
            errors += _validate_token(projection["serviceAccountToken"], f"{here}.serviceAccountToken", root=path)
        if len(projection) > 1:
            errors.append(fe.forbidden(here, "may not specify more than 1 volume type per source"))
    return errors


def _check_projected_keys(source: Json, path: str, *, root: str, taken: set[str]) -> list[FieldError]:
    errors = needs("name")(source, path)
    for position, item in enumerate(source.get("items", [])):
        errors += _validate_key_to_path(item, f"{path}.items[{position}]")
        errors += _check_taken_paths(item.get("path", ""), source.get("name", ""), root=root, taken=taken)
    return errors


def _check_taken_paths(file: str, shown: str, *, root: str, taken: set[str]) -> list[FieldError]:
    if file and file in taken:
        return [fe.invalid(root, shown, "conflicting duplicate paths")]
    taken.add(file)
    return []


def _validate_token(source: Json, path: str, *, root: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds = source.get("expirationSeconds", 0)
    if seconds < 600:
        errors.append(
            fe.invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        )
    if seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(fe.invalid(f"{path}.expirationSeconds", seconds, detail))
    if not source.get("path"):
        return [*errors, fe.required(f"{root}.path")]
    return [*errors, *references.validate_non_reserved_path(source["path"], f"{root}.path")]


def validate_csi_driver(driver: str, path: str) -> list[FieldError]:
    errors = [] if driver else [fe.required(path)]
    if count_bytes(driver) > 63:
        errors.append(fe.too_long(path, 63))
    return [*errors, *(fe.invalid(path, driver, problem) for problem in find_subdomain_problems(driver.lower()))]


def _validate_csi(source: Json, path: str) -> list[FieldError]:
    errors = validate_csi_driver(source.get("driver", ""), f"{path}.driver")
    if "nodePublishSecretRef" in source:
        name = source["nodePublishSecretRef"].get("name", "")
        if not name:
            return [*errors, fe.required(f"{path}.nodePublishSecretRef.name")]
        errors += list_invalid(f"{path}.name", name, find_subdomain_problems)
    return errors


def validate_flocker(source: Json, path: str) -> list[FieldError]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    errors: list[FieldError] = []
    if not name and not uuid:
        errors.append(fe.required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(fe.invalid(path, "resource", detail))
    if "/" in name:
        errors.append(fe.invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return errors


def _validate_ephemeral(source: Json, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [fe.required(f"{path}.volumeClaimTemplate")]
    here, meta = f"{path}.volumeClaimTemplate", template.get("metadata", {})
    errors = metadata_checks.validate_annotations(meta.get("annotations", {}), f"{here}.metadata.annotations")
    errors += metadata_checks.validate_labels(meta.get("labels", {}), f"{here}.metadata.labels")
    errors += [
        fe.forbidden(f"{here}.metadata.{field}", "cannot be set")
        for field in _NOT_ALLOWED_IN_TEMPLATE_METADATA
        if meta.get(field)
    ]
    return [*errors, *validate_claim_spec(template.get("spec", {}), f"{here}.spec")]


def validate_flex(source: Json, path: str) -> list[FieldError]:
    errors = needs("driver")(source, path)
    for option in source.get("options", {}):
        prefix = f".{option.partition('/')[0].lower()}"
        if prefix.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(fe.invalid(f"{path}.options[{option}]", option, detail))
    return errors


def validate_fibre_channel(source: Json, path: str) -> list[FieldError]:
    targets, ids, lun = source.get("targetWWNs", []), source.get("wwids", []), source.get("lun")
    errors: list[FieldError] = []
    if not targets and not ids:
        detail = "must specify either targetWWNs or wwids, but not both"
        errors.append(fe.required(f"{path}.targetWWNs", detail))
    if targets and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(fe.invalid(f"{path}.targetWWNs", targets, detail))
    if targets and lun is None:
        errors.append(fe.required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    elif targets and not 0 <= (lun or 0) <= 255:
        errors.append(fe.invalid(f"{path}.lun", lun, format_inclusive_range(0, 255)))
    return errors


def accept_source(_source: Json, _path: str) -> list[FieldError]:
    """A source whose inner rules are not checked here; `docs/reference/built-in-validation.md` lists them."""
    return []


# (field, name in the path of its errors, rule), in the order of Kubernetes; the first that is set counts.
_SOURCES: Final = (
    ("emptyDir", "emptyDir", _validate_empty_dir),
    ("hostPath", "hostPath", validate_host_path),
    ("gitRepo", "gitRepo", _validate_git_repo),
    ("gcePersistentDisk", "persistentDisk", build_disk_validator("pdName")),
    ("awsElasticBlockStore", "awsElasticBlockStore", build_disk_validator("volumeID")),
    ("secret", "secret", _build_files_validator("secretName")),
    ("nfs", "nfs", validate_nfs),
    ("iscsi", "iscsi", needs("targetPortal", "iqn")),
    ("glusterfs", "glusterfs", needs("endpoints", "path")),
    ("flocker", "flocker", validate_flocker),
    ("persistentVolumeClaim", "persistentVolumeClaim", needs("claimName")),
    ("rbd", "rbd", needs("monitors", "image")),
    ("cinder", "cinder", needs("volumeID")),
    ("cephfs", "cephfs", needs("monitors")),
    ("quobyte", "quobyte", needs("registry", "volume")),
    ("downwardAPI", "downwardAPI", _validate_downward),
    ("fc", "fc", validate_fibre_channel),
    ("flexVolume", "flexVolume", validate_flex),
    ("configMap", "configMap", _build_files_validator("name")),
    ("azureFile", "azureFile", needs("secretName", "shareName")),
    ("vsphereVolume", "vsphereVolume", needs("volumePath")),
    ("photonPersistentDisk", "photonPersistentDisk", needs("pdID")),
    ("portworxVolume", "portworxVolume", needs("volumeID")),
    ("azureDisk", "azureDisk", needs("diskName", "diskURI")),
    ("storageos", "storageos", needs("volumeName")),
    ("projected", "projected", _check_projected),
    ("scaleIO", "scaleIO", needs("gateway", "system", "volumeName")),
    ("csi", "csi", _validate_csi),
    ("ephemeral", "ephemeral", _validate_ephemeral),
    ("image", "image", accept_source),
)
# Where Kubernetes misspells the field it forbids.
_FORBIDDEN_AS: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
