"""ProvisioningRequests as a turn sees them, and pods that consume them: builders for tests of booking and consuming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import structs

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.requests.model import ClassKind, Phase, RequestView
from plimsoll.nodes.requests.parameters import Parameters
from plimsoll.nodes.requests.status import ConditionReason, Conditions, ConditionType, build_condition
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.provisioning_requests import (
    PodSet,
    PodTemplateReference,
    ProvisioningRequest,
    ProvisioningRequestSpec,
)
from tests.nodes.planning.builders import NOON
from tests.scheduling.builders import pod

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

CHECK = "check-capacity.autoscaling.x-k8s.io"
ATOMIC = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
CONSUME = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS = "autoscaling.x-k8s.io/provisioning-class-name"


def pods_of(cpu: Any = 1, **more: Any) -> Pod:
    """A template: so many cores and as many GiB."""
    return pod("template", requests={"cpu": cpu, "memory": f"{int(cpu * 1024)}Mi"}, **more)


def request_view(
    name: str,
    *sets: tuple[Pod, int],
    class_kind: ClassKind = ClassKind.ATOMIC,
    phase: Phase = Phase.HELD,
    uid: str = "",
    **parameters: Any,
) -> RequestView:
    """Pod sets as (template, count)."""
    meta = ObjectMeta(name=name, namespace="default", uid=uid or f"uid-{name}", creation_timestamp=NOON)
    templates = tuple(
        structs.replace(pod, metadata=structs.replace(pod.metadata, name=f"{name}-{index}", uid=""))
        for index, (pod, _) in enumerate(sets)
    )
    held = build_condition(ConditionType.PROVISIONED, status=True, reason=ConditionReason.FOUND, message="", at=NOON)
    return RequestView(
        request=ProvisioningRequest(
            metadata=meta,
            spec=ProvisioningRequestSpec(
                provisioning_class_name=CHECK if class_kind is ClassKind.CHECK else ATOMIC,
                pod_sets=tuple(
                    PodSet(count=count, pod_template_ref=PodTemplateReference(name=f"t{index}"))
                    for index, (_, count) in enumerate(sets)
                ),
            ),
        ),
        class_kind=class_kind,
        parameters=Parameters(**parameters),
        phase=phase,
        conditions=Conditions((held,)) if phase is Phase.HELD else Conditions(),
        pods=tuple(
            PendingPods(
                key=f"default/{name}/{index}",
                pod=templates[index],
                count=count,
                created=NOON,
                bundle=f"default/{name}",
            )
            for index, (_, count) in enumerate(sets)
        ),
        templates=templates,
    )


def consumer(
    name: str, request: str, template: Pod, *, key: str = CONSUME, stated_class: str = ATOMIC, **labels: str
) -> Pod:
    """A pod made from a template, as it would run: with what the API server adds to it."""
    notes = {key: request, **({CLASS: stated_class} if stated_class else {})}
    added = [
        {"key": f"node.kubernetes.io/{trouble}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for trouble in ("not-ready", "unreachable")
    ]
    made = pod("x", tolerations=added)
    return structs.replace(
        template,
        metadata=structs.replace(
            template.metadata,
            name=name,
            uid=f"uid-{name}",
            annotations=notes,
            labels={**template.metadata.labels, **labels},
        ),
        spec=structs.replace(
            template.spec,
            tolerations=(*template.spec.tolerations, *made.spec.tolerations),
            scheduler_name="default-scheduler",
            priority=0,
        ),
    )
