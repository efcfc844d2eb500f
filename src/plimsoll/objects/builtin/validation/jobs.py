"""Validation of Jobs and CronJobs.

The selector and the labels that the API server generates from the uid are assumed to be present.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import count_bytes
from plimsoll.objects.builtin.validation import pods
from plimsoll.objects.builtin.validation.affinity import validate_label_selector
from plimsoll.objects.builtin.validation.amounts import validate_not_negative
from plimsoll.objects.builtin.validation.cron import find_schedule_problem
from plimsoll.objects.builtin.validation.metadata import validate_unchanged
from plimsoll.objects.builtin.validation.syntax import validate_domain_prefixed_path
from plimsoll.objects.builtin.validation.workloads import MISMATCH, matches
from plimsoll.objects.schema import field_errors as fe

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_MOST_PARALLEL: Final = 100_000
_GENERATED: Final = frozenset(
    {"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}
)
_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
_NEEDS_INDEXES: Final = "requires indexed completion mode"
_IMMUTABLE: Final = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
# The fields of the template that may change as long as the job has not started.
_SCHEDULING: Final = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


def validate_job(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    selector, template = spec.get("selector"), spec.get("template", {})
    errors: list[FieldError] = []
    manual = spec.get("manualSelector", False)
    if not manual and selector is not None and not set(selector.get("matchLabels", {})) <= _GENERATED:
        errors.append(fe.invalid("spec.selector", selector, "`selector` not auto-generated"))
    errors += _validate_job_spec(spec, "spec")
    if not manual:
        return errors
    if selector is None:
        errors.append(fe.required("spec.selector"))
    errors += validate_label_selector(selector, "spec.selector")
    labels = template.get("metadata", {}).get("labels")
    if matches(selector, labels or {}) is False:
        errors.append(fe.invalid("spec.template.metadata.labels", labels, MISMATCH))
    return errors


def _validate_job_spec(spec: Json, path: str) -> list[FieldError]:
    errors = validate_not_negative(
        spec,
        path,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    )
    if "managedBy" in spec:
        errors += validate_domain_prefixed_path(f"{path}.managedBy", spec["managedBy"])
        if count_bytes(spec["managedBy"]) > 63:
            errors.append(fe.too_long(f"{path}.managedBy", 63))
    errors += _validate_completions(spec, path)
    if spec.get("podReplacementPolicy", "Failed") not in ("TerminatingOrFailed", "Failed"):
        supported = ("TerminatingOrFailed", "Failed")
        errors.append(fe.not_supported(f"{path}.podReplacementPolicy", spec["podReplacementPolicy"], supported))
    errors += pods.validate_template(spec.get("template", {}), f"{path}.template")
    return [*errors, *_validate_restart_policy(spec, f"{path}.template.spec.restartPolicy")]


def _validate_completions(spec: Json, path: str) -> list[FieldError]:
    mode = spec.get("completionMode", "NonIndexed")
    errors: list[FieldError] = []
    if mode not in ("NonIndexed", "Indexed"):
        errors.append(fe.not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        if "completions" not in spec:
            errors.append(fe.required(f"{path}.completions", "when completion mode is Indexed"))
        if spec.get("parallelism", 0) > _MOST_PARALLEL:
            detail = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
            errors.append(fe.invalid(f"{path}.parallelism", spec["parallelism"], detail))
        if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
            errors.append(fe.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
        return errors
    errors += [
        fe.invalid(f"{path}.{field}", spec[field], _NEEDS_INDEXES)
        for field in ("backoffLimitPerIndex", "maxFailedIndexes")
        if field in spec
    ]
    return errors


def _validate_restart_policy(spec: Json, path: str) -> list[FieldError]:
    policy = spec.get("template", {}).get("spec", {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        return [fe.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [fe.not_supported(path, policy, ("OnFailure", "Never"))]
    if "podFailurePolicy" in spec and policy != "Never":
        return [fe.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def validate_job_update(new: Json, old: Json) -> list[FieldError]:
    spec, before = new["spec"], old["spec"]
    errors: list[FieldError] = []
    if not _is_elastic(spec, before):
        errors += validate_unchanged("spec.completions", spec.get("completions"), before.get("completions"))
    errors += validate_unchanged("spec.selector", spec.get("selector"), before.get("selector"))
    errors += _validate_template_update(spec.get("template", {}), before.get("template", {}), waiting=_is_waiting(old))
    for field in _IMMUTABLE:
        errors += validate_unchanged(f"spec.{field}", spec.get(field), before.get(field))
    return errors


def _is_elastic(spec: Json, before: Json) -> bool:
    """An indexed job may grow and shrink if it always runs all its indexes at once."""
    indexed = spec.get("completionMode") == "Indexed" and before.get("completionMode") == "Indexed"
    return indexed and all(version.get("completions") == version.get("parallelism") for version in (spec, before))


def _is_waiting(job: Json) -> bool:
    return bool(job["spec"].get("suspend")) and "startTime" not in job.get("status", {})


def _validate_template_update(template: Json, before: Json, *, waiting: bool) -> list[FieldError]:
    if waiting:
        kept = {field: before["spec"][field] for field in _SCHEDULING if field in before.get("spec", {})}
        pod = {field: value for field, value in template.get("spec", {}).items() if field not in _SCHEDULING}
        comparable = {"metadata": before.get("metadata", {}), "spec": {**pod, **kept}}
        reference = {"metadata": before.get("metadata", {}), "spec": before.get("spec", {})}
        return validate_unchanged("spec.template", comparable, reference)
    return validate_unchanged("spec.template", template, before)


def validate_cron_job_create(obj: Json) -> list[FieldError]:
    name = obj.get("metadata", {}).get("name", "")
    errors = validate_cron_job(obj)
    if count_bytes(name) > 52:
        errors.append(fe.invalid("metadata.name", name, "must be no more than 52 characters"))
    return errors


def validate_cron_job(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    schedule = spec.get("schedule", "")
    errors: list[FieldError] = []
    if not schedule:
        errors.append(fe.required("spec.schedule"))
    else:
        problem = find_schedule_problem(schedule)
        if problem:
            errors.append(fe.invalid("spec.schedule", schedule, problem))
    errors += validate_not_negative(spec, "spec", "startingDeadlineSeconds")
    errors += fe.validate_choice("spec.concurrencyPolicy", spec.get("concurrencyPolicy", ""), _CONCURRENCY)
    errors += _validate_job_template(spec.get("jobTemplate", {}).get("spec", {}), "spec.jobTemplate.spec")
    errors += validate_not_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    if spec.get("timeZone") == "":
        errors.append(fe.invalid("spec.timeZone", "", "timeZone must be nil or non-empty string"))
    return errors


def _validate_job_template(spec: Json, path: str) -> list[FieldError]:
    errors = _validate_job_spec(spec, path)
    if "selector" in spec:
        errors.append(fe.invalid(f"{path}.selector", spec["selector"], "`selector` will be auto-generated"))
    if spec.get("manualSelector"):
        errors.append(fe.not_supported(f"{path}.manualSelector", spec["manualSelector"], ("nil", "false")))
    return errors
