"""Carries out what a list of the control plane changes, and gives claims back that nothing holds any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.core.plans import NotDone, Outcome, Reason
from plimsoll.fleet.agent.instance_reconciler import CycleClaims
from plimsoll.fleet.agent.model.claims import Claim, ClaimsList
from plimsoll.fleet.agent.performed_actions import PerformedActions, refer_to_instance
from plimsoll.fleet.agent.planning.claiming import ClaimRequest, release_claims, remember_placement
from plimsoll.fleet.agent.planning.intake import IntakeAction, IntakeVerb, plan_intake
from plimsoll.fleet.agent.wire.managed_kafka_objects import is_reserved, read_instance_type, read_units
from plimsoll.fleet.agent.wire.names import ID, PLACEMENT_ID
from plimsoll.kube.errors import AlreadyExists, Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from plimsoll.fleet.agent.actuator import AgentActuator
    from plimsoll.fleet.agent.claims_store import ClaimsStore
    from plimsoll.fleet.agent.model.instances import KafkaList
    from plimsoll.fleet.agent.observer import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeResult:
    """What a list changed. `differs`: by namespace, how the list differs from what runs."""

    outcomes: tuple[Outcome, ...]
    not_done: tuple[NotDone, ...]
    differs: dict[str, Reason]
    gone: tuple[str, ...]


class IntakeExecutor:
    """Remembers only how many lists in a row lacked an instance: after a restart it counts from the beginning."""

    def __init__(self, view: ClusterView, actuator: AgentActuator, store: ClaimsStore) -> None:
        self._view = view
        self._actuator = actuator
        self._store = store
        self._lists_without: dict[str, int] = {}
        """By namespace of an instance."""
        self._awaited: frozenset[str] | None = None
        """The namespaces of the last list; None: there was none yet."""

    async def take(self, listed: KafkaList, claims: CycleClaims, guard: Reason | None) -> IntakeResult:
        self._awaited = frozenset(
            [*(item.namespace for item in listed.items), *(item.namespace for item in listed.unreadable)]
        )
        local = self._view.list_local()
        self._lists_without = {
            namespace: self._lists_without.get(namespace, 0) + 1
            for namespace in local
            if namespace not in self._awaited
        }
        plan = plan_intake(listed, local, claims.now, lists_without=self._lists_without)
        outcomes: list[Outcome] = []
        differs = {kept.namespace: kept.reason for kept in plan.kept}
        for action in plan.actions:
            performed = PerformedActions(refer_to_instance(action.namespace, action.name), guard)
            await performed.perform(action.verb.value, performed.ref, action.reason, self._find_call(action, claims))
            outcomes += performed.outcomes
            if performed.refusal:
                differs[action.namespace] = Reason(code="Refused", message=performed.refusal)
        not_done = [
            NotDone(what="stays as it is", about=(refer_to_instance(kept.namespace, kept.name),), reason=kept.reason)
            for kept in plan.kept
        ]
        gone = await self._confirm_gone(listed, plan.gone)
        return IntakeResult(outcomes=tuple(outcomes), not_done=tuple(not_done), differs=differs, gone=gone)

    def _find_call(self, action: IntakeAction, claims: CycleClaims) -> Callable[[], Coroutine[Any, Any, object]]:
        item = action.item
        if action.verb is IntakeVerb.REMOVE or item is None:
            return lambda: self._remove(action, claims)
        calls = {
            IntakeVerb.CREATE: self._actuator.create,
            IntakeVerb.UPDATE: self._actuator.update,
            IntakeVerb.MARK_DELETED: self._actuator.mark_deleted,
        }
        return lambda: calls[action.verb](item)

    async def _remove(self, action: IntakeAction, claims: CycleClaims) -> None:
        """First it is remembered that the placement does not come back: afterwards nothing here says so."""
        local = self._view.get_local(action.namespace)
        if local is None:
            return
        if action.earlier_placement and action.item is not None:
            item = action.item
            request = ClaimRequest(
                namespace=item.namespace,
                name=item.name,
                id=item.id,
                instance_type=item.instance_type,
                placement_id=action.earlier_placement,
                units=item.units,
            )
            held = claims.now.claims.get(action.namespace)
            await claims.write({action.namespace: remember_placement(held, request)})
        await self._actuator.delete_namespace(action.namespace, local.id)
        self._actuator.forget(action.namespace)

    async def _confirm_gone(self, listed: KafkaList, gone: tuple[str, ...]) -> tuple[str, ...]:
        """Only what a read of now does not find is reported as deleted."""
        namespaces = {item.id: item.namespace for item in listed.items}
        return tuple([kafka_id for kafka_id in gone if await self._actuator.is_gone(namespaces[kafka_id])])

    # ---- claims

    async def read_claims(self, guard: Reason | None) -> CycleClaims:
        """The stored claims. Where they are lost, they are made anew from the objects of the cluster."""
        stored = await self._store.read()
        if stored is None and guard is None:
            try:
                stored = await self._store.create(self._collect_claims())
            except AlreadyExists:
                stored = await self._store.read()
        return CycleClaims(stored or ClaimsList(claims=self._collect_claims()), self._store)

    def _collect_claims(self) -> dict[str, Claim]:
        """What instances hold that have units in their status, or a Kafka."""
        claims = {}
        for managed in self._view.list_managed():
            metadata = managed.metadata
            has_kafka = self._view.has_kafka(metadata.namespace)
            units = max(managed.status.units, read_units(managed) if has_kafka else 0)
            if units and not is_reserved(managed):
                claims[metadata.namespace] = Claim(
                    name=metadata.name,
                    id=metadata.annotations.get(ID, ""),
                    instance_type=read_instance_type(managed),
                    placement_id=metadata.annotations.get(PLACEMENT_ID, ""),
                    units=units,
                )
        return claims

    async def release(self, claims: CycleClaims, guard: Reason | None) -> None:
        """Give back what is held by instances whose namespace is gone."""
        if guard is not None:
            return
        changes = release_claims(claims.now, existing=self._view.list_local(), awaited=self._awaited)
        confirmed = {
            namespace: claim for namespace, claim in changes.items() if await self._actuator.is_gone(namespace)
        }
        if not confirmed:
            return
        for namespace in confirmed:
            self._actuator.forget(namespace)
        try:
            await claims.write(confirmed)
        except (Conflict, NotFound):
            return  # the next cycle decides again
