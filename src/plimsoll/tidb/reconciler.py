"""Reconciles a TidbClusterAutoScaler: observe, request plans, decide, act, report.

Nothing is kept in memory between reconciles: what one must know about the previous one is in Kubernetes objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.api.tidb import TIDB_GROUP, TIDB_VERSION
from plimsoll.operator.pause import ActionGuard, read_pause, read_pause_annotation
from plimsoll.operator.reconcile_all import FailedReconcile, reconcile_all
from plimsoll.tidb.actuation.deletion import BaseState, DrainFirst, Finalization, Released
from plimsoll.tidb.component_reconciler import ComponentContext, ComponentReconciler
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.reconcile_result import Phase, ReconcileResult
from plimsoll.tidb.observing.component_state import find_clusters, is_starting
from plimsoll.tidb.observing.former_clusters import merge_results, report_undrainable
from plimsoll.tidb.observing.observer import Observer, UnreadableAutoscaler, get_base_namespace
from plimsoll.tidb.planning.api.defaults import apply_defaults
from plimsoll.tidb.planning.api.validation import find_problems, find_warnings

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
    from plimsoll.tidb.reporting.reporter import Reporter
    from plimsoll.tidb.settings import TidbSettings

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

ATTEMPTS: Final = 5
"""How often a reconcile starts again after its acts were overtaken."""
_NOT_LET_IN: Final = "V16"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerDependencies:
    """The dependencies of the reconciler."""

    client: Client
    clock: Clock
    sources: Sources
    drainers: DrainerFactory
    reporter: Reporter
    settings: TidbSettings


class TidbReconciler:
    """Reconciles all autoscalers of a cluster, one at a time."""

    def __init__(self, dependencies: ReconcilerDependencies) -> None:
        self._dependencies = dependencies
        self._observer = Observer(dependencies.client, namespace=dependencies.settings.namespace)
        self._finalization = Finalization(dependencies.client)

    async def run_all(self) -> tuple[ReconcileResult | FailedReconcile, ...]:
        """Reconcile every autoscaler. A failure of one does not stop the others."""
        listed = await self._observer.list_all()
        readable = [(raw.metadata.namespace, raw.metadata.name) for raw in listed.scalers]

        async def reconcile(namespace: str, name: str) -> ReconcileResult | None:
            return await self.run(namespace, name, others=listed.scalers)

        return await reconcile_all((*readable, *listed.unreadable), reconcile, what="reconcile")

    async def run(
        self, namespace: str, name: str, *, others: Collection[Scaler] | None = None
    ) -> ReconcileResult | None:
        """Reconcile one autoscaler; None: it is gone. Raises errors that end the reconcile."""
        others = await self._observer.list_autoscalers() if others is None else others
        try:
            return await self._run(namespace, name, others=others)
        except UnreadableAutoscaler as error:
            return await self._report_unreadable(namespace, name, error)

    async def _run(self, namespace: str, name: str, *, others: Collection[Scaler]) -> ReconcileResult | None:
        for attempt in range(1, ATTEMPTS + 1):
            observed = await self._observer.observe(namespace, name, others=others)
            if observed is not None and await self._ensure_finalizer(observed):
                # It was written, so what was read is outdated.
                observed = await self._observer.observe(namespace, name, others=others)
            if observed is None:
                self._dependencies.reporter.metrics.forget(namespace, name)
                return None
            result = await self._reconcile(observed)
            await self._dependencies.reporter.report(observed, result)
            if not result.needs_retry or attempt == ATTEMPTS:
                return result
        raise AssertionError("the last attempt returns")

    async def _report_unreadable(self, namespace: str, name: str, error: UnreadableAutoscaler) -> ReconcileResult:
        """Nothing is done for an autoscaler that cannot be decoded, and this is reported like any other result."""
        result = ReconcileResult(
            autoscaler=_refer_to(namespace, name),
            generation=0,
            at=self._dependencies.clock.now().replace(microsecond=0),
            phase=Phase.UNREADABLE,
            pause=ActionGuard(dry_run=self._dependencies.settings.dry_run).reason,
            message=f"{error}: nothing is done until it can be read",
        )
        await self._dependencies.reporter.report_unreadable(result)
        return result

    async def _ensure_finalizer(self, observed: Observed) -> bool:
        """Set the finalizer of an autoscaler that adopted groups. True: it was written.

        From then on its deletion cannot leave stores undrained, whatever happens to this reconcile.
        """
        autoscaler, namespace = observed.autoscaler.metadata, observed.namespace
        all_observed = (observed, *observed.former)
        existing = [
            component
            for component in Component
            if any(find_clusters(candidate, component) for candidate in all_observed)
        ]
        needed = [
            component
            for component in existing
            if not self._finalization.has_finalizer(autoscaler, component=component, namespace=namespace)
        ]
        if not needed or autoscaler.deletion_timestamp is not None or await self._find_pause(observed) is not None:
            return False
        await self._finalization.ensure_finalizer(autoscaler, component=needed[0], namespace=namespace)
        return True

    async def _find_pause(self, observed: Observed) -> Reason | None:
        """Why nothing may be done: a dry run, or a pause of the autoscaler, its cluster or all controllers."""
        settings = self._dependencies.settings
        if settings.dry_run:
            return ActionGuard(dry_run=True).reason
        paused = read_pause_annotation(observed.scaler.metadata.annotations)
        if not paused and observed.base is not None:
            paused = read_pause_annotation(observed.base.metadata.annotations)
        paused = paused or await read_pause(self._dependencies.client, settings.controller_namespace)
        return ActionGuard(paused=paused).reason

    async def _reconcile(self, observed: Observed) -> ReconcileResult:
        """Everything except reporting."""
        settings, now = self._dependencies.settings, self._dependencies.clock.now().replace(microsecond=0)
        pause = await self._find_pause(observed)
        autoscaler, base = observed.autoscaler, observed.base.view if observed.base is not None else None
        if autoscaler.metadata.deletion_timestamp is not None:
            return await self._finalize(observed, pause=pause, now=now)
        if observed.unreadable:
            return replace(
                _start_result(observed, now),
                phase=Phase.UNREADABLE,
                pause=pause,
                message=f"{'; '.join(observed.unreadable)}: nothing is done until it can be read",
            )
        problems = find_problems(autoscaler, base, open_namespaces=observed.open_namespaces)
        if base is None and not any(field_problem.code == _NOT_LET_IN for field_problem in problems):
            return replace(_start_result(observed, now), phase=Phase.NO_BASE, pause=pause)
        if problems:
            return replace(_start_result(observed, now), phase=Phase.INVALID, pause=pause, problems=problems)
        components = await self._reconcile_components(observed, pause=pause, now=now, is_leaving=False)
        for former in observed.former:
            components = merge_results(components, await self._reconcile_former(former, now=now))
        warnings = find_warnings(autoscaler)
        is_new = base is not None and is_starting(base, now=now, grace_s=settings.policy.registration_grace_s)
        return replace(
            _start_result(observed, now), components=components, pause=pause, warnings=warnings, is_starting=is_new
        )

    async def _reconcile_components(
        self, observed: Observed, *, pause: Reason | None, now: datetime, is_leaving: bool
    ) -> tuple[ComponentResult, ...]:
        """TiDB first. A failure of one component does not stop the other."""
        base = observed.base.view if observed.base is not None else None
        effective = apply_defaults(observed.autoscaler, base)
        found = []
        for component in Component:
            context = ComponentContext(
                observed=observed, effective=effective, pause=pause, now=now, is_being_deleted=is_leaving
            )
            found.append(await ComponentReconciler(self._dependencies, context, component).run())
        return tuple(component_result for component_result in found if component_result is not None)

    async def _reconcile_former(self, former: Observed, *, now: datetime) -> tuple[ComponentResult, ...]:
        """Groups of a former cluster are removed like those of a component that is no longer scaled."""
        base = former.autoscaler.spec.cluster.name
        if former.base is None:
            return report_undrainable(former, cause=f"the cluster {base}, which is gone")
        if self._dependencies.settings.pd:
            # In that PD its stores would seem to be gone already.
            return report_undrainable(
                former, cause=f"the cluster {base}, whose PD is unknown because the address of another PD is configured"
            )
        found = await self._reconcile_components(
            former, pause=await self._find_pause(former), now=now, is_leaving=False
        )
        return tuple(
            component_result for component_result in found if component_result.clusters or component_result.problem
        )

    async def _find_base_state(self, observed: Observed) -> BaseState:
        if observed.is_namespace_closed:
            return BaseState.OUT_OF_SIGHT
        if observed.base is not None:
            return BaseState.THERE
        return BaseState.GONE if await self._observer.is_base_gone(observed) else BaseState.UNCERTAIN

    async def _finalize(self, observed: Observed, *, pause: Reason | None, now: datetime) -> ReconcileResult:
        """A deleted autoscaler stays until nothing of it is left that could lose data."""
        if pause is not None:
            return replace(_start_result(observed, now), phase=Phase.DELETED, pause=pause, message=str(pause))
        if observed.unreadable:
            message = f"{'; '.join(observed.unreadable)}: it may be one that the autoscaler created"
            return replace(_start_result(observed, now), phase=Phase.DELETED, message=message)
        finalized = await self._finalization.finalize(
            observed.autoscaler,
            [raw.view for raw in observed.clusters],
            base=await self._find_base_state(observed),
            end_drain=self._dependencies.drainers.end_drain(observed),
        )
        if not isinstance(finalized, DrainFirst):
            is_released = isinstance(finalized, Released)
            return replace(
                _start_result(observed, now), phase=Phase.DELETED, message=finalized.message, is_released=is_released
            )
        components = await self._reconcile_components(observed, pause=None, now=now, is_leaving=True)
        return replace(
            _start_result(observed, now), phase=Phase.DELETED, components=components, message=finalized.message
        )


def _refer_to(namespace: str, name: str, uid: str = "") -> ObjectReference:
    return ObjectReference(
        api_version=f"{TIDB_GROUP}/{TIDB_VERSION}",
        kind="TidbClusterAutoScaler",
        namespace=namespace,
        name=name,
        uid=uid,
    )


def _start_result(observed: Observed, now: datetime) -> ReconcileResult:
    """The result of a reconcile that has only started."""
    autoscaler = observed.autoscaler
    metadata = autoscaler.metadata
    about = _refer_to(metadata.namespace, metadata.name, metadata.uid)
    base = f"{get_base_namespace(autoscaler)}/{autoscaler.spec.cluster.name}"
    return ReconcileResult(autoscaler=about, generation=metadata.generation, at=now, base=base)
