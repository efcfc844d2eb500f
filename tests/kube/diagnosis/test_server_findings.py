from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from plimsoll.kube.access import Access, Credential
from plimsoll.kube.configuration.credentials import FixedCredentials
from plimsoll.kube.diagnosis import NoExamination, Target
from plimsoll.kube.errors import CredentialsFailed, NotSent, TlsRefused, UnknownAuthority
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.kube.transport import Response
from tests.kube.diagnosis.examinations import (
    GUEST,
    DiagnosedCluster,
    InterceptingTransport,
    examination_options,
    examined_script,
    found,
)
from tests.kube.embedded_api import json_reply, status_reply
from tests.local.apiserver.builders import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kube.transport import Request
    from tests.golden.reviewed_sentences import ReviewedSentences

TARGET = Target(server="https://10.0.0.1:6443", origin="context prod of /home/x/.kube/config")


def server(*, version: Any = None, ahead_s: float | None = 0.0, user: str = "bob") -> Callable[[Request], Response]:
    """A server that knows its version, its time and us, and nothing else."""

    def answer(call: Request) -> Response:
        if call.path == "/version":
            date: dict[str, Any] = (
                {} if ahead_s is None else {"date": format_datetime(START + timedelta(seconds=ahead_s), usegmt=True)}
            )
            reported = {"major": "1", "minor": "34", "gitVersion": "v1.34.0"} if version is None else version
            return json_reply(reported, **date)
        if call.path.endswith("selfsubjectreviews"):
            return json_reply({"status": {"userInfo": {"username": user, "groups": ["a"]}}}, status=201)
        return status_reply(404, "there is no such thing", reason="NotFound")

    return answer


def test_a_server_that_answers_is_reachable_and_its_latency_reported():
    finding = found(examined_script(server(), target=TARGET), "api")
    assert finding.level == "ok"
    assert finding.message == "https://10.0.0.1:6443 answers in 0 ms"
    assert finding.details["latencyMilliseconds"] == 0
    assert finding.details["origin"] == TARGET.origin


def test_a_server_whose_certificate_is_not_checked_is_a_warning():
    finding = found(examined_script(server(), target=Target(server="https://x", is_verified=False)), "api")
    assert finding.level == "warn"
    assert "insecure-skip-tls-verify" in finding.fix


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (NotSent("connection refused"), "check host and port"),
        (UnknownAuthority("not signed by an authority we know"), "a new certificate authority"),
    ],
)
def test_a_server_that_cannot_be_reached_is_named_with_why_and_where_its_address_comes_from(
    error: NotSent, advice: str
):
    with pytest.raises(NoExamination) as raised:
        examined_script(error, target=TARGET)
    assert str(raised.value) == f"cannot reach {TARGET.server}: {error}"
    assert raised.value.exit_code == 4
    assert TARGET.origin in raised.value.hint
    assert advice in raised.value.hint


def test_of_certificates_that_fail_otherwise_only_the_origin_is_reported():
    with pytest.raises(NoExamination) as raised:
        examined_script(TlsRefused("the server's certificate has expired"), target=TARGET)
    assert raised.value.hint == f"the address comes from {TARGET.origin}"


def test_a_client_certificate_that_is_refused_is_reported_with_its_end():
    target = replace(TARGET, certificate_ends=datetime(2024, 5, 6, tzinfo=UTC))
    with pytest.raises(NoExamination) as raised:
        examined_script(TlsRefused("the server refused us: our client certificate has expired"), target=target)
    assert raised.value.hint.endswith("the client certificate in use is valid until 2024-05-06T00:00:00Z")


PAGE = Response(status=200, headers={"content-type": "text/html; charset=utf-8"}, body=b"<html><title>Login</title>")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (status_reply(503, "etcd is away"), f"{TARGET.server} answers, but cannot work: etcd is away"),
        (status_reply(429, "slow down"), f"{TARGET.server} is overloaded and rejects requests (429): slow down"),
        (PAGE, f"{TARGET.server}: this is not a Kubernetes API (GET /version gave text/html)"),
        (PAGE._replace(headers={}), f"{TARGET.server}: this is not a Kubernetes API (GET /version gave something that"),
        (PAGE._replace(status=404), f"{TARGET.server}: this is not a Kubernetes API (GET /version gave 404: "),
        (PAGE._replace(status=403), f"{TARGET.server}: this is not a Kubernetes API (GET /version gave 403: "),
        (Response(status=404), f"{TARGET.server}: this is not a Kubernetes API (GET /version gave 404: "),
        (
            Response(status=302, headers={"location": "https://login"}),
            f"{TARGET.server}: this is not a Kubernetes API (GET /version gave 302, a redirect)",
        ),
        (
            json_reply({"items": []}),
            f"{TARGET.server}: this is not a Kubernetes API (it reports neither its version nor",
        ),
    ],
    ids=["503", "429", "page", "no-type", "page-404", "page-403", "404", "302", "other-json"],
)
def test_a_server_that_is_no_working_api_is_reported_with_address_origin_and_hint(reply: Response, message: str):
    with pytest.raises(NoExamination) as raised:
        examined_script(reply, target=TARGET)
    assert str(raised.value).startswith(message)
    assert raised.value.exit_code == 4
    assert raised.value.hint.startswith(f"the address comes from {TARGET.origin}; ")


def test_plain_http_to_a_server_with_tls_is_answered_with_the_right_address():
    reply = Response(status=400, body=b"Client sent an HTTP request to an HTTPS server.\n")
    with pytest.raises(NoExamination) as raised:
        examined_script(reply, target=Target(server="http://10.0.0.1:6443"))
    assert raised.value.hint == "it must be https://10.0.0.1:6443"


def test_each_question_has_the_time_that_was_given_for_one():
    given: set[float] = set()
    answer = server()

    def listening(call: Request) -> Response:
        given.add(call.timeout_s)
        return answer(call)

    examined_script(listening, target=TARGET, settings=ClientSettings(qps=0, timeout_s=2, deadline_s=5))
    assert given == {2}


def test_credentials_that_fail_in_between_end_the_examination():
    answer = server()

    def losing(call: Request) -> Response:
        if call.path.startswith("/api"):
            raise CredentialsFailed("exec plugin login: failed")
        return answer(call)

    def known(call: Request) -> Response:
        return answer(call) if call.path.endswith("selfsubjectreviews") else losing(call)

    with pytest.raises(CredentialsFailed, match="exec plugin login: failed"):
        examined_script(known, target=TARGET)


def test_a_server_that_goes_away_in_between_is_not_reachable(reviewed: ReviewedSentences):
    answer = server()

    def leaving(call: Request) -> Response:
        if call.path.startswith("/api"):
            raise NotSent("connection refused")
        return answer(call)

    def known(call: Request) -> Response:
        return answer(call) if call.path.endswith("selfsubjectreviews") else leaving(call)

    with pytest.raises(NoExamination) as raised:
        examined_script(known, target=TARGET)
    reviewed(str(raised.value))


def test_the_identity_is_reported(reviewed: ReviewedSentences):
    finding = found(examined_script(server(user="bob"), target=TARGET), "identity")
    assert finding.level == "ok"
    reviewed(finding.message)
    assert finding.details == {"user": "bob", "groups": ["a"]}


def test_no_holder_is_a_warning():
    assert found(examined_script(server(user="system:anonymous"), target=TARGET), "identity").level == "warn"


def forbidding(call: Request) -> Response:
    """Who may do nothing may not even ask who they are."""
    if call.path == "/version":
        return server()(call)
    return status_reply(403, 'forbidden: User "system:anonymous" cannot create', reason="Forbidden")


@pytest.mark.parametrize("answer", [server(user="system:anonymous"), forbidding])
def test_credentials_that_the_server_ignores_are_a_failure(answer: Callable[[Request], Response]):
    examination = examined_script(answer, target=replace(TARGET, is_shown_credentials=True))
    finding = found(examination, "identity")
    assert finding.level == "fail"
    assert finding.message.startswith("the credentials were ignored, ")
    assert "system:anonymous: " in finding.message
    assert [finding.check for finding in examination.findings] == ["api", "identity"]


@pytest.mark.parametrize("answer", [server(user="system:anonymous"), status_reply(401, "no", reason="Unauthorized")])
def test_a_client_certificate_that_has_expired_is_reported_with_its_end(answer: Any):
    target = replace(TARGET, is_shown_credentials=True, certificate_ends=START - timedelta(days=1))
    finding = found(examined_script(answer, target=target), "identity")
    assert finding.level == "fail"
    assert f"the client certificate expired on {START - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}" in finding.message


@pytest.mark.parametrize(
    ("credential", "is_shown"),
    [
        (Credential(), False),
        (Credential(headers={"Authorization": "Bearer t"}), True),
        (Credential(certificate_pem=b"x"), True),
        (Credential(headers={"Authorization": "Bearer t", "Impersonate-User": "system:anonymous"}), False),
    ],
)
def test_a_server_should_know_us_if_it_is_shown_something(credential: Credential, is_shown: bool):
    access = Access(server="https://x", credentials=FixedCredentials(credential))
    assert Target.from_access(access, credential).is_shown_credentials is is_shown


def test_an_unknown_user_gets_nothing_else():
    with DiagnosedCluster() as cluster:
        examination = cluster.examined(token="wrong")
    assert [(finding.check, finding.level) for finding in examination.findings] == [("api", "ok"), ("identity", "fail")]


def test_a_server_that_hides_its_version_from_strangers_is_reachable_all_the_same():
    answer = server()

    def discreet(call: Request) -> Response:
        return status_reply(403, "no", reason="Forbidden") if call.path == "/version" else answer(call)

    examination = examined_script(discreet, target=TARGET)
    assert found(examination, "api").level == "ok"
    assert found(examination, "version").level == "unknown"
    assert found(examination, "clock").level == "unknown"


@pytest.mark.parametrize(
    ("minor", "level"), [("27", "fail"), ("27+", "fail"), ("28", "ok"), ("34+", "ok"), ("50", "ok"), ("", "unknown")]
)
def test_versions_from_1_28_on_will_do(minor: str, level: str):
    version = {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.0"}
    assert found(examined_script(server(version=version), target=TARGET), "version").level == level


@pytest.mark.parametrize("version", [[], {"major": 1}, "1.34"])
def test_an_odd_version_is_no_version(version: Any):
    assert found(examined_script(server(version=version), target=TARGET), "version").level == "unknown"


@pytest.mark.parametrize(
    ("ahead_s", "level", "words"),
    [
        (0, "ok", "agrees"),
        (3, "ok", "our clock is 4 s behind the server's"),
        (-4, "ok", "our clock is 4 s ahead of the server's"),
        (8, "warn", "behind"),
        (-8, "warn", "ahead of"),
        (60, "fail", "more than a lease lasts (15 s)"),
        (-60, "fail", "ahead of"),
    ],
)
def test_clocks_may_be_a_few_seconds_apart(ahead_s: float, level: str, words: str):
    finding = found(examined_script(server(ahead_s=ahead_s), target=TARGET), "clock")
    assert finding.level == level
    assert words in finding.message


def test_half_of_the_round_trip_is_the_way_to_the_server():
    """The answer takes 4 s; the server reads its clock, which is right, in the middle."""

    class Slow(InterceptingTransport):
        async def send(self, call: Request) -> Response:
            await cluster.clock.sleep(2)
            reply = await self.inner.send(call)
            date = format_datetime(cluster.clock.now(), usegmt=True)
            await cluster.clock.sleep(2)
            return reply._replace(headers={**reply.headers, "date": date})

    with DiagnosedCluster() as cluster:
        examination = cluster.examined("kubelet", through=Slow)
    assert abs(found(examination, "clock").details["serverAheadSeconds"]) <= 0.5
    assert found(examination, "api").details["latencyMilliseconds"] == 4000


def test_a_server_without_a_clock_is_not_judged():
    assert found(examined_script(server(ahead_s=None), target=TARGET), "clock").level == "unknown"


def test_apis_that_are_not_served_are_named():
    finding = found(examined_script(server(), target=TARGET), "apis.kubelet")
    assert finding.level == "fail"
    assert "leases (coordination.k8s.io/v1)" in finding.message
    assert "pods/status (v1)" in finding.message


def test_discovery_needs_no_permission():
    with DiagnosedCluster() as cluster:
        examination = cluster.examined(token=GUEST)
    assert {finding.level for finding in examination.findings if finding.check.startswith("apis.")} == {"ok"}


def test_the_steps_are_reported_as_they_begin(reviewed: ReviewedSentences):
    from plimsoll.kube.diagnosis import examine  # noqa: PLC0415 - only here

    steps: list[str] = []
    with DiagnosedCluster() as cluster:
        cluster.do(examine(cluster.client, examination_options(), clock=cluster.clock, on_step=steps.append))
    assert len(steps) > 1
    reviewed(*steps)
