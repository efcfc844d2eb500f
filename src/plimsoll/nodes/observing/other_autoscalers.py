"""Other programs that add and remove nodes of the same cluster: an upstream Cluster Autoscaler, and Karpenter.

Two autoscalers buy nodes for the same pods and remove each other's nodes, so this one does not act while another one is
at work. Evidence is what only an administrator can make, because any user with permission to create pods could
otherwise stop the autoscaler: a held lease in the namespace of the system, and a pod with an autoscaler's image in that
namespace, or with a service account that may change nodes. A pod that contends for our own lease is not evidence: only
one of us leads.

A held lease counts until the same version of it has been there for its whole duration by our own clock, as in the
election itself: clocks are not compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import structlog

from plimsoll.core.values import Value
from plimsoll.kube.errors import ApiCallFailed, Forbidden, NotFound, UnreadableAnswer
from plimsoll.kube.transport import JSON, Request
from plimsoll.nodes.config.policy import AUTOSCALER_LEASE
from plimsoll.nodes.model.pod_traits import KUBE_SYSTEM
from plimsoll.objects.api.coordination import Lease

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.informer import Informer
    from plimsoll.nodes.config.policy import Operation
    from plimsoll.objects.api.pods import Pod

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

CLUSTER_AUTOSCALER: Final = "Cluster Autoscaler"
KARPENTER: Final = "Karpenter"
KARPENTER_LEASE: Final = "karpenter-leader-election"
_PROGRAM_OF_LEASE: Final = {AUTOSCALER_LEASE: CLUSTER_AUTOSCALER, KARPENTER_LEASE: KARPENTER}
_ARCHITECTURES: Final = ("-amd64", "-arm64", "-ppc64le", "-s390x")
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_IMAGE_INDEX: Final = "image of an autoscaler"
_LOOK_EVERY_S: Final = 60.0
_LOOK_AGAIN_S: Final = 5.0
"""While another autoscaler is at work, or this is not known."""
_LONGEST_LEASE_S: Final = 60.0
_LEASE_S: Final = 15.0
_REVIEW_EVERY_S: Final = 600.0


class LeaseKey(NamedTuple):
    """The namespace and name of a lease."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"lease {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherAutoscaler:
    """A program that is at work on the same nodes, and the evidence for it."""

    program: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.program} ({self.evidence})"


def find_program(image: str) -> str:
    """The autoscaler that an image holds; empty: another program."""
    repository = image.partition("@")[0]
    path = repository.split("/")
    name = path[-1].partition(":")[0]
    for suffix in _ARCHITECTURES:
        name = name.removesuffix(suffix)
    if name == "cluster-autoscaler":
        return CLUSTER_AUTOSCALER
    if name == "karpenter" or (name == "controller" and len(path) > 1 and path[-2] == "karpenter"):
        return KARPENTER
    return ""


def find_program_of_pod(pod: Pod) -> str:
    """The autoscaler that a pod runs; empty: none, or the pod has ended."""
    if pod.status.phase in {"Succeeded", "Failed"} or pod.metadata.deletion_timestamp is not None:
        return ""
    return next((program for container in pod.spec.containers if (program := find_program(container.image))), "")


async def read_command_lines(client: Client, pod: Pod) -> list[str]:
    """The words of the command lines of a pod, which cached pods do not hold; none if the pod is gone."""
    path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods"
    found = await client.get_json(path, [("fieldSelector", f"metadata.name={pod.metadata.name}")])
    containers = [container for item in found.get("items") or () for container in item["spec"].get("containers") or ()]
    return [str(word) for container in containers for key in ("command", "args") for word in container.get(key) or ()]


def find_contended_lease(words: Iterable[str]) -> LeaseKey | None:
    """The lease that a Cluster Autoscaler contends for, by its command line; None: it acts without one."""
    flags = {}
    for word in words:
        name, has_value, value = word.lstrip("-").partition("=")
        if word.startswith("-"):
            flags[name] = value if has_value else "true"
    if flags.get("leader-elect", "true").lower() == "false":
        return None
    namespace = flags.get("leader-elect-resource-namespace") or flags.get("namespace") or KUBE_SYSTEM
    return LeaseKey(namespace, flags.get("leader-elect-resource-name") or AUTOSCALER_LEASE)


def find_own_lease(operation: Operation) -> LeaseKey | None:
    """The lease that this autoscaler takes; None without leader election."""
    if not operation.leader_elect or operation.dry_run:
        return None
    return LeaseKey(operation.lease_namespace or operation.namespace, operation.lease_name)


class OtherAutoscalers:
    """Looks for other autoscalers, at most once per minute while there is none. Created before the informers run."""

    def __init__(self, client: Client, pods: Informer[Pod], *, clock: Clock) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._leases: dict[LeaseKey, _SeenLease] = {}
        self._reviews: dict[str, _Review] = {}
        self._contended: dict[str, LeaseKey | None] = {}
        """By the uid of a pod."""
        self._found: tuple[OtherAutoscaler, ...] = ()
        self._looked_s = -math.inf
        self._is_known = False
        self._warned: set[str] = set()
        pods.add_index(_IMAGE_INDEX, lambda pod: [program] if (program := find_program_of_pod(pod)) else [])

    async def find(self, operation: Operation) -> tuple[OtherAutoscaler, ...]:
        """The other autoscalers at work. Until the first look succeeds, one that could not be looked for.

        A dry run looks for none: it is made to run beside another autoscaler.
        """
        if operation.dry_run:
            return ()
        now_s = self._clock.monotonic_s()
        wait_s = _LOOK_EVERY_S if self._is_known and not self._found else _LOOK_AGAIN_S
        if now_s - self._looked_s >= wait_s:
            self._looked_s = now_s
            await self._look(find_own_lease(operation))
        return self._found

    async def _look(self, own: LeaseKey | None) -> None:
        try:
            found = (*await self._look_at_leases(own), *await self._look_at_pods(own))
        except ApiCallFailed as error:
            log.warning("other_autoscalers.unknown", problem=str(error))
            if not self._is_known:
                self._found = (OtherAutoscaler(program="it is not known which", evidence=str(error)),)
            return
        self._is_known = True
        if found != self._found:
            for other in found:
                log.warning("other_autoscaler.found", program=other.program, evidence=other.evidence)
            if not found:
                log.info("other_autoscaler.gone", before=", ".join(map(str, self._found)))
        self._found = found

    # ---- leases

    async def _look_at_leases(self, own: LeaseKey | None) -> list[OtherAutoscaler]:
        found = []
        for name, program in _PROGRAM_OF_LEASE.items():
            key = LeaseKey(KUBE_SYSTEM, name)
            if key == own:
                continue
            holder = await self._read_holder(key)
            if holder:
                found.append(OtherAutoscaler(program=program, evidence=f"{key} is held by {holder}"))
        return found

    async def _read_holder(self, key: LeaseKey) -> str:
        """The holder of a lease; empty: there is none, or it has not renewed the lease for its duration."""
        try:
            lease = await self._client.get(Lease, key.name, namespace=key.namespace)
        except NotFound:
            self._leases.pop(key, None)
            return ""
        except Forbidden as error:
            self._warn_once("other_autoscalers.lease_not_readable", str(error))
            return ""
        now_s = self._clock.monotonic_s()
        seen = self._leases.get(key)
        if seen is None or seen.version != lease.metadata.resource_version:
            seen = self._leases[key] = _SeenLease(lease.metadata.resource_version, now_s)
        duration_s = lease.spec.lease_duration_seconds or _LEASE_S
        is_expired = now_s - seen.since_s > min(duration_s, _LONGEST_LEASE_S)
        return "" if is_expired else lease.spec.holder_identity or ""

    # ---- pods

    async def _look_at_pods(self, own: LeaseKey | None) -> list[OtherAutoscaler]:
        programs = _PROGRAM_OF_LEASE.values()
        pods = [pod for program in programs for pod in self._pods.cache.list_by_index(_IMAGE_INDEX, program)]
        uids = {pod.metadata.uid for pod in pods}
        self._contended = {uid: lease for uid, lease in self._contended.items() if uid in uids}
        found = []
        for pod in pods:
            meta, program = pod.metadata, find_program_of_pod(pod)
            if program == CLUSTER_AUTOSCALER and own is not None and await self._find_contended_lease(pod) == own:
                continue
            if meta.namespace == KUBE_SYSTEM or await self._may_change_nodes(pod):
                found.append(OtherAutoscaler(program=program, evidence=f"pod {meta.namespace}/{meta.name} runs it"))
        return found

    async def _find_contended_lease(self, pod: Pod) -> LeaseKey | None:
        uid = pod.metadata.uid
        if uid not in self._contended:
            self._contended[uid] = find_contended_lease(await read_command_lines(self._client, pod))
        return self._contended[uid]

    async def _may_change_nodes(self, pod: Pod) -> bool:
        """Whether the pod's service account may change nodes: an autoscaler must, and other pods may not."""
        account = pod.spec.service_account_name or "default"
        user = f"system:serviceaccount:{pod.metadata.namespace}:{account}"
        now_s = self._clock.monotonic_s()
        review = self._reviews.get(user)
        if review is None or now_s - review.at_s > _REVIEW_EVERY_S:
            allowed = await review_node_access(self._client, user, pod.metadata.namespace)
            review = self._reviews[user] = _Review(allowed, now_s)
        return review.allowed

    def _warn_once(self, event: str, problem: str) -> None:
        if problem not in self._warned:
            self._warned.add(problem)
            log.warning(event, problem=problem)


class _SeenLease(NamedTuple):
    version: str
    since_s: float


class _Review(NamedTuple):
    allowed: bool
    at_s: float


class _AccessStatus(Value):
    allowed: bool = False


class _AccessReview(Value):
    status: _AccessStatus = _AccessStatus()


async def review_node_access(client: Client, user: str, namespace: str) -> bool:
    """Whether a service account may patch nodes. Where we may not ask, it counts as allowed."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": {"verb": "patch", "resource": "nodes"}},
    }
    headers = {"content-type": JSON, "accept": JSON}
    timeout_s = client.settings.timeout_s
    request = Request("POST", _ACCESS_REVIEWS, headers=headers, body=msgspec.json.encode(body), timeout_s=timeout_s)
    try:
        reply = await client.call(request)
        return msgspec.json.decode(reply.body, type=_AccessReview).status.allowed
    except Forbidden:
        return True
    except msgspec.DecodeError as error:
        raise UnreadableAnswer(f"not a SubjectAccessReview: {error}") from error
