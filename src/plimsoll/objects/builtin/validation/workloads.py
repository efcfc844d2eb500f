"""Validation of Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers and ControllerRevisions.

The objects are decoded and defaulted. Only templates are validated, not pods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.names import find_dns1123_label_problems
from plimsoll.core.selectors import LabelSelector, parse_requirement
from plimsoll.objects.builtin.validation import pods
from plimsoll.objects.builtin.validation.affinity import validate_label_selector
from plimsoll.objects.builtin.validation.amounts import (
    is_zero,
    validate_count_or_percent,
    validate_not_negative,
    validate_not_over_all,
)
from plimsoll.objects.builtin.validation.metadata import validate_unchanged
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid
from plimsoll.objects.schema.go_text import GoStruct
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

MISMATCH: Final = "`selector` does not match template `labels`"
_STATEFUL_MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_STATEFUL_FORBIDDEN: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def matches(selector: Json | None, labels: Json) -> bool | None:
    """Does it select these labels? An absent selector selects nothing; None: it is not a selector at all."""
    if selector is None:
        return False
    try:
        expressions = [
            parse_requirement(expression.get("key", ""), expression.get("operator", ""), expression.get("values", []))
            for expression in selector.get("matchExpressions", [])
        ]
        return LabelSelector.from_parts(selector.get("matchLabels", {}), expressions).matches(labels)
    except InvalidSelector:
        return None


def is_empty(selector: Json) -> bool:
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def validate_deployment(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    errors = validate_not_negative(spec, "spec", "replicas")
    errors += _check_selected_template(spec, empty="empty selector is invalid for deployment")
    errors += _validate_deployment_strategy(spec.get("strategy", {}), "spec.strategy")
    errors += validate_not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        errors.append(fe.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def validate_replica_set(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    errors = validate_not_negative(spec, "spec", "replicas", "minReadySeconds")
    # Kubernetes prints "deployment" for a ReplicaSet, too.
    return [*errors, *_check_selected_template(spec, empty="empty selector is invalid for deployment")]


def _check_selected_template(spec: Json, *, empty: str) -> list[FieldError]:
    """The selector, the template, and whether they go together."""
    selector, template = spec.get("selector"), spec.get("template", {})
    if selector is None:
        errors = [fe.required("spec.selector")]
    else:
        errors = validate_label_selector(selector, "spec.selector")
        if is_empty(selector):
            errors.append(fe.invalid("spec.selector", selector, empty))
    labels = template.get("metadata", {}).get("labels")
    selected = matches(selector, labels or {})
    if selected is None:
        return [*errors, fe.invalid("spec.selector", selector, "invalid label selector")]
    if not selected:
        errors.append(fe.invalid("spec.template.metadata.labels", labels, MISMATCH))
    errors += pods.validate_template(template, "spec.template")
    return [*errors, *_validate_long_running(template.get("spec", {}), kind="ReplicaSet")]


def _validate_long_running(spec: Json, *, kind: str) -> list[FieldError]:
    """Pods of these kinds always have the restart policy Always."""
    errors: list[FieldError] = []
    if spec.get("restartPolicy") != "Always":
        path = "spec.template.spec.restartPolicy"
        errors.append(fe.not_supported(path, spec.get("restartPolicy", ""), ("Always",)))
    if "activeDeadlineSeconds" in spec:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(fe.forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return errors


def _validate_deployment_strategy(strategy: Json, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is None:
            return []
        return [fe.forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
    if kind != "RollingUpdate":
        return [fe.not_supported(path, _print_strategy(strategy), ("Recreate", "RollingUpdate"))]
    rolling = rolling or {}
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    here = f"{path}.rollingUpdate"
    errors = validate_count_or_percent(unavailable, f"{here}.maxUnavailable")
    errors += validate_count_or_percent(surge, f"{here}.maxSurge")
    if is_zero(unavailable) and is_zero(surge):
        errors.append(fe.invalid(f"{here}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return [*errors, *validate_not_over_all(unavailable, f"{here}.maxUnavailable")]


def _print_strategy(strategy: Json) -> GoStruct:
    return GoStruct(fields={"Type": strategy.get("type", ""), "RollingUpdate": strategy.get("rollingUpdate")})


def validate_daemon_set(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    selector, template = spec.get("selector"), spec.get("template", {})
    errors = validate_label_selector(selector, "spec.selector")
    labels = template.get("metadata", {}).get("labels")
    if matches(selector, labels or {}) is False:
        errors.append(fe.invalid("spec.template.metadata.labels", labels, MISMATCH))
    if selector is not None and is_empty(selector):
        errors.append(fe.invalid("spec.selector", selector, "empty selector is invalid for daemonset"))
    errors += pods.validate_template(template, "spec.template")
    errors += _validate_long_running(template.get("spec", {}), kind="DaemonSet")
    errors += validate_not_negative(spec, "spec", "minReadySeconds")
    errors += _validate_daemon_strategy(spec.get("updateStrategy", {}), "spec.updateStrategy")
    return [*errors, *validate_not_negative(spec, "spec", "revisionHistoryLimit")]


def _validate_daemon_strategy(strategy: Json, path: str) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [fe.not_supported(path, _print_strategy(strategy), ("RollingUpdate", "OnDelete"))]
    if rolling is None:
        return [fe.required(f"{path}.rollingUpdate")]
    errors: list[FieldError] = []
    for field in ("maxUnavailable", "maxSurge"):
        here = f"{path}.rollingUpdate.{field}"
        errors += validate_count_or_percent(rolling.get(field, 0), here)
        errors += validate_not_over_all(rolling.get(field, 0), here)
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    if not is_zero(unavailable) and not is_zero(surge):
        detail = "may not be set when maxUnavailable is non-zero"
        errors.append(fe.invalid(f"{path}.rollingUpdate.maxSurge", surge, detail))
    elif is_zero(unavailable) and is_zero(surge):
        errors.append(fe.required(f"{path}.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def validate_stateful_set(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    errors = _validate_stateful_policy(spec)
    errors += validate_not_negative(spec, "spec", "replicas", "minReadySeconds")
    errors += validate_not_negative(spec.get("ordinals", {}), "spec.ordinals", "start")
    if spec.get("serviceName"):
        errors += list_invalid("spec.serviceName", spec["serviceName"], find_dns1123_label_problems)
    selector, template = spec.get("selector"), _add_claimed_volumes(spec)
    if selector is None:
        errors.append(fe.required("spec.selector"))
    else:
        errors += validate_label_selector(selector, "spec.selector")
        if is_empty(selector):
            errors.append(fe.invalid("spec.selector", selector, "empty selector is invalid for statefulset"))
    labels = template.get("metadata", {}).get("labels")
    selected = matches(selector, labels or {})
    if selected is None:
        errors.append(fe.invalid("spec.selector", selector, ""))
    else:
        if not selected:
            errors.append(fe.invalid("spec.template.metadata.labels", labels, MISMATCH))
        errors += pods.validate_template(template, "spec.template")
    return [*errors, *_validate_long_running(template.get("spec", {}), kind="StatefulSet")]


def _validate_stateful_policy(spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    management, strategy = spec.get("podManagementPolicy", ""), spec.get("updateStrategy", {})
    if management not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        errors.append(fe.invalid("spec.podManagementPolicy", management, detail))
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        if rolling is not None:
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            errors.append(fe.invalid("spec.updateStrategy.rollingUpdate", rolling, detail))
    elif kind == "RollingUpdate":
        errors += validate_not_negative(rolling or {}, "spec.updateStrategy.rollingUpdate", "partition")
    else:
        detail = "must be 'RollingUpdate' or 'OnDelete'"
        errors.append(fe.invalid("spec.updateStrategy", _print_strategy(strategy), detail))
    retention = spec.get("persistentVolumeClaimRetentionPolicy", {})
    for field in ("whenDeleted", "whenScaled"):
        if retention.get(field, "Retain") not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            errors.append(fe.not_supported(path, retention[field], ("Retain", "Delete")))
    return errors


def _add_claimed_volumes(spec: Json) -> Json:
    """The template as its pods will be: each claim template becomes a volume of its name."""
    template = spec.get("template", {})
    claims = [claim.get("metadata", {}).get("name", "") for claim in spec.get("volumeClaimTemplates", [])]
    pod = template.get("spec", {})
    present = {volume.get("name") for volume in pod.get("volumes", [])}
    added = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for name in dict.fromkeys(claims)
        if name and name not in present and not find_dns1123_label_problems(name)
    ]
    return {**template, "spec": {**pod, "volumes": [*pod.get("volumes", []), *added]}}


def validate_controller(obj: Json) -> list[FieldError]:
    """A ReplicationController: its selector is a plain map."""
    spec = obj.get("spec", {})
    errors = validate_not_negative(spec, "spec", "minReadySeconds")
    selector, template = spec.get("selector", {}), spec.get("template")
    if not selector:
        errors.append(fe.required("spec.selector"))
    errors += validate_not_negative(spec, "spec", "replicas")
    if template is None:
        return [*errors, fe.required("spec.template")]
    labels = template.get("metadata", {}).get("labels")
    if any((labels or {}).get(key) != value for key, value in selector.items()):
        errors.append(fe.invalid("spec.template.metadata.labels", labels, MISMATCH))
    errors += pods.validate_template(template, "spec.template")
    return [*errors, *_validate_long_running(template.get("spec", {}), kind="ReplicationController")]


def validate_revision(obj: Json) -> list[FieldError]:
    errors = [] if "data" in obj else [fe.required("data", "data is mandatory")]
    return [*errors, *validate_not_negative(obj, "", "revision")]


def validate_selector_update(new: Json, old: Json) -> list[FieldError]:
    return validate_unchanged("spec.selector", new["spec"].get("selector"), old["spec"].get("selector"))


def validate_stateful_set_update(new: Json, old: Json) -> list[FieldError]:
    frozen = [
        {field: value for field, value in version.get("spec", {}).items() if field not in _STATEFUL_MUTABLE}
        for version in (new, old)
    ]
    return [] if is_same(*frozen) else [fe.forbidden("spec", _STATEFUL_FORBIDDEN)]


def validate_revision_update(new: Json, old: Json) -> list[FieldError]:
    return validate_unchanged("data", new.get("data"), old.get("data"))
