"""Where PD is, and what it is shown: clusters that joined others, domains, and TLS by the operator's Secret."""

from __future__ import annotations

import inspect
import ssl
from base64 import b64encode
from typing import Any

import msgspec
import pytest

from plimsoll.kube.errors import NotAllowed
from plimsoll.objects.api.tidb import TidbCluster
from plimsoll.testing import run_virtual
from plimsoll.tidb.pd.access import PdAccess, build_pd_address
from plimsoll.tidb.pd.client import PdClient, PdFailed
from plimsoll.web.client import TIMEOUT_S, Request, RequestFailed, Response
from tests.kube.http.authorities import CertificateAuthority
from tests.tidb.autoscaled_clusters import PLANNER, AutoscaledCluster, EmbeddedServer, group

SECRET = "db-cluster-client-secret"
SECRETS = "/api/v1/namespaces/prod/secrets"


def base(**spec: Any) -> TidbCluster:
    return msgspec.convert({"metadata": {"name": "db", "namespace": "prod"}, "spec": spec}, TidbCluster)


@pytest.mark.parametrize(
    ("spec", "address"),
    [
        ({}, "http://db-pd.prod:2379"),
        ({"tlsCluster": {"enabled": True}}, "https://db-pd.prod:2379"),
        ({"clusterDomain": "cluster.local"}, "http://db-pd.prod.svc.cluster.local:2379"),
        ({"cluster": {"name": "old"}}, "http://old-pd.prod:2379"),
        ({"cluster": {"name": "old", "namespace": "past"}, "clusterDomain": "x"}, "http://old-pd.past:2379"),
        (
            {"cluster": {"name": "old", "namespace": "past", "clusterDomain": "a.b"}, "tlsCluster": {"enabled": True}},
            "https://old-pd.past.svc.a.b:2379",
        ),
    ],
    ids=["plain", "tls", "domain", "joined", "joined elsewhere", "joined far away"],
)
def test_addresses(spec: dict[str, Any], address: str) -> None:
    assert build_pd_address(base(**spec)) == address


class TlsAutoscaledCluster(AutoscaledCluster):
    """Its cluster has TLS; `shown` is what PD was asked with."""

    server: EmbeddedServer

    def __init__(self, **settings: Any) -> None:
        super().__init__(EmbeddedServer, drains_actively=True, **settings)
        self.shown: list[tuple[str, ssl.SSLContext | None]] = []

    async def send(self, asked: Request) -> Response | RequestFailed:
        if not asked.url.startswith(PLANNER):
            self.shown.append((asked.url.partition("/pd/")[0].partition("/v3/")[0], asked.tls))
        return await super().send(asked)

    def group_to_go(self) -> None:
        """There is a group of one store that is no longer wanted."""
        self.autoscaler().cluster()
        self.server.edit("tidbclusters", "db", {"spec": {"tlsCluster": {"enabled": True}}})
        self.planner.says(group(1))
        self.once()
        self.planner.says()
        self.once(700)

    def secret(self, **change: bytes | None) -> None:
        authority = CertificateAuthority("cluster")
        pair = authority.issue(subject="autoscaler")
        held = {"ca.crt": authority.pem, "tls.crt": pair.certificate_pem, "tls.key": pair.key_pem, **change}
        data = {key: b64encode(value).decode() for key, value in held.items() if value is not None}
        self.server.world.ask("DELETE", f"{SECRETS}/{SECRET}")
        self.server.world.made(SECRETS, {"metadata": {"name": SECRET}, "data": data})

    def contexts(self) -> list[ssl.SSLContext | None]:
        found = [tls for _, tls in self.shown]
        self.shown.clear()
        return found


def test_the_drainer_shows_the_certificate_of_the_cluster() -> None:
    with TlsAutoscaledCluster() as world:
        world.secret()
        world.group_to_go()
        world.once(730)
        assert {url for url, _ in world.shown} == {"https://db-pd.prod:2379"}
        (context,) = set(world.contexts())
        assert isinstance(context, ssl.SSLContext)
        assert context.verify_mode is ssl.CERT_REQUIRED
        for number in range(3):
            world.once(760 + 30 * number)
        assert world.clusters == ["db"]


def test_so_does_the_planner_in_this_process() -> None:
    with TlsAutoscaledCluster() as world:
        world.settings = msgspec.structs.replace(world.settings, planner="", prometheus="http://prometheus.test")
        world.secret()
        world.autoscaler().cluster()
        world.server.edit("tidbclusters", "db", {"spec": {"tlsCluster": {"enabled": True}}})
        world.once()
        asked = dict(world.shown)
        assert asked["https://db-pd.prod:2379"] is not None
        assert {tls for url, tls in world.shown if not url.startswith("https://db-pd.prod:")} <= {None}


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (None, f"PD needs a client certificate: Secret prod/{SECRET} cannot be read"),
        ({"tls.key": None}, f"PD needs a client certificate: Secret prod/{SECRET} holds no tls.key"),
        ({"ca.crt": b"odd"}, "PD needs a client certificate: ca.crt of Secret"),
    ],
    ids=["no secret", "no key", "odd authority"],
)
def test_without_it_pd_is_not_asked_and_nothing_goes(change: dict[str, bytes | None] | None, reported: str) -> None:
    with TlsAutoscaledCluster() as world:
        if change is not None:
            world.secret(**change)
        world.group_to_go()
        world.once(730)
        assert world.shown == []
        assert world.tc()["spec"]["tikv"]["replicas"] == 1
        assert world.condition("ScaleInBlocked")[0] == "True"
        assert reported in world.message("ScaleInBlocked")


def test_a_plain_address_that_was_given_is_asked_plainly() -> None:
    with TlsAutoscaledCluster(pd="http://proxy.test") as world:
        world.group_to_go()
        world.once(730)
        assert set(world.shown) == {("http://proxy.test", None)}


# ---- the lease


class EndingLease:
    """A guard: the lease lasts for another `left_s`."""

    def __init__(self, left_s: float) -> None:
        self.left_s = left_s

    def limit_duration_s(self, wanted_s: float) -> float:
        if self.left_s <= 0:
            raise NotAllowed("the lease is held by another process")
        return min(wanted_s, self.left_s)

    async def confirm(self) -> None:
        self.limit_duration_s(1)


class RecordedRequests:
    """A PD that answers null to everything."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response | RequestFailed:
        self.requests.append(request)
        return Response(status=200, body=b"null")


class LeaseEndingSecrets:
    """The lease is lost while the Secret is read."""

    def __init__(self, lease: EndingLease) -> None:
        authority = CertificateAuthority("cluster")
        pair = authority.issue(subject="autoscaler")
        self._data = {"ca.crt": authority.pem, "tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}
        self._lease = lease

    async def read(self, namespace: str, name: str) -> dict[str, bytes] | None:  # noqa: ARG002
        self._lease.left_s = 0
        return self._data


READS = {
    *("get_stores", "get_store", "get_replication", "get_config", "get_placement_rules", "list_schedulers"),
    *("list_evicted_stores", "list_evicting", "count_regions", "get_health", "get_keys", "get_key"),
}
WRITES = {"delete_store", "set_store_state", "evict_leaders", "stop_evicting_leaders"}
ARGUMENTS: dict[str, Any] = {
    "store_id": 4,
    "state": "Up",
    "check": "miss-peer",
    "prefix": "/topology",
    "name": "/key",
}


def methods_of_pd() -> list[str]:
    return [name for name, _ in inspect.getmembers(PdClient, inspect.isfunction) if not name.startswith("_")]


def ask(pd: PdClient, name: str) -> Any:
    needed = inspect.signature(getattr(pd, name)).parameters.values()
    given = [ARGUMENTS[parameter.name] for parameter in needed if parameter.default is parameter.empty]
    return run_virtual(getattr(pd, name)(*given))


def pd_under(lease: EndingLease, web: RecordedRequests, **spec: Any) -> PdClient:
    return PdAccess(web, LeaseEndingSecrets(lease), guard=lease).build_client(base(**spec))


@pytest.mark.parametrize("name", methods_of_pd())
def test_without_the_lease_only_reads_reach_pd(name: str) -> None:
    assert name in READS | WRITES
    web = RecordedRequests()
    pd = pd_under(EndingLease(0), web)
    if name in READS:
        ask(pd, name)
        assert web.requests
        return
    with pytest.raises(NotAllowed, match="held by another process"):
        ask(pd, name)
    assert web.requests == []


@pytest.mark.parametrize("name", sorted(WRITES))
def test_a_write_to_pd_ends_before_the_lease(name: str) -> None:
    for left_s, timeout_s in ((2.0, 2.0), (1000.0, TIMEOUT_S)):
        web = RecordedRequests()
        assert not isinstance(ask(pd_under(EndingLease(left_s), web), name), PdFailed)
        assert [request.timeout_s for request in web.requests] == [timeout_s]


def test_a_lease_that_is_lost_while_the_certificate_is_read_stops_the_write() -> None:
    lease, web = EndingLease(1000.0), RecordedRequests()
    with pytest.raises(NotAllowed):
        ask(pd_under(lease, web, tlsCluster={"enabled": True}), "stop_evicting_leaders")
    assert web.requests == []
