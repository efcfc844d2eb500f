"""The cluster state registry: unregistered instances, requested scale-ups, failures and back-offs. Pure.

`ClusterState.observe` compares its memory with the observed cluster and returns what it found (`Changes`). Actuators
report to it through `register_scale_up`, `register_failed_scale_up` and `register_failed_creation`. Readers use
`assess_health(now)`. It makes no calls and trusts its input: stale observations are not passed to it, and the time of
an outage is excluded (`exclude_time`), so that nothing is given up for lack of information.

The memory does not survive the process and does not need to. A new process counts missing nodes of its first
observation as scale-ups requested at that moment, errors of instances as new, and the time of unregistered instances
from then. So after a crash things are given up later, never earlier, and nothing is requested twice. `now` is the wall
clock's time, as in objects; `adjust_clock` moves remembered times when the clock is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.durations import add_seconds
from plimsoll.nodes.cluster_state import changes as found
from plimsoll.nodes.cluster_state.backoffs import BackoffRule, Backoffs, CreationKey
from plimsoll.nodes.cluster_state.changes import Changes, DeleteInstances, FailedScaleUp, ShrinkTarget
from plimsoll.nodes.cluster_state.health import ClusterHealth, GroupHealth, is_cluster_healthy, is_group_healthy
from plimsoll.nodes.cluster_state.observed import TIMEOUT, ObservedCluster, ScaleUpError
from plimsoll.nodes.cluster_state.readiness import (
    Readiness,
    ReadinessByGroup,
    ReadinessClassifier,
    collect_registered_ids,
    find_unregistered_instances,
)
from plimsoll.nodes.cluster_state.scale_up_requests import ScaleUpRequests
from plimsoll.nodes.cluster_state.size_mismatch import SizeMismatches
from plimsoll.nodes.model.instances import ErrorClass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from plimsoll.nodes.cluster_state.observed import ObservedGroup, ObservedInstance
    from plimsoll.nodes.config.policy import Policy

_NOTHING = Readiness()


class ClusterState:
    """The cluster state of one autoscaler. `policy` may change between loop iterations."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._sorter = ReadinessClassifier(policy.groups, policy.pods)
        self._observed = ObservedCluster()
        self._sorted = ReadinessByGroup(groups={}, total=_NOTHING)
        self._missing_since: dict[str, datetime] = {}
        self._targets: dict[str, int] = {}
        """The target size of each group: the last one read, and scale-ups requested since."""
        self._requests = ScaleUpRequests()
        self._backoffs: Backoffs[str] = Backoffs()
        self._creations: Backoffs[CreationKey] = Backoffs()
        self._failed_instances: frozenset[str] = frozenset()
        self._sizes = SizeMismatches()

    @property
    def policy(self) -> Policy:
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        if policy != self._policy:
            self._policy = policy
            self._sorter = ReadinessClassifier(policy.groups, policy.pods)

    # ---- reports of actuators

    def register_scale_up(self, group: str, added: int, now: datetime) -> None:
        """The provider accepted a scale-up by `added` nodes."""
        wait_s = self._sorter.find_provision_time_s(self._find_group(group))
        self._requests.add(group, added, provision_time_s=wait_s, now=now)
        self._targets[group] = self._targets.get(group, 0) + added

    def register_failed_scale_up(self, group: str, error: ScaleUpError, now: datetime) -> None:
        """The provider refused a scale-up, or its outcome is unknown; then the next observation shows it."""
        self._back_off(group, error, now)

    def register_failed_creation(self, key: CreationKey, error: ScaleUpError, now: datetime) -> None:
        """A group of this kind could not be created, or did not fit. Ids are not reused, so the kind is the key."""
        self._creations.record_failure(key, error, rule=self._rule, now=now)

    def exclude_time(self, gap: timedelta) -> None:
        """Exclude the time of an outage from all timers."""
        self._missing_since = {instance: since + gap for instance, since in self._missing_since.items()}
        self._requests.postpone(gap)
        self._sizes.postpone(gap)

    def adjust_clock(self, by: timedelta) -> None:
        """Move remembered times to a clock that was changed by so much."""
        self.exclude_time(by)
        self._backoffs.postpone(by)
        self._creations.postpone(by)

    # ---- observing

    def observe(self, observed: ObservedCluster, now: datetime) -> Changes:
        self._observed = observed
        self._forget_groups_that_are_gone()
        self._backoffs.forget_old(self._rule, now)
        self._creations.forget_old(self._rule, now)
        self._note_unregistered(now)
        self._sorted = self._sorter.classify(observed, self._missing_since, now)
        self._take_over_growth(now)
        arrived = self._end_arrived()
        late, given_up = self._end_overdue(now)
        failed = self._record_instance_errors(now)
        return Changes(
            arrived=arrived,
            failed=(*late, *failed),
            shrink=self._find_size_repairs(given_up, now),
            delete_failed=self._find_failed_instances(),
            delete_unregistered=self._find_unregistered_instances(),
        )

    # ---- health

    def assess_health(self, now: datetime) -> ClusterHealth:
        groups = {group.id: self._build_group_health(group, now) for group in self._observed.groups}
        return ClusterHealth(
            at=now,
            groups=groups,
            total=self._sorted.total,
            is_healthy=is_cluster_healthy(self._sorted.total, self.policy.groups),
            creation_backoffs=self._creations.list_running(now),
        )

    def _build_group_health(self, group: ObservedGroup, now: datetime) -> GroupHealth:
        target, readiness = self._targets.get(group.id, group.target_size), self._get_readiness(group.id)
        request = self._requests.get(group.id)
        return GroupHealth(
            group=group,
            target_size=target,
            readiness=readiness,
            scale_up_request=request,
            backoff=self._backoffs.find_running(group.id, now),
            is_healthy=is_group_healthy(target, readiness, request, self.policy.groups),
        )

    # ---- steps of an observation

    def _forget_groups_that_are_gone(self) -> None:
        """Back-offs stay: a group that comes back with the same id is as likely to fail as before."""
        there = {group.id for group in self._observed.groups}
        self._requests.keep_only(there)
        self._targets = {group: size for group, size in self._targets.items() if group in there}

    def _note_unregistered(self, now: datetime) -> None:
        registered = collect_registered_ids(self._observed)
        missing = (
            unregistered_instance
            for group in self._observed.groups
            for unregistered_instance in find_unregistered_instances(registered, group)
        )
        self._missing_since = {instance: self._missing_since.get(instance, now) for instance in missing}

    def _take_over_growth(self, now: datetime) -> None:
        """Register scale-ups from elsewhere: before a crash, by a call without an answer, or by a person."""
        for group in self._observed.groups:
            readiness, request = self._get_readiness(group.id), self._requests.get(group.id)
            known = self._targets.get(group.id, readiness.arrived)
            unrequested = readiness.count_upcoming(group.target_size) - (0 if request is None else request.increase)
            unexplained = min(group.target_size - known, unrequested)
            if unexplained > 0 and group.autoscaled:
                self.register_scale_up(group.id, unexplained, now)
            self._targets[group.id] = group.target_size

    def _end_arrived(self) -> tuple[str, ...]:
        done = [
            group.id
            for group in self._observed.groups
            if self._requests.get(group.id) is not None and group.target_size <= self._get_readiness(group.id).arrived
        ]
        for group_id in done:
            self._requests.remove(group_id)
        return tuple(sorted(done))

    def _end_overdue(self, now: datetime) -> tuple[list[FailedScaleUp], list[ShrinkTarget]]:
        failed, shrink = [], []
        for request in self._requests.list_all():
            if not request.is_overdue(now):
                continue
            group = self._find_group(request.group)
            assert group is not None, "requests of groups that are gone were forgotten"
            missing = group.target_size - self._get_readiness(group.id).arrived
            reason = found.build_timeout_reason(
                group.id, missing=missing, waited_s=(now - request.since).total_seconds()
            )
            error = ScaleUpError(code=TIMEOUT, message=reason.message)
            self._requests.remove(group.id)
            self._back_off(group.id, error, now)
            failed.append(FailedScaleUp(group=group.id, error=error, nodes=missing, reason=reason))
            existing = self._count_existing(group)
            if existing < group.target_size:
                shrink.append(ShrinkTarget(group=group.id, before=group.target_size, after=existing, reason=reason))
        return failed, shrink

    def _record_instance_errors(self, now: datetime) -> list[FailedScaleUp]:
        failed: list[FailedScaleUp] = []
        known, self._failed_instances = self._failed_instances, frozenset()
        for group in self._list_autoscaled_groups():
            broken = [instance for instance in group.instances if instance.failed_to_create]
            self._failed_instances |= {instance.id for instance in broken}
            if self._requests.get(group.id) is None:
                continue
            for same_error in _group_by_error(broken):
                new = [instance for instance in same_error if instance.id not in known]
                if new:
                    failed.append(self._record_failed_instances(group, same_error, len(new), now))
        return failed

    def _record_failed_instances(
        self, group: ObservedGroup, same_error: Sequence[ObservedInstance], new: int, now: datetime
    ) -> FailedScaleUp:
        errors = [instance.error for instance in same_error if instance.error is not None]
        error = errors[0]
        reason = found.build_failed_instances_reason(
            group.id, error, failed=len(same_error), new=new, messages=(cloud_error.message for cloud_error in errors)
        )
        self._requests.reduce(group.id, new)
        self._back_off(group.id, error, now)
        return FailedScaleUp(group=group.id, error=error, nodes=new, reason=reason)

    def _find_size_repairs(self, given_up: list[ShrinkTarget], now: datetime) -> tuple[ShrinkTarget, ...]:
        """Targets to lower: overdue scale-ups, and sizes that differ for too long; at most one per group."""
        repairs = {target.group: target for target in given_up}
        for group in self._list_autoscaled_groups():
            limit_s = self._sorter.find_provision_time_s(group)
            differs = self._sizes.observe(group.id, self._get_readiness(group.id), group.target_size, now)
            if differs is None or add_seconds(differs.since, limit_s) >= now:
                continue
            existing = self._count_existing(group)
            if existing < group.target_size and group.id not in repairs:
                reason = found.build_size_mismatch_reason(
                    group.id, nodes=differs.nodes, target=group.target_size, limit_s=limit_s
                )
                repairs[group.id] = ShrinkTarget(
                    group=group.id, before=group.target_size, after=existing, reason=reason
                )
        self._sizes.keep_only({group.id for group in self._observed.groups})
        return tuple(repairs[group] for group in sorted(repairs))

    def _find_failed_instances(self) -> tuple[DeleteInstances, ...]:
        deletions = []
        for group in self._list_autoscaled_groups():
            broken = tuple(sorted(instance.id for instance in group.instances if instance.failed_to_create))
            if broken:
                reason = found.build_deleted_instances_reason(group.id, len(broken))
                force = self.policy.groups.force_delete_failed
                deletions.append(DeleteInstances(group=group.id, instances=broken, force=force, reason=reason))
        return tuple(deletions)

    def _find_unregistered_instances(self) -> tuple[DeleteInstances, ...]:
        deletions = []
        force = self.policy.groups.force_delete_unregistered
        for group in self._list_autoscaled_groups():
            overdue = self._get_readiness(group.id).long_unregistered
            allowed = len(overdue) if force else max(0, group.target_size - group.min_size)
            chosen = overdue[:allowed]
            if chosen:
                limit_s = self._sorter.find_provision_time_s(group)
                kept = len(overdue) - len(chosen)
                reason = found.build_unregistered_reason(group.id, len(chosen), limit_s=limit_s, kept=kept)
                deletions.append(DeleteInstances(group=group.id, instances=chosen, force=force, reason=reason))
        return tuple(deletions)

    # ---- helpers

    def _back_off(self, group_id: str, error: ScaleUpError, now: datetime) -> None:
        """Back off the group, and its kind, so that a stock-out outlasts the id of a created group.

        A stock-out of a machine type holds for every profile.
        """
        self._backoffs.record_failure(group_id, error, rule=self._rule, now=now)
        group = self._find_group(group_id)
        if group is None or not group.machine_type:
            return
        if error.error_class is ErrorClass.OUT_OF_RESOURCES:
            self.register_failed_creation((group.machine_type, group.zone, ""), error, now)
        elif group.profile:
            self.register_failed_creation((group.machine_type, group.zone, group.profile), error, now)

    def _list_autoscaled_groups(self) -> list[ObservedGroup]:
        """Autoscaled groups, by id."""
        return sorted(
            (group for group in self._observed.groups if group.autoscaled), key=lambda observed_group: observed_group.id
        )

    def _count_existing(self, group: ObservedGroup) -> int:
        """The instances and nodes that exist; the target is never lowered below them."""
        readiness = self._get_readiness(group.id)
        return max(len(group.instances), readiness.registered - len(readiness.deleted))

    def _get_readiness(self, group_id: str) -> Readiness:
        return self._sorted.groups.get(group_id, _NOTHING)

    def _find_group(self, group_id: str) -> ObservedGroup | None:
        return next((group for group in self._observed.groups if group.id == group_id), None)

    @property
    def _rule(self) -> BackoffRule:
        return BackoffRule.from_rules(self.policy.groups)


def _group_by_error(broken: Sequence[ObservedInstance]) -> list[list[ObservedInstance]]:
    """Instances by error; a stock-out comes last, so that the back-off shows it."""
    same_error: dict[tuple[int, str], list[ObservedInstance]] = {}
    for instance in sorted(broken, key=lambda instance: instance.id):
        assert instance.error is not None, "asked only about stillborn instances"
        same_error.setdefault((-instance.error.error_class, instance.error.code), []).append(instance)
    return [same_error[key] for key in sorted(same_error)]
