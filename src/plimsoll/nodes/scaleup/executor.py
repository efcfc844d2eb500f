"""Executes scale-up plans: node-group creation and increases of sizes. Nothing is requested twice.

A group's size is read just before it is changed, and the call names the size that it starts from, so an outdated plan
changes nothing. A new group is created first, checked, and scaled up only if its nodes are what the plan assumed
(docs/design/nodes.md 5.5). A crash in between leaves an empty group, which is used or deleted later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Reason
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.cluster_state.observed import build_call_error
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind, NotImplementedByProvider, get_failure
from plimsoll.nodes.model.node_templates import PROFILE_LABEL
from plimsoll.nodes.model.results import ScaleUpResult
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.values import Blueprint

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
    from plimsoll.nodes.cluster_state.backoffs import CreationKey
    from plimsoll.nodes.cluster_state.registry import ClusterState
    from plimsoll.nodes.model.call_outcomes import Outcome
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, ScaleUpOption
    from plimsoll.nodes.providers.ports import Group, Provider
    from plimsoll.objects.api.nodes import Node

log = structlog.get_logger(__name__)

REQUESTS_FAILED: Final = "RequestsFailed"
_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


class ScaleUpExecutor:
    """Executes scale-ups, and registers each result in the cluster state."""

    def __init__(self, provider: Provider, state: ClusterState, deleter: InstanceDeleter) -> None:
        self._provider = provider
        self._deleter = deleter
        self._state = state

    async def execute(self, scale_ups: Iterable[GroupScaleUp], *, now: datetime) -> tuple[ScaleUpResult, ...]:
        """In the order of the plan. A failure stops only scale-ups that serve the same requests."""
        found: list[ScaleUpResult] = []
        failed: set[str] = set()
        for scale_up in scale_ups:
            if scale_up.is_only_for(failed):
                found.append(_skip(scale_up))
                continue
            done = await self._scale_up(scale_up, now)
            found += done
            failed |= scale_up.requests if any(result.is_refused for result in done) else frozenset()
        return tuple(found)

    async def _scale_up(self, scale_up: GroupScaleUp, now: datetime) -> list[ScaleUpResult]:
        if not scale_up.option.exists:
            return await self._create_group(scale_up, now)
        groups = {node_group.id: node_group for node_group in await self._provider.node_groups()}
        group = groups.get(scale_up.option.group)
        if group is None:
            gone = CallFailed(
                kind=FailureKind.NO_SUCH_GROUP, message=f"there is no group {scale_up.option.group} any more"
            )
            return [_build_failure(scale_up, gone)]
        return [await self._increase_group(scale_up, group, by=scale_up.added, expected=scale_up.before, now=now)]

    # ---- new groups

    async def _create_group(self, scale_up: GroupScaleUp, now: datetime) -> list[ScaleUpResult]:
        option = scale_up.option
        planned = await self._provider.new_node_group(_build_blueprint(option))
        if isinstance(planned, (CallFailed, NotImplementedByProvider)):
            return [self._fail_creation(scale_up, _require_failure(planned), now)]
        created = await planned.create()
        if not isinstance(created, Created):
            return [self._fail_creation(scale_up, _require_failure(created), now)]
        log.info("node_group.created", group=created.id, machine_type=option.machine_type, requested=option.group)
        groups = {node_group.id: node_group for node_group in await self._provider.node_groups()}
        made = [groups[name] for name in (created.id, *created.extra_ids) if name in groups]
        if mismatch := await _find_mismatch(option, made):
            for group in made:
                await self._deleter.delete_group(group)
            return [self._fail_creation(scale_up, mismatch, now)]
        shares = _split(scale_up.added, len(made))
        return [
            await self._increase_group(scale_up, group, by=share, expected=0, now=now, created=True)
            for group, share in zip(made, shares, strict=True)
            if share
        ]

    def _fail_creation(self, scale_up: GroupScaleUp, failure: CallFailed, now: datetime) -> ScaleUpResult:
        log.warning("node_group.not_created", group=scale_up.option.group, problem=failure.message)
        self._state.register_failed_creation(
            _get_creation_key(scale_up.option, failure), build_call_error(failure), now
        )
        return _build_failure(scale_up, failure)

    # ---- sizes

    async def _increase_group(
        self, scale_up: GroupScaleUp, group: Group, *, by: int, expected: int, now: datetime, created: bool = False
    ) -> ScaleUpResult:
        target = await group.target_size()
        if target != expected:
            message = f"its size is {target}, not {expected} any more: the next loop iteration plans again"
            overtaken = _build_failure(scale_up, CallFailed(kind=FailureKind.REFUSED, message=message), group=group.id)
            return replace(overtaken, is_overtaken=True, created=created)
        outcome = await _increase(group, by, expected=expected, atomically=scale_up.is_whole)
        failure = get_failure(outcome)
        if failure is None:
            log.info("scale_up.requested", group=group.id, before=expected, after=expected + by)
            self._state.register_scale_up(group.id, by, now)
            return ScaleUpResult(
                scale_up=scale_up, group=group.id, before=expected, after=expected + by, created=created
            )
        log.warning("scale_up.failed", group=group.id, add=by, kind=failure.kind, problem=failure.message)
        self._state.register_failed_scale_up(group.id, build_call_error(failure), now)
        if created:
            self._state.register_failed_creation(
                _get_creation_key(scale_up.option, failure), build_call_error(failure), now
            )
        return ScaleUpResult(
            scale_up=scale_up, group=group.id, before=expected, after=expected + by, created=created, failure=failure
        )


async def _increase(group: Group, by: int, *, expected: int, atomically: bool) -> Outcome:
    if atomically and await group.can_increase_atomically():
        return await group.atomic_increase_size(by, expected=expected)
    return await group.increase_size(by, expected=expected)


def _skip(scale_up: GroupScaleUp) -> ScaleUpResult:
    message = f"all requests that group {scale_up.option.group} was to grow for have failed already"
    why = Reason(code=REQUESTS_FAILED, message=message)
    return ScaleUpResult(
        scale_up=scale_up, group=scale_up.option.group, before=scale_up.before, after=scale_up.after, held_back=why
    )


def _build_failure(scale_up: GroupScaleUp, failure: CallFailed, *, group: str = "") -> ScaleUpResult:
    name = group or scale_up.option.group
    return ScaleUpResult(scale_up=scale_up, group=name, before=scale_up.before, after=scale_up.after, failure=failure)


def _require_failure(refusal: CallFailed | NotImplementedByProvider) -> CallFailed:
    failure = get_failure(refusal)
    assert failure is not None, "a refusal is a failure"
    return failure


def _build_blueprint(option: ScaleUpOption) -> Blueprint:
    assert option.profile is not None, "a group to be made has a profile"
    labels = option.profile.labels
    system = {key: value for key, value in option.node.metadata.labels.items() if key not in labels}
    return Blueprint(
        id=option.group,
        machine_type=option.machine_type,
        max_size=option.max_size,
        labels=dict(labels),
        system_labels=system,
        taints=option.profile.taints,
        zones=(option.zone,) if option.zone else (),
    )


async def _find_mismatch(option: ScaleUpOption, made: list[Group]) -> CallFailed | None:
    """Why pods planned for a created group would not run on it; None if they would."""
    if not made:
        message = f"group {option.group} was made, but the provider does not list it"
        return CallFailed(kind=FailureKind.UNKNOWN, message=message)
    for group in made:
        template = await group.template_node_info()
        if isinstance(template, NotImplementedByProvider):
            continue
        if why := _compare_template(option, template):
            return CallFailed(kind=FailureKind.REFUSED, message=f"group {group.id} is not what was asked for: {why}")
    return None


def _compare_template(option: ScaleUpOption, template: Node) -> str:
    profile = option.profile
    wanted = {} if profile is None else profile.labels
    for key, value in wanted.items():
        if template.metadata.labels.get(key) != value:
            return f"its nodes lack label {key}={value}"
    known = {(taint.key, taint.effect) for taint in option.node.spec.taints}
    for taint in template.spec.taints:
        if taint.effect in _BLOCKING_EFFECTS and (taint.key, taint.effect) not in known:
            return f"its nodes have taint {taint.key}:{taint.effect}"
    allocatable = ResourceVector.from_quantities(template.status.allocatable or template.status.capacity)
    planned = ResourceVector.from_quantities(option.node.status.allocatable or option.node.status.capacity)
    short = [name for name in planned if allocatable[name] < planned[name]]
    return f"its nodes have less {', '.join(short)} than planned" if short else ""


def _get_creation_key(option: ScaleUpOption, failure: CallFailed) -> CreationKey:
    """A machine type that is out of stock is so for every profile; other failures concern this profile only."""
    is_sold_out = failure.kind is FailureKind.OUT_OF_RESOURCES
    profile = "" if is_sold_out else option.node.metadata.labels.get(PROFILE_LABEL, "")
    return (option.machine_type, option.zone, profile)


def _split(total: int, parts: int) -> list[int]:
    """Parts as equal as possible, larger ones first."""
    least, more = divmod(total, parts)
    return [least + (index < more) for index in range(parts)]
