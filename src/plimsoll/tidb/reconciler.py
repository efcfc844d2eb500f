"""One pass over a TidbClusterAutoScaler: observe, ask, decide, act, tell. The same live, once, and in simulation.

`controller` calls `run` for a key, the command line `run_all`. Between passes nothing is kept: what a pass must know of
the one before stands in Kubernetes objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from plimsoll.core.errors import PlimsollError
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.api.tidb import TIDB_GROUP, TIDB_VERSION
from plimsoll.operator.pause import ActionGuard, pause_in, read_pause
from plimsoll.tidb.actuation.deletion import BaseStanding, Drains, Finalization, Released
from plimsoll.tidb.component_reconciler import ComponentReconciler, Pass
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.reconcile_result import Phase, ReconcileResult
from plimsoll.tidb.observing.component_state import clusters_of, is_starting
from plimsoll.tidb.observing.former_clusters import joined, stranded
from plimsoll.tidb.observing.observer import Observer, namespace_of_base
from plimsoll.tidb.planning.api.defaults import defaulted
from plimsoll.tidb.planning.api.validation import problems_of, warnings_of

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.core.plans import Reason
    from plimsoll.kube.client import Client
    from plimsoll.tidb.actuation.drainers import DrainerFactory
    from plimsoll.tidb.model.reconcile_result import ComponentResult
    from plimsoll.tidb.observing.observer import Observed, Scaler
    from plimsoll.tidb.observing.sources import Sources
    from plimsoll.tidb.reporting.reporter import Teller
    from plimsoll.tidb.settings import TidbSettings

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

ATTEMPTS: Final = 5
"""Of a pass whose acts were overtaken: all is read and decided anew."""
_NOT_LET_IN: Final = "V16"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerDependencies:
    """What an autoscaler works with."""

    client: Client
    clock: Clock
    advisers: Sources
    drainers: DrainerFactory
    teller: Teller
    settings: TidbSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An autoscaler whose pass could not be brought to its end."""

    namespace: str
    name: str
    error: PlimsollError


class TidbReconciler:
    """All autoscalers of a server, one at a time."""

    def __init__(self, tools: ReconcilerDependencies) -> None:
        self._tools = tools
        self._observer = Observer(tools.client, namespace=tools.settings.namespace)
        self._parting = Finalization(tools.client)

    async def run_all(self) -> tuple[ReconcileResult | Failed, ...]:
        """A pass over each of them; one that fails does not stop the others."""
        scalers = await self._observer.autoscalers()
        found: list[ReconcileResult | Failed] = []
        for raw in scalers:
            namespace, name = raw.metadata.namespace, raw.metadata.name
            try:
                result = await self.run(namespace, name, others=scalers)
            except PlimsollError as error:
                log.warning("pass.failed", namespace=namespace, name=name, problem=str(error))
                found.append(Failed(namespace=namespace, name=name, error=error))
                continue
            if result is not None:
                found.append(result)
        return tuple(found)

    async def run(
        self, namespace: str, name: str, *, others: Collection[Scaler] | None = None
    ) -> ReconcileResult | None:
        """None: it is gone. Raises what keeps a pass from going on."""
        others = await self._observer.autoscalers() if others is None else others
        for attempt in range(1, ATTEMPTS + 1):
            observed = await self._observer.observe(namespace, name, others=others)
            if observed is not None and await self._is_held_now(observed):
                # It was written to: what was read of it is old.
                observed = await self._observer.observe(namespace, name, others=others)
            if observed is None:
                self._tools.teller.metrics.forget(namespace, name)
                return None
            result = await self._passed(observed)
            await self._tools.teller.tell(observed, result)
            if not result.wants_another or attempt == ATTEMPTS:
                return result
        raise AssertionError("the last attempt returns")

    async def _is_held_now(self, observed: Observed) -> bool:
        """Keep an autoscaler whose groups somebody else made, or made its own again: True if it had to be written to.

        Whatever becomes of the pass, nobody can delete it from here on and have its stores go undrained.
        """
        autoscaler, namespace = observed.autoscaler.metadata, observed.namespace
        seen = (observed, *observed.former)
        standing = [component for component in Component if any(clusters_of(each, component) for each in seen)]
        needed = [
            component
            for component in standing
            if not self._parting.is_held(autoscaler, component=component, namespace=namespace)
        ]
        if not needed or autoscaler.deletion_timestamp is not None or await self._brake(observed) is not None:
            return False
        await self._parting.hold(autoscaler, component=needed[0], namespace=namespace)
        return True

    async def _brake(self, observed: Observed) -> Reason | None:
        """Why nothing may be done: a dry run, or a pause of the autoscaler, its cluster or all controllers."""
        settings = self._tools.settings
        if settings.dry_run:
            return ActionGuard(dry_run=True).reason
        paused = pause_in(observed.scaler.metadata.annotations)
        if not paused and observed.base is not None:
            paused = pause_in(observed.base.metadata.annotations)
        paused = paused or await read_pause(self._tools.client, settings.home)
        return ActionGuard(paused=paused).reason

    async def _passed(self, observed: Observed) -> ReconcileResult:
        """To its end but for the telling."""
        settings, now = self._tools.settings, self._tools.clock.now().replace(microsecond=0)
        brake = await self._brake(observed)
        autoscaler, base = observed.autoscaler, observed.base.view if observed.base is not None else None
        if autoscaler.metadata.deletion_timestamp is not None:
            return await self._parted(observed, brake=brake, now=now)
        problems = problems_of(autoscaler, base, open_namespaces=observed.open_namespaces)
        if base is None and not any(field_problem.code == _NOT_LET_IN for field_problem in problems):
            return replace(_begun(observed, now), standing=Phase.NO_BASE, brake=brake)
        if problems:
            return replace(_begun(observed, now), standing=Phase.INVALID, brake=brake, problems=problems)
        components = await self._components(observed, brake=brake, now=now, is_leaving=False)
        for former in observed.former:
            components = joined(components, await self._of_former(former, now=now))
        warnings = warnings_of(autoscaler)
        is_new = base is not None and is_starting(base, now=now, grace_s=settings.policy.registration_grace_s)
        return replace(_begun(observed, now), components=components, brake=brake, warnings=warnings, is_starting=is_new)

    async def _components(
        self, observed: Observed, *, brake: Reason | None, now: datetime, is_leaving: bool
    ) -> tuple[ComponentResult, ...]:
        """TiDB first; what goes wrong with one does not stop the other."""
        base = observed.base.view if observed.base is not None else None
        effective = defaulted(observed.autoscaler, base)
        found = []
        for component in Component:
            one = Pass(observed=observed, effective=effective, brake=brake, now=now, is_leaving=is_leaving)
            found.append(await ComponentReconciler(self._tools, one, component).run())
        return tuple(component_result for component_result in found if component_result is not None)

    async def _of_former(self, former: Observed, *, now: datetime) -> tuple[ComponentResult, ...]:
        """Groups of a cluster that it scaled before go as those of a component that it no longer scales."""
        base = former.autoscaler.spec.cluster.name
        if former.base is None:
            return stranded(former, why=f"the cluster {base}, which is gone")
        if self._tools.settings.pd:
            # Asked there, its stores would seem to be gone already.
            return stranded(former, why=f"the cluster {base}, whose PD cannot be asked: the address of another is set")
        found = await self._components(former, brake=await self._brake(former), now=now, is_leaving=False)
        return tuple(
            component_result for component_result in found if component_result.clusters or component_result.problem
        )

    async def _parted(self, observed: Observed, *, brake: Reason | None, now: datetime) -> ReconcileResult:
        """An autoscaler that is deleted stays until nothing of it is left that could lose data."""
        if brake is not None:
            return replace(_begun(observed, now), standing=Phase.DELETED, brake=brake, told=str(brake))
        parted = await self._parting.part(
            observed.autoscaler,
            [raw.view for raw in observed.clusters],
            base=_standing_of_base(observed),
            end_drain=self._tools.drainers.end_drain(observed),
        )
        if not isinstance(parted, Drains):
            gone = isinstance(parted, Released)
            return replace(_begun(observed, now), standing=Phase.DELETED, told=parted.told, is_released=gone)
        components = await self._components(observed, brake=None, now=now, is_leaving=True)
        return replace(_begun(observed, now), standing=Phase.DELETED, components=components, told=parted.told)


def _standing_of_base(observed: Observed) -> BaseStanding:
    if observed.is_shut_out:
        return BaseStanding.OUT_OF_SIGHT
    return BaseStanding.GONE if observed.base is None else BaseStanding.THERE


def _begun(observed: Observed, now: datetime) -> ReconcileResult:
    """The result of a pass of which nothing is known yet but what it is about."""
    autoscaler = observed.autoscaler
    metadata = autoscaler.metadata
    about = ObjectReference(
        api_version=f"{TIDB_GROUP}/{TIDB_VERSION}",
        kind="TidbClusterAutoScaler",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )
    base = f"{namespace_of_base(autoscaler)}/{autoscaler.spec.cluster.name}"
    return ReconcileResult(about=about, generation=metadata.generation, at=now, base=base)
