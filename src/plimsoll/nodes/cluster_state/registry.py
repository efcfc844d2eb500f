"""The memory of the autoscaler between turns: what is missing since when, what growth was asked for, what failed. Pure.

`ClusterState.observe(world, now)` is the passive side: it makes memory agree with the world and says what it found
(`Changes`). `register_scale_up`, `register_failed_scale_up` and `register_failed_creation` are what actuators tell it;
`health(now)` is what others read. It calls nobody. It believes what it is shown: a world known to be stale is not shown
to it, and the time that passed meanwhile is taken back (`exclude_time`), so that nothing is given up for want of news.

Nothing here survives the process, and nothing needs to: a new one takes nodes that are missing at its first look for
growth asked for at that moment, takes errors of instances it has not seen for new ones, and counts the time of
unregistered instances from then; so after a crash things are given up later, never earlier, and nothing is asked for
twice. `now` is the time that objects tell too, the wall clock's; who sees it jump says so (`adjust_clock`), so that it
makes nothing overdue.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state import changes as found
from plimsoll.nodes.cluster_state.backoffs import BackoffRule, Backoffs, CreationKey
from plimsoll.nodes.cluster_state.changes import Changes, DeleteInstances, FailedScaleUp, ShrinkTarget
from plimsoll.nodes.cluster_state.health import ClusterHealth, GroupHealth, cluster_is_healthy, group_is_healthy
from plimsoll.nodes.cluster_state.observed import TIMEOUT, ErrorClass, ObservedCluster, ScaleUpError
from plimsoll.nodes.cluster_state.readiness import (
    Readiness,
    ReadinessByGroup,
    ReadinessClassifier,
    registered_ids,
    unregistered_instances,
)
from plimsoll.nodes.cluster_state.scale_up_requests import ScaleUpRequests
from plimsoll.nodes.cluster_state.size_mismatch import SizeMismatches

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.nodes.cluster_state.observed import ObservedGroup, ObservedInstance
    from plimsoll.nodes.config.policy import Policy

_NOTHING = Readiness()


class ClusterState:
    """One a controller. `policy` may be replaced between turns: options are re-read from a ConfigMap."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._sorter = ReadinessClassifier(policy.groups, policy.pods)
        self._world = ObservedCluster()
        self._sorted = ReadinessByGroup(groups={}, total=_NOTHING)
        self._missing_since: dict[str, datetime] = {}
        self._targets: dict[str, int] = {}
        """The size each group should have by all we know: what the provider said last, and growth asked for since."""
        self._growths = ScaleUpRequests()
        self._backoffs: Backoffs[str] = Backoffs()
        self._creations: Backoffs[CreationKey] = Backoffs()
        self._stillborn: frozenset[str] = frozenset()
        self._sizes = SizeMismatches()

    @property
    def policy(self) -> Policy:
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        if policy != self._policy:
            self._policy = policy
            self._sorter = ReadinessClassifier(policy.groups, policy.pods)

    # ---- what actuators tell

    def register_scale_up(self, group: str, added: int, now: datetime) -> None:
        """The provider took a growth by `added` nodes."""
        wait_s = self._sorter.provision_time_s(self._group(group))
        self._growths.add(group, added, provision_time_s=wait_s, now=now)
        self._targets[group] = self._targets.get(group, 0) + added

    def register_failed_scale_up(self, group: str, error: ScaleUpError, now: datetime) -> None:
        """The provider refused a growth, or we do not know whether it did: then the next look at the world tells."""
        self._back_off(group, error, now)

    def register_failed_creation(self, key: CreationKey, error: ScaleUpError, now: datetime) -> None:
        """No group of this kind could be made, or what was made did not fit; its id is no key, it never comes again."""
        self._creations.failed(key, error, rule=self._rule, now=now)

    def exclude_time(self, gap: timedelta) -> None:
        """Nobody could look for so long, or nodes could not register: it does not count against anybody."""
        self._missing_since = {one: since + gap for one, since in self._missing_since.items()}
        self._growths.postpone(gap)
        self._sizes.postpone(gap)

    def adjust_clock(self, by: timedelta) -> None:
        """What was noted by the old time is told by the new one."""
        self.exclude_time(by)
        self._backoffs.postpone(by)
        self._creations.postpone(by)

    # ---- what the world shows

    def observe(self, world: ObservedCluster, now: datetime) -> Changes:
        self._world = world
        self._forget_groups_that_are_gone()
        self._backoffs.forget_old(self._rule, now)
        self._creations.forget_old(self._rule, now)
        self._note_unregistered(now)
        self._sorted = self._sorter.classify(world, self._missing_since, now)
        self._take_over_growth(now)
        arrived = self._end_what_arrived()
        late, given_up = self._end_what_is_overdue(now)
        failed = self._note_instance_errors(now)
        return Changes(
            arrived=arrived,
            failed=(*late, *failed),
            shrink=self._repairs(given_up, now),
            delete_failed=self._deletions_of_stillborn(),
            delete_unregistered=self._deletions_of_unregistered(),
        )

    # ---- what everybody reads

    def health(self, now: datetime) -> ClusterHealth:
        groups = {group.id: self._group_standing(group, now) for group in self._world.groups}
        return ClusterHealth(
            at=now,
            groups=groups,
            total=self._sorted.total,
            is_healthy=cluster_is_healthy(self._sorted.total, self.policy.groups),
            creation_backoffs=self._creations.all_running(now),
        )

    def _group_standing(self, group: ObservedGroup, now: datetime) -> GroupHealth:
        target, readiness = self._targets.get(group.id, group.target_size), self._readiness(group.id)
        growth = self._growths.of(group.id)
        return GroupHealth(
            group=group,
            target_size=target,
            readiness=readiness,
            scale_up_request=growth,
            backoff=self._backoffs.running(group.id, now),
            is_healthy=group_is_healthy(target, readiness, growth, self.policy.groups),
        )

    # ---- steps of a look at the world

    def _forget_groups_that_are_gone(self) -> None:
        """Their back-offs stay: a group that comes back under its id is as likely to fail as before."""
        there = {group.id for group in self._world.groups}
        self._growths.keep_only(there)
        self._targets = {group: size for group, size in self._targets.items() if group in there}

    def _note_unregistered(self, now: datetime) -> None:
        registered = registered_ids(self._world)
        missing = (
            unregistered_instance
            for group in self._world.groups
            for unregistered_instance in unregistered_instances(registered, group)
        )
        self._missing_since = {one: self._missing_since.get(one, now) for one in missing}

    def _take_over_growth(self, now: datetime) -> None:
        """Growth that nobody told us of: asked for before a crash, by a call whose answer was lost, or by a person."""
        for group in self._world.groups:
            readiness, request = self._readiness(group.id), self._growths.of(group.id)
            known = self._targets.get(group.id, readiness.arrived)
            unasked = readiness.upcoming(group.target_size) - (0 if request is None else request.increase)
            unexplained = min(group.target_size - known, unasked)
            if unexplained > 0 and group.autoscaled:
                self.register_scale_up(group.id, unexplained, now)
            self._targets[group.id] = group.target_size

    def _end_what_arrived(self) -> tuple[str, ...]:
        done = [
            group.id
            for group in self._world.groups
            if self._growths.of(group.id) is not None and group.target_size <= self._readiness(group.id).arrived
        ]
        for group_id in done:
            self._growths.remove(group_id)
        return tuple(sorted(done))

    def _end_what_is_overdue(self, now: datetime) -> tuple[list[FailedScaleUp], list[ShrinkTarget]]:
        failed, shrink = [], []
        for request in self._growths.all():
            if not request.is_overdue(now):
                continue
            group = self._group(request.group)
            assert group is not None, "requests of groups that are gone were forgotten"
            missing = group.target_size - self._readiness(group.id).arrived
            reason = found.timed_out(group.id, missing=missing, waited_s=(now - request.since).total_seconds())
            error = ScaleUpError(code=TIMEOUT, message=reason.message)
            self._growths.remove(group.id)
            self._back_off(group.id, error, now)
            failed.append(FailedScaleUp(group=group.id, error=error, nodes=missing, reason=reason))
            existing = self._existing(group)
            if existing < group.target_size:
                shrink.append(ShrinkTarget(group=group.id, before=group.target_size, after=existing, reason=reason))
        return failed, shrink

    def _note_instance_errors(self, now: datetime) -> list[FailedScaleUp]:
        failed: list[FailedScaleUp] = []
        seen, self._stillborn = self._stillborn, frozenset()
        for group in self._ours():
            broken = [observed_instance for observed_instance in group.instances if observed_instance.failed_to_create]
            self._stillborn |= {observed_instance.id for observed_instance in broken}
            if self._growths.of(group.id) is None:
                continue
            for alike in _by_error(broken):
                new = [observed_instance for observed_instance in alike if observed_instance.id not in seen]
                if new:
                    failed.append(self._instances_failed(group, alike, len(new), now))
        return failed

    def _instances_failed(
        self, group: ObservedGroup, alike: Sequence[ObservedInstance], new: int, now: datetime
    ) -> FailedScaleUp:
        errors = [observed_instance.error for observed_instance in alike if observed_instance.error is not None]
        error = errors[0]
        reason = found.failed_instances(
            group.id, error, failed=len(alike), new=new, messages=(cloud_error.message for cloud_error in errors)
        )
        self._growths.reduce(group.id, new)
        self._back_off(group.id, error, now)
        return FailedScaleUp(group=group.id, error=error, nodes=new, reason=reason)

    def _repairs(self, given_up: list[ShrinkTarget], now: datetime) -> tuple[ShrinkTarget, ...]:
        """Of growth that is overdue, and of sizes that differ for too long; once a group."""
        repairs = {shrink_target.group: shrink_target for shrink_target in given_up}
        for group in self._ours():
            limit_s = self._sorter.provision_time_s(group)
            differs = self._sizes.observe(group.id, self._readiness(group.id), group.target_size, now)
            if differs is None or differs.since + timedelta(seconds=limit_s) >= now:
                continue
            existing = self._existing(group)
            if existing < group.target_size and group.id not in repairs:
                reason = found.size_differs(group.id, nodes=differs.nodes, target=group.target_size, limit_s=limit_s)
                repairs[group.id] = ShrinkTarget(
                    group=group.id, before=group.target_size, after=existing, reason=reason
                )
        self._sizes.keep_only({group.id for group in self._world.groups})
        return tuple(repairs[group] for group in sorted(repairs))

    def _deletions_of_stillborn(self) -> tuple[DeleteInstances, ...]:
        deletions = []
        for group in self._ours():
            broken = tuple(
                sorted(
                    observed_instance.id for observed_instance in group.instances if observed_instance.failed_to_create
                )
            )
            if broken:
                reason = found.deleted_failed_instances(group.id, len(broken))
                force = self.policy.groups.force_delete_failed
                deletions.append(DeleteInstances(group=group.id, instances=broken, force=force, reason=reason))
        return tuple(deletions)

    def _deletions_of_unregistered(self) -> tuple[DeleteInstances, ...]:
        deletions = []
        force = self.policy.groups.force_delete_unregistered
        for group in self._ours():
            overdue = self._readiness(group.id).long_unregistered
            allowed = len(overdue) if force else max(0, group.target_size - group.min_size)
            chosen = overdue[:allowed]
            if chosen:
                limit_s = self._sorter.provision_time_s(group)
                kept = len(overdue) - len(chosen)
                reason = found.never_registered(group.id, len(chosen), limit_s=limit_s, kept=kept)
                deletions.append(DeleteInstances(group=group.id, instances=chosen, force=force, reason=reason))
        return tuple(deletions)

    # ---- small things

    def _back_off(self, group_id: str, error: ScaleUpError, now: datetime) -> None:
        """The group; and its kind, so that a stock-out is not forgotten with the id of a group made at will.

        What a machine type is out of, it is out of for every profile.
        """
        self._backoffs.failed(group_id, error, rule=self._rule, now=now)
        group = self._group(group_id)
        if group is None or not group.machine_type:
            return
        if error.error_class is ErrorClass.OUT_OF_RESOURCE:
            self.register_failed_creation((group.machine_type, group.zone, ""), error, now)
        elif group.profile:
            self.register_failed_creation((group.machine_type, group.zone, group.profile), error, now)

    def _ours(self) -> list[ObservedGroup]:
        """Groups that may be changed, by id."""
        return sorted(
            (group for group in self._world.groups if group.autoscaled), key=lambda observed_group: observed_group.id
        )

    def _existing(self, group: ObservedGroup) -> int:
        """Machines that are there in some way: the target is never shrunk below them."""
        readiness = self._readiness(group.id)
        return max(len(group.instances), readiness.registered - len(readiness.deleted))

    def _readiness(self, group_id: str) -> Readiness:
        return self._sorted.groups.get(group_id, _NOTHING)

    def _group(self, group_id: str) -> ObservedGroup | None:
        return next((group for group in self._world.groups if group.id == group_id), None)

    @property
    def _rule(self) -> BackoffRule:
        return BackoffRule.of(self.policy.groups)


def _by_error(broken: Sequence[ObservedInstance]) -> list[list[ObservedInstance]]:
    """Instances with the same error together; a stock-out comes last, so that it is what the back-off shows."""
    alike: dict[tuple[int, str], list[ObservedInstance]] = {}
    for observed_instance in sorted(broken, key=lambda instance: instance.id):
        assert observed_instance.error is not None, "asked only about stillborn instances"
        alike.setdefault((-observed_instance.error.error_class, observed_instance.error.code), []).append(
            observed_instance
        )
    return [alike[key] for key in sorted(alike)]
