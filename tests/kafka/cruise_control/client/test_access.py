"""How the Cruise Control of a cluster is reached: https or http, with a user or without, by Secrets where needed."""

from __future__ import annotations

import json
import ssl
from typing import Any

import msgspec
import pytest

from plimsoll.kafka.cruise_control.client.access import CruiseControlAccess
from plimsoll.kafka.cruise_control.client.client import CruiseControlClient
from plimsoll.kafka.model.rebalances import RebalanceRefused, RebalanceSpec
from plimsoll.kube.errors import NotAllowed
from plimsoll.objects.api.kafka import Kafka
from plimsoll.testing import run_virtual
from plimsoll.web.client import Request
from tests.kafka.cruise_control.client.recorded import ScriptedClient, build_response
from tests.kube.http.authorities import CertificateAuthority

AUTHORITY = CertificateAuthority("cluster-ca")
CA = "c-cluster-ca-cert"
API = "c-cruise-control-api"
PLAIN = json.dumps({"encryption": {"type": "none"}, "authentication": {"type": "none"}})
NO_BASIC = {"webserver.security.enable": False}


class Secrets:
    """Secrets by name; keeps what was read."""

    def __init__(self, **held: dict[str, bytes]) -> None:
        self.held = {name.replace("_", "-"): data for name, data in held.items()}
        self.reads: list[tuple[str, str]] = []

    async def read(self, namespace: str, name: str) -> dict[str, bytes] | None:
        self.reads.append((namespace, name))
        return self.held.get(name)


def build_secrets() -> Secrets:
    return Secrets(
        c_cluster_ca_cert={"ca.crt": AUTHORITY.pem, "ca.p12": b"\0"},
        c_cruise_control_api={"rebalance-operator.password": b"secret\n"},
    )


def build_kafka(*, security: str = "", status: Any = None, config: Any = None) -> Kafka:
    annotations = {"strimzi.io/internal-cluster-security": security} if security else {}
    return msgspec.convert(
        {
            "metadata": {"name": "c", "namespace": "ns", "annotations": annotations},
            "spec": {"kafka": {}, "cruiseControl": {"config": config}},
            "status": {"clusterSecurity": status},
        },
        Kafka,
    )


def ask(kafka: Kafka, secrets: Secrets, *, web: ScriptedClient | None = None) -> Request | RebalanceRefused:
    """The request for the state of the executor."""
    web = web or ScriptedClient(build_response("state-executor"))

    async def find_and_ask() -> RebalanceRefused | None:
        found = await CruiseControlAccess(web, secrets).find(kafka)
        if isinstance(found, RebalanceRefused):
            return found
        await found.read_executor_state()
        return None

    return run_virtual(find_and_ask()) or web.requests[0]


def test_https_with_the_cluster_authority_and_the_user_of_strimzi():
    secrets = build_secrets()
    request = ask(build_kafka(), secrets)
    assert isinstance(request, Request)
    assert request.url.startswith("https://c-cruise-control.ns.svc:9090/kafkacruisecontrol/state?")
    assert request.tls is not None
    assert request.tls.verify_mode is ssl.CERT_REQUIRED
    assert len(request.tls.get_ca_certs()) == 1
    assert request.headers["Authorization"] == "Basic cmViYWxhbmNlLW9wZXJhdG9yOnNlY3JldA=="
    assert secrets.reads == [("ns", CA), ("ns", API)]


@pytest.mark.parametrize(
    "kafka",
    [
        build_kafka(security=PLAIN),
        build_kafka(security='{"encryption": {"type": "none"}}'),
        build_kafka(status={"encryption": {"type": "none"}, "authentication": {"type": "none"}}),
        build_kafka(config={"webserver.ssl.enable": "false"}),
    ],
    ids=["annotation", "encryption only", "status", "configuration"],
)
def test_plain_http_needs_no_authority(kafka: Kafka):
    secrets = build_secrets()
    request = ask(kafka, secrets)
    assert isinstance(request, Request)
    assert request.url.startswith("http://c-cruise-control.ns.svc:9090/")
    assert request.tls is None
    assert secrets.reads == [("ns", API)]


def test_without_security_nothing_is_read():
    secrets = Secrets()
    request = ask(build_kafka(security=PLAIN, config=NO_BASIC), secrets)
    assert isinstance(request, Request)
    assert "Authorization" not in request.headers
    assert secrets.reads == []


@pytest.mark.parametrize("word", ["tls", "strimzi-tls", "TLS", "", "off"])
def test_only_none_switches_encryption_off(word: str):
    request = ask(build_kafka(security=json.dumps({"encryption": {"type": word}})), build_secrets())
    assert isinstance(request, Request)
    assert request.url.startswith("https://")


@pytest.mark.parametrize("written", ["{", "[]", "1", '{"encryption": "none"}', '{"encryption": {"type": 3}}'])
def test_a_security_that_cannot_be_read_is_named(written: str):
    found = ask(build_kafka(security=written), build_secrets())
    assert isinstance(found, RebalanceRefused)
    assert found.reason == "InvalidResourceException"
    assert "strimzi.io/internal-cluster-security" in found.message


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        (CA, None, "NoSuchResourceException"),
        (CA, {"ca.p12": b"x"}, "InvalidResourceException"),
        (CA, {"ca.crt": b"no certificate"}, "InvalidResourceException"),
        (API, None, "NoSuchResourceException"),
        (API, {"healthcheck.password": b"x"}, "InvalidResourceException"),
    ],
)
def test_a_secret_that_is_missing_or_wrong_is_named_and_awaited(name: str, data: dict[str, bytes] | None, reason: str):
    secrets = build_secrets()
    del secrets.held[name]
    if data is not None:
        secrets.held[name] = data
    found = ask(build_kafka(), secrets)
    assert isinstance(found, RebalanceRefused)
    assert (found.reason, found.is_transient) == (reason, True)
    assert f"Secret ns/{name}" in found.message


def test_a_password_and_an_authority_that_change_are_used_by_the_next_reconcile():
    secrets = build_secrets()
    web = ScriptedClient(*[build_response("state-executor")] * 3)
    access = CruiseControlAccess(web, secrets)

    async def ask_thrice() -> None:
        for _ in range(3):
            found = await access.find(build_kafka())
            assert isinstance(found, CruiseControlClient)
            await found.read_executor_state()
            if len(web.requests) == 2:
                secrets.held[API] = {"rebalance-operator.password": b"other"}
                former, new = AUTHORITY.pem, CertificateAuthority("new").pem
                secrets.held[CA] = {"ca.crt": new, "ca-2026-11-16.crt": former}

    run_virtual(ask_thrice())
    first, second, third = web.requests
    assert first.tls is second.tls
    assert first.headers == second.headers
    assert third.headers != second.headers
    assert third.tls is not None
    assert len(third.tls.get_ca_certs()) == 2


def test_a_process_that_lost_its_lease_starts_no_execution():
    class Lost:
        def limit_duration_s(self, _wanted_s: float) -> float:
            raise NotAllowed("the lease is lost")

        async def confirm(self) -> None:
            raise NotAllowed("the lease is lost")

    web = ScriptedClient(*[build_response("rebalance-dryrun-verbose")] * 2)

    async def request(*, is_dry_run: bool) -> None:
        found = await CruiseControlAccess(web, Secrets(), guard=Lost()).find(
            build_kafka(security=PLAIN, config=NO_BASIC)
        )
        assert isinstance(found, CruiseControlClient)
        await found.request_rebalance(RebalanceSpec(), is_dry_run=is_dry_run)

    run_virtual(request(is_dry_run=True))
    with pytest.raises(NotAllowed):
        run_virtual(request(is_dry_run=False))
    assert len(web.requests) == 1
