"""Brings one instance to what its ManagedKafka says: units, then objects, then its report (docs/design/fleet.md 17)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import NotDone, Outcome, Reason, Ref
from plimsoll.fleet.agent.performed_actions import PerformedActions, refer_to_instance
from plimsoll.fleet.agent.planning.claiming import (
    ClaimRefused,
    ClaimRequest,
    decide_claim,
    lower_claim,
    remember_placement,
)
from plimsoll.fleet.agent.planning.instance_reports import (
    KafkaState,
    PoolState,
    ReservedState,
    find_problem,
    report_deleting,
    report_instance,
    report_rejected,
    report_reserved,
    report_waiting,
)
from plimsoll.fleet.agent.planning.kafka_objects import build_kafka_manifests, compute_managed_shape
from plimsoll.fleet.agent.planning.reserved_objects import build_reserved_deployments
from plimsoll.fleet.agent.wire.managed_kafka_objects import (
    is_rejected,
    is_reserved,
    read_instance_type,
    read_units,
)
from plimsoll.fleet.agent.wire.names import ID, PLACEMENT_ID

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.fleet.agent.actuator import AgentActuator
    from plimsoll.fleet.agent.claims_store import ClaimsStore
    from plimsoll.fleet.agent.model.capacity import ClusterCapacity
    from plimsoll.fleet.agent.model.claims import Claim, ClaimsList
    from plimsoll.fleet.agent.model.reports import InstanceReport
    from plimsoll.fleet.agent.observer import ClusterView
    from plimsoll.fleet.agent.planning.sizes import InstanceShape
    from plimsoll.objects.api.managed_kafkas import ManagedKafka

_NOT_BOUND_YET: Final = "the control plane has not answered since the agent started"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceResult:
    """What was done about an instance, and its state. `units`: what it holds."""

    managed: ManagedKafka
    report: InstanceReport
    units: int = 0
    outcomes: tuple[Outcome, ...] = ()
    not_done: tuple[NotDone, ...] = ()

    @property
    def ref(self) -> Ref:
        return refer_to_instance(self.managed.metadata.namespace, self.managed.metadata.name)


class CycleClaims:
    """The claims during one cycle: every change is stored before it is acted on."""

    def __init__(self, stored: ClaimsList, store: ClaimsStore) -> None:
        self.now = stored
        self._store = store

    async def write(self, changes: dict[str, Claim | None]) -> None:
        """Raises `Conflict` if another agent has changed them."""
        self.now = await self._store.write(changes, version=self.now.version)

    def get_units(self, namespace: str) -> int:
        claim = self.now.claims.get(namespace)
        return 0 if claim is None else claim.units


class InstanceReconciler:
    """All instances, one after the other."""

    def __init__(self, view: ClusterView, actuator: AgentActuator, clock: Clock) -> None:
        self._view = view
        self._actuator = actuator
        self._clock = clock
        self._failing_since: dict[str, tuple[str, float]] = {}
        """By namespace: the uid of a Kafka that is NotReady, and since when. Clocks of others do not count."""

    async def reconcile(
        self, managed: ManagedKafka, claims: CycleClaims, capacity: ClusterCapacity | None, guard: Reason | None
    ) -> InstanceResult:
        """`capacity` None: it is not known, and nothing new is granted."""
        performed = PerformedActions(refer_to_instance(managed.metadata.namespace, managed.metadata.name), guard)
        report = await self._decide(managed, claims, capacity, performed)
        return InstanceResult(
            managed=managed,
            report=report,
            units=claims.get_units(managed.metadata.namespace),
            outcomes=tuple(performed.outcomes),
            not_done=tuple(performed.not_done),
        )

    async def _decide(
        self,
        managed: ManagedKafka,
        claims: CycleClaims,
        capacity: ClusterCapacity | None,
        performed: PerformedActions,
    ) -> InstanceReport:
        metadata = managed.metadata
        if managed.spec.deleted:
            await self._delete(managed, claims, performed)
            return report_deleting(managed)
        if metadata.deletion_timestamp is not None:
            return report_deleting(managed)
        if is_reserved(managed):
            return await self._reconcile_reserved(managed, performed)
        if is_rejected(managed) and not claims.get_units(metadata.namespace):
            return report_rejected(managed)
        return await self._reconcile_real(managed, claims, capacity, performed)

    async def _delete(self, managed: ManagedKafka, claims: CycleClaims, performed: PerformedActions) -> None:
        """First it is remembered that the placement does not come back: afterwards nothing here says so."""
        namespace = managed.metadata.namespace
        local = self._view.get_local(namespace)
        if local is None or local.is_terminating:
            return
        claim = claims.now.claims.get(namespace)
        remembered = remember_placement(claim, _build_request(managed, read_units(managed)))

        async def delete() -> None:
            if remembered != claim:
                await claims.write({namespace: remembered})
            await self._actuator.delete_namespace(namespace, managed.metadata.annotations.get(ID, ""))

        reason = Reason(code="Deleted", message="the control plane deletes the instance, with its data")
        await performed.perform("delete namespace", Ref(kind="namespace", name=namespace), reason, delete)
        self._failing_since.pop(namespace, None)

    # ---- reserved instances

    async def _reconcile_reserved(self, managed: ManagedKafka, performed: PerformedActions) -> InstanceReport:
        shape = compute_managed_shape(managed, max(read_units(managed), 1))
        manifests = build_reserved_deployments(managed, shape)
        problem = ""
        for manifest in manifests:
            if self._actuator.is_applied(manifest):
                continue
            if not performed.refusal:
                problem = problem or await self._ensure_priority_class(performed)
            await self._apply(manifest, performed, Reason(code="Reserved", message="it holds room for an instance"))
        namespace = managed.metadata.namespace
        found = [self._view.get_deployment(namespace, manifest["metadata"]["name"]) for manifest in manifests]
        wanted = [int(manifest["spec"]["replicas"]) for manifest in manifests]
        ready = sum(
            min(deployment.status.ready_replicas, number)
            for deployment, number in zip(found, wanted, strict=True)
            if deployment is not None
        )
        state = ReservedState(desired=sum(wanted), ready=ready, refusal=performed.refusal or problem)
        return report_reserved(managed, state)

    async def _ensure_priority_class(self, performed: PerformedActions) -> str:
        problem: list[str] = []

        async def ensure() -> None:
            problem.append(await self._actuator.ensure_priority_class())

        target = Ref(kind="priorityclass", name="plimsoll-reserved")
        reason = Reason(code="Reserved", message="reserved pods have the lowest priority that still adds nodes")
        await performed.perform("ensure", target, reason, ensure)
        return "".join(problem)

    # ---- real instances

    async def _reconcile_real(
        self,
        managed: ManagedKafka,
        claims: CycleClaims,
        capacity: ClusterCapacity | None,
        performed: PerformedActions,
    ) -> InstanceReport:
        namespace = managed.metadata.namespace
        held = claims.get_units(namespace)
        wanted = read_units(managed) or held
        if not wanted:
            return report_waiting(managed, "the object does not say how many units the instance has")
        refused = await self._claim(managed, wanted, claims, capacity, performed)
        held = claims.get_units(namespace)
        if refused is not None and not held:
            return report_rejected(managed) if refused.is_final else report_waiting(managed, str(refused.reason))
        refused_units = None
        if refused is not None:
            performed.keep("keeps its size", refused.reason)
            refused_units = wanted if refused.is_final else None
        units = min(wanted, held)
        if not units:
            return report_waiting(managed, "its units are not claimed yet")
        shape = compute_managed_shape(managed, units)
        for manifest in build_kafka_manifests(managed, shape).all:
            if not self._actuator.is_applied(manifest):
                message = f"{format_count(units, 'streaming unit')}: {format_count(shape.brokers, 'broker')}"
                await self._apply(manifest, performed, Reason(code="Sized", message=message))
        state = self._observe(managed, shape, performed.refusal)
        await self._lower_claim(namespace, units, state, claims, performed)
        held = claims.get_units(namespace)
        return replace(
            report_instance(managed, state),
            units=held,
            is_resizing=held != units or state.is_resizing,
            refused_units=refused_units,
        )

    async def _claim(
        self,
        managed: ManagedKafka,
        units: int,
        claims: CycleClaims,
        capacity: ClusterCapacity | None,
        performed: PerformedActions,
    ) -> ClaimRefused | None:
        """None: the units are held, or the attempt was overtaken and is repeated."""
        metadata, instance_type = managed.metadata, read_instance_type(managed)
        request = _build_request(managed, units)
        max_units = None if capacity is None else capacity.get_max_units(instance_type)
        # What runs here without a claim is not refused: its data is here.
        exists = self._view.has_kafka(metadata.namespace) and not claims.get_units(metadata.namespace)
        decision = decide_claim(request, claims.now, max_units=None if exists else max_units)
        if isinstance(decision, ClaimRefused):
            return decision
        if not decision.is_new:
            return None
        if capacity is None and not exists:
            return ClaimRefused(reason=Reason(code="ControlPlaneSilent", message=_NOT_BOUND_YET), is_final=False)
        bound = "" if max_units is None else f" of {max_units}"
        message = f"{units} units, so that {claims.now.count_units(instance_type)} units and the change{bound} are held"
        await performed.perform(
            "claim",
            performed.ref,
            Reason(code="Claimed", message=message, facts={"units": units}),
            lambda: claims.write({metadata.namespace: decision.claim}),
        )
        return None

    async def _lower_claim(
        self, namespace: str, units: int, state: KafkaState, claims: CycleClaims, performed: PerformedActions
    ) -> None:
        """When an instance became smaller: as soon as the brokers above its size are gone."""
        claim = claims.now.claims.get(namespace)
        if claim is None or claim.units <= units or performed.refusal:
            return
        if not state.pools or any(pool.has_more or pool.replicas != pool.desired for pool in state.pools):
            reason = Reason(
                code="BrokersLeave", message=f"{format_count(claim.units, 'unit')} held until its brokers are gone"
            )
            performed.keep("keeps its claim", reason)
            return
        await performed.perform(
            "lower claim",
            performed.ref,
            Reason(code="Smaller", message=f"its brokers are gone: {format_count(claim.units, 'unit')} become {units}"),
            lambda: claims.write({namespace: lower_claim(claim, units)}),
        )

    async def _apply(self, manifest: dict[str, Any], performed: PerformedActions, reason: Reason) -> None:
        metadata = manifest["metadata"]
        target = Ref(kind=manifest["kind"].lower(), namespace=metadata["namespace"], name=metadata["name"])
        await performed.perform("apply", target, reason, lambda: self._actuator.apply(manifest))

    # ---- what exists

    def _observe(self, managed: ManagedKafka, shape: InstanceShape, refusal: str) -> KafkaState:
        namespace, name = managed.metadata.namespace, managed.metadata.name
        kafka = self._view.get_kafka(namespace, name)
        pools = [self._observe_pool(namespace, name, "brokers", shape.brokers)]
        if shape.controllers:
            pools.append(self._observe_pool(namespace, name, "controllers", shape.controllers))
        state = KafkaState(kafka=kafka, pools=tuple(pools), refusal=refusal)
        return replace(state, failing_s=self._measure_failure(namespace, state))

    def _observe_pool(self, namespace: str, cluster: str, pool_name: str, desired: int) -> PoolState:
        pool = self._view.get_pool(namespace, pool_name)
        pods = self._view.get_pod_set(namespace, f"{cluster}-{pool_name}")
        return PoolState(
            name=pool_name,
            desired=desired,
            replicas=-1 if pool is None else pool.spec.replicas,
            pods=None if pods is None else max(len(pods.spec.pods), pods.status.pods),
            ready_pods=0 if pods is None else pods.status.ready_pods,
        )

    def _measure_failure(self, namespace: str, state: KafkaState) -> float:
        kafka = state.kafka
        if kafka is None or not find_problem(kafka):
            self._failing_since.pop(namespace, None)
            return 0.0
        now_s, uid = self._clock.monotonic_s(), kafka.metadata.uid
        known = self._failing_since.get(namespace)
        if known is None or known[0] != uid:
            known = self._failing_since[namespace] = (uid, now_s)
        return now_s - known[1]


def _build_request(managed: ManagedKafka, units: int) -> ClaimRequest:
    metadata = managed.metadata
    return ClaimRequest(
        namespace=metadata.namespace,
        name=metadata.name,
        id=metadata.annotations.get(ID, ""),
        instance_type=read_instance_type(managed),
        placement_id=metadata.annotations.get(PLACEMENT_ID, ""),
        units=units,
    )
