from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.diagnosis import NoExamination, Target
from plimsoll.kube.errors import NotSent, TlsRefused
from tests.kube.diagnosis.examinations import GUEST, Between, Cluster, examined_script, found
from tests.kube.worlds import json_reply, status_reply
from tests.local.apiserver.application.worlds import START

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kube.exchange import Call, Reply

TARGET = Target(server="https://10.0.0.1:6443", origin="context prod of /home/x/.kube/config")


def server(*, version: Any = None, ahead_s: float | None = 0.0, user: str = "bob") -> Callable[[Call], Reply]:
    """A server that knows its version, its time and us, and nothing else."""

    def answer(call: Call) -> Reply:
        if call.path == "/version":
            date = {} if ahead_s is None else {"date": format_datetime(START + timedelta(seconds=ahead_s), usegmt=True)}
            told = {"major": "1", "minor": "34", "gitVersion": "v1.34.0"} if version is None else version
            return json_reply(told, **date)
        if call.path.endswith("selfsubjectreviews"):
            return json_reply({"status": {"userInfo": {"username": user, "groups": ["a"]}}}, status=201)
        return status_reply(404, "there is no such thing", reason="NotFound")

    return answer


def test_a_server_that_answers_is_reachable_and_its_latency_told():
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
        (TlsRefused("not signed by an authority we know"), "a new certificate authority"),
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


def test_a_server_that_fails_cannot_be_examined():
    with pytest.raises(NoExamination, match="cannot work: etcd is away"):
        examined_script(status_reply(503, "etcd is away"), target=TARGET)


def test_a_server_that_goes_away_in_between_is_not_reachable():
    answer = server()

    def leaving(call: Call) -> Reply:
        if call.path.startswith("/api"):
            raise NotSent("connection refused")
        return answer(call)

    def known(call: Call) -> Reply:
        return answer(call) if call.path.endswith("selfsubjectreviews") else leaving(call)

    with pytest.raises(NoExamination, match="connection refused"):
        examined_script(known, target=TARGET)


def test_who_we_are():
    finding = found(examined_script(server(user="bob"), target=TARGET), "identity")
    assert (finding.level, finding.message) == ("ok", "we are bob")
    assert finding.details == {"user": "bob", "groups": ["a"]}


def test_nobody_is_a_warning():
    assert found(examined_script(server(user="system:anonymous"), target=TARGET), "identity").level == "warn"


def test_whom_the_server_does_not_know_it_tells_nothing_else():
    with Cluster() as cluster:
        examination = cluster.examined(token="wrong")
    assert [(one.check, one.level) for one in examination.findings] == [("api", "ok"), ("identity", "fail")]


def test_a_server_that_tells_its_version_only_to_friends_is_reachable_all_the_same():
    answer = server()

    def discreet(call: Call) -> Reply:
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

    class Slow(Between):
        async def send(self, call: Call) -> Reply:
            await cluster.clock.sleep(2)
            reply = await self.inner.send(call)
            date = format_datetime(cluster.clock.now(), usegmt=True)
            await cluster.clock.sleep(2)
            return reply._replace(headers={**reply.headers, "date": date})

    with Cluster() as cluster:
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


def test_discovery_is_open_to_everybody():
    with Cluster() as cluster:
        examination = cluster.examined(token=GUEST)
    assert {one.level for one in examination.findings if one.check.startswith("apis.")} == {"ok"}


def test_the_steps_are_told_as_they_begin():
    from plimsoll.kube.diagnosis import Scrutiny, examine  # noqa: PLC0415 - only here

    steps: list[str] = []
    with Cluster() as cluster:
        cluster.do(examine(cluster.client, Scrutiny(), clock=cluster.clock, on_step=steps.append))
    assert steps[0] == "whether the server answers"
    assert "what we may do" in steps
