"""The whole examination of a cluster, check by check. Works on a `Client` over any transport; changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis import access_reviews, identities, odd_objects, rivals, servers
from plimsoll.kube.diagnosis.findings import Examination, Finding, Level
from plimsoll.kube.diagnosis.needs import CONTROLLERS, NEEDS
from plimsoll.kube.diagnosis.permissions import Places
from plimsoll.kube.diagnosis.served_apis import inhabited, judge_definitions, judge_groups, served_groups, sightings
from plimsoll.kube.diagnosis.servers import Target
from plimsoll.kube.errors import CredentialsFailed, NotSent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.access_reviews import Asker
    from plimsoll.kube.diagnosis.needs import Needs
    from plimsoll.kube.diagnosis.servers import Greeting

_USERS_OF_THE_AUTOSCALER_LEASE: Final = frozenset({"nodes", "requests"})


class Scrutiny(Value):
    """What to look at."""

    controllers: tuple[str, ...] = ()
    """Those that are to run here; none: all there are, and what is only theirs is no failure if it is missing."""
    places: Places = Places()
    target: Target = Target()
    invocation: str = "plimsoll doctor -o json"
    """The command that finds the same again, as JSON; for advice."""

    @property
    def needs(self) -> tuple[Needs, ...]:
        return tuple(NEEDS[name] for name in CONTROLLERS if not self.controllers or name in self.controllers)


def _silent(_: str) -> None:
    """Tells nobody."""


async def examine(
    client: Client, scrutiny: Scrutiny, *, clock: Clock, on_step: Callable[[str], None] = _silent
) -> Examination:
    """Everything there is to find. Raises `NoExamination` if the server cannot be reached.

    `on_step` is told what is looked at next.
    """
    try:
        return await _examined(client, scrutiny, clock=clock, on_step=on_step)
    except NotSent as error:  # it was there a moment ago
        raise servers.unreached(error, scrutiny.target) from error


async def _examined(client: Client, scrutiny: Scrutiny, *, clock: Clock, on_step: Callable[[str], None]) -> Examination:
    on_step("whether the server answers")
    greeting = await servers.greet(client, scrutiny.target, clock=clock)
    findings = [servers.reachable(greeting, scrutiny.target)]
    asker = access_reviews.Asker(invocation=scrutiny.invocation)
    if greeting.is_unknown_to_server:
        findings.append(identities.unknown_to_server("it answers 401 Unauthorized", scrutiny.target, now=clock.now()))
    else:
        identity, finding = await identities.identify(client, scrutiny.target, now=clock.now())
        if greeting.is_odd and finding.level is Level.UNKNOWN:
            raise servers.no_kubernetes("it tells neither its version nor who we are", scrutiny.target)
        findings.append(finding)
        asker = replace(asker, user=identity.user if identity is not None else "")
    if findings[-1].level is not Level.FAIL:
        findings += [servers.version(greeting), servers.clock_skew(greeting)]
        findings += await _inside(client, scrutiny, asker=asker, on_step=on_step)
        findings += await _rivals(client, scrutiny, greeting=greeting, clock=clock)
    names = tuple(needs.controller for needs in scrutiny.needs)
    return Examination(server=scrutiny.target.server, controllers=names, findings=tuple(findings))


async def _inside(client: Client, scrutiny: Scrutiny, *, asker: Asker, on_step: Callable[[str], None]) -> list[Finding]:
    """What only those see whom the server knows."""
    needs, places = scrutiny.needs, scrutiny.places
    on_step("which APIs are served")
    served = await served_groups(client, (group for need in needs for group in need.builtin_groups))
    findings = [judge_groups(need, served) for need in needs]
    on_step("which custom resources there are")
    seen = await sightings(client, (definition for need in needs for definition in need.definitions))
    settled = {need.controller: replace(places, inhabited=await inhabited(client, need, seen)) for need in needs}
    on_step("what we may do")
    questions = (
        question
        for need in needs
        for permission in need.permissions
        for question in permission.questions(settled[need.controller])
    )
    answers = await access_reviews.review(client, questions)
    findings += [access_reviews.judge(need, answers, places=settled[need.controller], asker=asker) for need in needs]
    judged = [judge_definitions(need, seen, is_asked_for=bool(scrutiny.controllers)) for need in needs]
    findings += [finding for finding in judged if finding is not None]
    on_step("whether all objects can be read")
    return findings + await odd_objects.look_through(client, odd_objects.shelves(needs, places))


async def _rivals(client: Client, scrutiny: Scrutiny, *, greeting: Greeting, clock: Clock) -> list[Finding]:
    names = {needs.controller for needs in scrutiny.needs}
    findings: list[Finding] = []
    if names & _USERS_OF_THE_AUTOSCALER_LEASE:
        now = clock.now() + timedelta(seconds=greeting.ahead_s or 0.0)
        findings.append(await _answered("rivals.nodes", rivals.autoscaler(client, now=now)))
    if "kafka" in names:
        looking = rivals.strimzi_operator(client, namespace=scrutiny.places.watched)
        findings.append(await _answered("rivals.kafka", looking))
    return findings


async def _answered(check: str, looking: Awaitable[Finding]) -> Finding:
    """One question that fails does not take away what was found before."""
    try:
        return await looking
    except (NotSent, CredentialsFailed):
        raise
    except PlimsollError as error:
        return Finding(check=check, level=Level.UNKNOWN, message=f"could not be looked at: {error}")
