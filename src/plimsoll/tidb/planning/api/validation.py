"""Validation of a TidbClusterAutoScaler: all problems at once, ordered by component, rule and field.

The autoscaler is validated with its defaults applied. Where TiDB Operator has the same check, messages begin with its
wording, because people search logs for it. Whether the address of an external endpoint may be called is checked when it
is called. An autoscaler may scale a cluster in another namespace, or use a Secret there, only if an annotation of that
namespace allows it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value
from plimsoll.tidb.model.components import LARGEST_COUNT, RESERVED_TYPES, Component
from plimsoll.tidb.model.field_problem import FieldProblem
from plimsoll.tidb.model.limits import MOST_BYTES, MOST_CORES, MOST_SECONDS
from plimsoll.tidb.planning.api.defaults import apply_defaults, get_component, get_scaled_component, has_storage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from plimsoll.objects.api.meta import Quantity as Written
    from plimsoll.objects.api.tidb import (
        AutoResource,
        AutoRule,
        ComponentAutoScaler,
        ExternalConfig,
        ExternalEndpoint,
        TidbCluster,
        TidbClusterAutoScaler,
        TidbComponent,
    )


_RULES: Final = {Component.TIKV: ("cpu", "storage"), Component.TIDB: ("cpu",)}
_TYPE_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST_TYPE_NAME: Final = 42
"""Keeps the label of the group within 63 characters."""
_NARROW_GAP: Final = 0.2


class ComponentUnderValidation(Value):
    """A component of an autoscaler with its defaults, and what is needed to validate it."""

    component: Component
    scaled: ComponentAutoScaler
    written_types: frozenset[str]
    """Types that the object itself contains; all others are defaults."""
    own: TidbComponent | None
    is_base_known: bool
    whose: str

    @property
    def path(self) -> str:
        return f"spec.{self.component}"

    @property
    def is_external(self) -> bool:
        return self.scaled.external is not None

    def build_problem(self, code: str, field: str, reason: str, *, rule: str = "") -> FieldProblem:
        path = f"{self.path}.{field}" if field else self.path
        return FieldProblem(code=code, field=path, reason=reason, component=self.component, rule=rule)


def find_problems(
    autoscaler: TidbClusterAutoScaler, base: TidbCluster | None, *, open_namespaces: Collection[str] = ()
) -> tuple[FieldProblem, ...]:
    """All problems. `open_namespaces` are other namespaces whose annotation admits this autoscaler.

    Without a base cluster, checks that need one are skipped.
    """
    effective = apply_defaults(autoscaler, base)
    found = [*_find_reference_problems(autoscaler, open_namespaces)]
    for component in Component:
        scaled = get_scaled_component(effective, component)
        written = get_scaled_component(autoscaler, component)
        if scaled is None or written is None:
            continue
        judged = ComponentUnderValidation(
            component=component,
            scaled=scaled,
            written_types=frozenset(written.resources),
            own=get_component(base, component),
            is_base_known=base is not None,
            whose=f"{autoscaler.metadata.namespace}/{autoscaler.metadata.name}",
        )
        found += _find_component_problems(judged)
        found += find_external_problems(
            component, scaled.external, namespace=autoscaler.metadata.namespace, open_namespaces=open_namespaces
        )
    return tuple(sorted(found, key=lambda field_problem: field_problem.order))


def find_warnings(autoscaler: TidbClusterAutoScaler) -> tuple[str, ...]:
    """Settings that are valid but probably not intended."""
    warnings = []
    if autoscaler.spec.resources is not None:
        warnings.append("spec.resources: ignored; resource types belong to a component, spec.<component>.resources")
    effective = apply_defaults(autoscaler, None)
    for component in Component:
        scaled = get_scaled_component(effective, component)
        for name, rule in sorted(scaled.rules.items()) if scaled else ():
            high, low = rule.max_threshold, rule.min_threshold
            if high is not None and low is not None and 0 < high - low < _NARROW_GAP - 1e-9:
                warnings.append(f"spec.{component}.rules.{name}: thresholds {low:g} and {high:g} lie close together")
    return tuple(warnings)


def _find_reference_problems(
    autoscaler: TidbClusterAutoScaler, open_namespaces: Collection[str]
) -> Iterator[FieldProblem]:
    cluster, own_namespace = autoscaler.spec.cluster, autoscaler.metadata.namespace
    if not cluster.name:
        yield FieldProblem(code="", field="spec.cluster.name", reason="Required value")
    if (
        own_namespace
        and cluster.namespace
        and cluster.namespace != own_namespace
        and cluster.namespace not in open_namespaces
    ):
        reason = f"namespace {cluster.namespace} does not allow autoscalers of {own_namespace}"
        yield FieldProblem(code="V16", field="spec.cluster.namespace", reason=reason)


def _find_component_problems(judged: ComponentUnderValidation) -> Iterator[FieldProblem]:
    scaled = judged.scaled
    if not judged.is_external and not scaled.resources:
        reason = f"no resources provided for {judged.component} in {judged.whose}"
        yield judged.build_problem("V01", "resources", reason)
    if not judged.is_external and not scaled.rules:
        yield judged.build_problem("V02", "rules", f"no rules defined for component {judged.component}")
    for name, rule in scaled.rules.items():
        yield from _find_rule_problems(judged, name, rule)
    for name, resource in scaled.resources.items():
        yield from _find_resource_problems(judged, name, resource)
    intervals = {
        "scaleInIntervalSeconds": scaled.scale_in_interval_seconds,
        "scaleOutIntervalSeconds": scaled.scale_out_interval_seconds,
    }
    for field, seconds in intervals.items():
        yield from _find_range_problems(judged, field, seconds, most=MOST_SECONDS)
    yield from _find_base_problems(judged)


def _find_rule_problems(judged: ComponentUnderValidation, name: str, rule: AutoRule) -> Iterator[FieldProblem]:
    path = f"rules.{name}"
    if name not in _RULES[judged.component]:
        yield judged.build_problem("V03", path, f"unknown resource type {name} for {judged.component}", rule=name)
    if rule.resource_type is not None:
        yield judged.build_problem("V15", f"{path}.resource_type", "use resource_types", rule=name)
    for code, field, reason in _find_threshold_problems(rule):
        yield judged.build_problem(code, f"{path}.{field}", reason, rule=name)
    if judged.is_external:
        return
    if not rule.resource_types:
        yield judged.build_problem("V08", f"{path}.resource_types", f"no resources provided for rule {name}", rule=name)
    for unknown in sorted(set(rule.resource_types) - judged.scaled.resources.keys() - RESERVED_TYPES):
        yield judged.build_problem("V09", f"{path}.resource_types", f"unknown resource {unknown}", rule=name)


def _find_threshold_problems(rule: AutoRule) -> Iterator[tuple[str, str, str]]:
    high, low = rule.max_threshold, rule.min_threshold
    if high is None:
        yield "V05", "max_threshold", "Required value"
    elif not math.isfinite(high):
        yield "V13", "max_threshold", f"max_threshold ({high:g}) is not a number"
    elif not 0 < high < 1:
        yield "V05", "max_threshold", f"max_threshold ({high:g}) should be between 0 and 1"
    if low is None:
        return
    if not math.isfinite(low):
        yield "V13", "min_threshold", f"min_threshold ({low:g}) is not a number"
        return
    if not 0 <= low < 1:
        yield "V06", "min_threshold", f"min_threshold ({low:g}) should be between 0 and 1"
    if high is not None and math.isfinite(high) and low >= high:
        yield "V07", "min_threshold", f"min_threshold ({low:g}) > max_threshold ({high:g}), or equal to it"


def _find_resource_problems(
    judged: ComponentUnderValidation, name: str, resource: AutoResource
) -> Iterator[FieldProblem]:
    path = f"resources.{name}"
    yield from _find_range_problems(judged, f"{path}.count", resource.count, most=LARGEST_COUNT)
    if name in RESERVED_TYPES:  # only its count means anything
        return
    if not _TYPE_NAME.fullmatch(name):
        yield judged.build_problem("V10", path, f"must match {_TYPE_NAME.pattern}")
    if len(name) > _LONGEST_TYPE_NAME:
        yield judged.build_problem("V10", path, f"must have at most {_LONGEST_TYPE_NAME} characters")
    if name not in judged.written_types and not judged.is_base_known:
        return
    lacking = "Required value" if name in judged.written_types else ""
    yield from _find_quantity_problems(judged, f"{path}.cpu", resource.cpu, lacking=lacking, at_least=1)
    yield from _find_quantity_problems(judged, f"{path}.memory", resource.memory, lacking=lacking, at_least=1)
    yield from _find_quantity_problems(judged, f"{path}.storage", resource.storage, lacking="", at_least=0)
    if judged.component is Component.TIKV and not has_storage(resource):
        reason = f"resource {name} defined for tikv does not have storage"
        yield judged.build_problem("V04", f"{path}.storage", reason)


def _find_range_problems(
    judged: ComponentUnderValidation, path: str, number: int | None, *, most: int
) -> Iterator[FieldProblem]:
    if number is not None and number < 0:
        yield judged.build_problem("V11", path, f"{number} is less than 0")
    elif number is not None and number > most:
        yield judged.build_problem("V11", path, f"{number} is out of range: at most {most}")


def _find_quantity_problems(
    judged: ComponentUnderValidation, path: str, written: Written | None, *, lacking: str, at_least: int
) -> Iterator[FieldProblem]:
    if written is None:
        if lacking:
            yield judged.build_problem("V11", path, lacking)
        return
    try:
        quantity = Quantity.parse(written)
    except InvalidQuantity as error:
        yield judged.build_problem("V11", path, error.problem)
        return
    if quantity.nano < at_least:
        yield judged.build_problem("V11", path, f"{written} is {'not more' if at_least else 'less'} than 0")
    most = Quantity.parse(str(MOST_CORES)) if path.endswith("cpu") else Quantity.parse(str(MOST_BYTES))
    if quantity.nano > most.nano:
        yield judged.build_problem("V11", path, f"{written} is out of range")


def _find_base_problems(judged: ComponentUnderValidation) -> Iterator[FieldProblem]:
    """Requirements on the base cluster: its new instances are as large as its existing ones."""
    if not judged.is_base_known:
        return
    if judged.own is None:
        yield judged.build_problem("V14", "", f"the TidbCluster has no spec.{judged.component}")
        return
    if judged.is_external:
        return
    replicas = judged.own.replicas
    if not 0 <= replicas <= LARGEST_COUNT:
        yield judged.build_problem("V14", "", f"{judged.path}.replicas of the TidbCluster: {replicas} is out of range")
    needed = ["cpu"]
    if judged.component is Component.TIKV and "storage" in judged.scaled.rules:
        needed.append("storage")
    for name in ("cpu", "memory", "storage"):
        written = judged.own.requests.get(name)
        if written is None:
            if name in needed:
                yield judged.build_problem("V14", "", f"the TidbCluster has no {judged.path}.requests.{name}")
            continue
        yield from (
            judged.build_problem("V14", "", f"{judged.path}.requests.{name} of the TidbCluster: {field_problem.reason}")
            for field_problem in _find_quantity_problems(
                judged, name, written, lacking="", at_least=int(name in needed)
            )
        )


def find_external_problems(
    component: Component, external: ExternalConfig | None, *, namespace: str, open_namespaces: Collection[str]
) -> Iterator[FieldProblem]:
    """Problems of an external endpoint.

    `namespace` is that of the autoscaler; `open_namespaces` share their Secrets with it.
    """
    if external is None:
        return
    found = [(f"endpoint.{field}", reason, "V12") for field, reason in _find_endpoint_problems(external.endpoint)]
    if external.max_replicas is None:
        found.append(("maxReplicas", "Required value", "V12"))
    elif external.max_replicas < 0:
        found.append(("maxReplicas", f"{external.max_replicas} is less than 0", "V12"))
    elif external.max_replicas > LARGEST_COUNT:
        found.append(("maxReplicas", f"{external.max_replicas} is out of range", "V12"))
    secret = external.endpoint.tls_secret
    if secret and namespace and secret.namespace not in {"", namespace, *open_namespaces}:
        reason = f"namespace {secret.namespace} does not allow autoscalers of {namespace}"
        found.append(("endpoint.tlsSecret.namespace", reason, "V16"))
    for field, reason, code in found:
        path = f"spec.{component}.external.{field}"
        yield FieldProblem(code=code, field=path, reason=reason, component=component)


def _find_endpoint_problems(endpoint: ExternalEndpoint) -> Iterator[tuple[str, str]]:
    if not endpoint.host:
        yield "host", "must not be empty"
    if not 1 <= endpoint.port <= 65535:
        yield "port", f"{endpoint.port} is not between 1 and 65535"
    if not endpoint.path.startswith("/"):
        yield "path", "must start with /"
    if endpoint.tls_secret and not endpoint.tls_secret.name:
        yield "tlsSecret.name", "must not be empty"


ALLOW_FROM: Final = "autoscaler.tidb.pingcap.com/allow-from"


def allows_namespace(annotations: Mapping[str, str], namespace: str) -> bool:
    """Whether the annotations of a namespace admit autoscalers of another one: `allow-from: team-a,team-b`."""
    return bool(namespace) and namespace in {name.strip() for name in str(annotations.get(ALLOW_FROM, "")).split(",")}
