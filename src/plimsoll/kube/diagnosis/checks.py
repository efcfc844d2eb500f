"""All checks of a cluster, in order. They use a `Client` over any transport and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from plimsoll.core.durations import add_seconds
from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis import access_reviews, identities, servers, unreadable_objects
from plimsoll.kube.diagnosis.findings import Examination, Finding, Level
from plimsoll.kube.diagnosis.permissions import Namespaces, get_service_account_namespace
from plimsoll.kube.diagnosis.requirements import Requirements, RivalContext, RunningContext
from plimsoll.kube.diagnosis.served_apis import (
    check_definitions,
    check_groups,
    list_served_groups,
    list_used_namespaces,
    read_definitions,
)
from plimsoll.kube.diagnosis.servers import Target
from plimsoll.kube.errors import CredentialsFailed, NotSent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.access_reviews import Reviewer
    from plimsoll.kube.diagnosis.servers import ServerProbe


class ExaminationOptions(Value):
    """What to examine."""

    requirements: tuple[Requirements, ...]
    are_selected: bool = False
    """Whether these controllers are to run here: a missing custom resource of theirs is then a failure."""
    namespaces: Namespaces = Namespaces()
    target: Target = Target()
    environment: dict[str, str] = {}
    """The environment that the controllers run in, as far as it is known."""
    invocation: str = "plimsoll doctor -o json"
    """The command that gives the same findings as JSON; part of the advice."""


def _ignore_step(_: str) -> None:
    """Ignore the progress."""


async def examine(
    client: Client, options: ExaminationOptions, *, clock: Clock, on_step: Callable[[str], None] = _ignore_step
) -> Examination:
    """Run all checks. Raises `NoExamination` if the server cannot be reached.

    `on_step` receives the name of the next check.
    """
    try:
        return await _examine(client, options, clock=clock, on_step=on_step)
    except NotSent as error:  # it was there a moment ago
        raise servers.build_unreachable_error(error, options.target) from error


async def _examine(
    client: Client, options: ExaminationOptions, *, clock: Clock, on_step: Callable[[str], None]
) -> Examination:
    on_step("whether the server answers")
    probe = await servers.probe_server(client, options.target, clock=clock)
    findings = [servers.check_reachable(probe, options.target)]
    reviewer = access_reviews.Reviewer(invocation=options.invocation)
    if probe.is_unknown_to_server:
        findings.append(
            identities.build_unknown_identity_finding("it answers 401 Unauthorized", options.target, now=clock.now())
        )
    else:
        identity, finding = await identities.identify(client, options.target, now=clock.now())
        if probe.is_odd and finding.level is Level.UNKNOWN:
            raise servers.build_not_kubernetes_error(
                "it reports neither its version nor the identity of this client", options.target
            )
        findings.append(finding)
        reviewer = replace(reviewer, user=identity.user if identity is not None else "")
        if own_namespace := get_service_account_namespace(reviewer.user):
            # A controller that runs as this account has its lease and its ConfigMaps beside it.
            options = replace(options, namespaces=replace(options.namespaces, own=own_namespace))
    if findings[-1].level is not Level.FAIL:
        findings += [servers.check_version(probe), servers.check_clock_skew(probe)]
        findings += await _check_identified(client, options, reviewer=reviewer, on_step=on_step)
        findings += await _find_rivals(client, options, probe=probe, clock=clock)
    names = tuple(requirements.controller for requirements in options.requirements)
    return Examination(server=options.target.server, controllers=names, findings=tuple(findings))


async def _check_identified(
    client: Client, options: ExaminationOptions, *, reviewer: Reviewer, on_step: Callable[[str], None]
) -> list[Finding]:
    """The checks that need an identity that the server recognizes."""
    namespaces = options.namespaces
    on_step("which options are in force")
    requirements = await _adapt_requirements(client, options)
    on_step("which APIs are served")
    served = await list_served_groups(client, (group for need in requirements for group in need.builtin_groups))
    findings = [check_groups(need, served) for need in requirements]
    on_step("which custom resources there are")
    seen = await read_definitions(client, (definition for need in requirements for definition in need.custom_resources))
    settled = {
        need.controller: replace(namespaces, used=await list_used_namespaces(client, need, seen))
        for need in requirements
    }
    on_step("what we may do")
    questions = (
        question
        for need in requirements
        for permission in need.permissions
        for question in permission.list_questions(settled[need.controller])
    )
    answers = await access_reviews.review(client, questions)
    findings += [
        access_reviews.check_permissions(need, answers, namespaces=settled[need.controller], reviewer=reviewer)
        for need in requirements
    ]
    judged = [check_definitions(need, seen, is_selected=options.are_selected) for need in requirements]
    findings += [finding for finding in judged if finding is not None]
    on_step("whether all objects can be read")
    return findings + await unreadable_objects.check_objects(
        client, unreadable_objects.list_targets(requirements, namespaces)
    )


async def _adapt_requirements(client: Client, options: ExaminationOptions) -> tuple[Requirements, ...]:
    """The requirements under the options of the controllers that run here."""
    context = RunningContext(
        own_namespace=options.namespaces.own, environment=options.environment, is_selected=options.are_selected
    )
    return tuple(
        [need if need.adapt is None else await need.adapt(client, need, context) for need in options.requirements]
    )


async def _find_rivals(
    client: Client, options: ExaminationOptions, *, probe: ServerProbe, clock: Clock
) -> list[Finding]:
    now = add_seconds(clock.now(), probe.ahead_s or 0.0)
    context = RivalContext(now=now, namespace=options.namespaces.watched)
    checks = {check.name: check for requirements in options.requirements for check in requirements.rivals}
    return [await _run_check(name, check.find(client, context)) for name, check in checks.items()]


async def _run_check(check: str, looking: Awaitable[Finding]) -> Finding:
    """The finding of a check; a check that fails does not discard earlier findings."""
    try:
        return await looking
    except (NotSent, CredentialsFailed):
        raise
    except PlimsollError as error:
        return Finding(check=check, level=Level.UNKNOWN, message=f"could not be looked at: {error}")
