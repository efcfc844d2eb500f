"""A deleted autoscaler whose cluster is in a namespace that lets it in no more: what it made there is not forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.transport import Response
from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import SMALL, TIDB, EmbeddedServer, group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.transport import Request, Transport
    from tests.golden.reviewed_sentences import ReviewedSentences

PATH = f"{TIDB}/namespaces/team/tidbclusterautoscalers"
HOME = "/api/v1/namespaces/prod"
MERGE = "application/merge-patch+json"


class InaccessibleCluster(DrainingCluster):
    """Team's autoscaler has a group of one store in prod, and is on its way out."""

    server: EmbeddedServer

    def let_in(self, namespaces: str | None) -> None:
        self.patch(HOME, {"metadata": {"annotations": {"autoscaler.tidb.pingcap.com/allow-from": namespaces}}})

    def patch(self, path: str, body: dict[str, Any]) -> None:
        assert self.server.world.ask("PATCH", path, body, content=MERGE).status == 200

    def deleted_autoscaler(self) -> None:
        self.server.world.namespace("team")
        self.let_in("team")
        self.cluster()
        rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
        spec = {
            "cluster": {"name": "db", "namespace": "prod"},
            "tikv": {"rules": rules, "resources": {"storage_small": SMALL}},
        }
        body = {"apiVersion": "pingcap.com/v1alpha1", "kind": "TidbClusterAutoScaler", "metadata": {"name": "as1"}}
        self.server.world.made(PATH, {**body, "spec": spec})
        self.planner.says(group(1))
        self.pass_by(20)
        assert len(self.clusters) == 2
        assert self.server.world.ask("DELETE", f"{PATH}/as1").status == 200

    @property
    def is_gone(self) -> bool:
        return self.server.world.ask("GET", f"{PATH}/as1").status == 404

    def reported(self) -> str:
        self.run.advance_by(10)
        (result,) = self.once(transport=self._transport())
        return result.message


@pytest.fixture
def world() -> Iterator[InaccessibleCluster]:
    with InaccessibleCluster(EmbeddedServer) as made:
        made.deleted_autoscaler()
        yield made


def test_it_waits_and_reports_why(world: InaccessibleCluster) -> None:
    world.let_in(None)
    world.pass_by(300)
    assert not world.is_gone
    assert world.reported().startswith("namespace prod does not allow the autoscaler or cannot be read")
    assert len(world.clusters) == 2


def test_it_goes_on_when_it_is_let_in_again(world: InaccessibleCluster) -> None:
    world.let_in(None)
    world.pass_by(60)
    world.let_in("team")
    world.pass_by(300)
    assert (world.is_gone, world.clusters, world.lost) == (True, ["db"], [])


@pytest.mark.parametrize("policy", ["orphan", "force"])
def test_on_request_the_finalizer_is_removed_and_nothing_is_deleted(world: InaccessibleCluster, policy: str) -> None:
    world.let_in(None)
    world.patch(f"{PATH}/as1", {"metadata": {"annotations": {"autoscaler.tidb.pingcap.com/deletion-policy": policy}}})
    world.pass_by(20)
    assert (world.is_gone, len(world.clusters)) == (True, 2)


@pytest.mark.parametrize("status", [403, 500])
def test_a_namespace_that_cannot_be_read_is_waited_for(
    world: InaccessibleCluster, status: int, monkeypatch: pytest.MonkeyPatch, reviewed: ReviewedSentences
) -> None:
    blind = HiddenNamespaceTransport(world.server.transport(), status)
    monkeypatch.setattr(world, "_transport", lambda: blind)
    world.pass_by(60)
    assert not world.is_gone
    reviewed(world.reported())
    blind.status = 0
    world.pass_by(300)
    assert (world.is_gone, world.clusters) == (True, ["db"])


class HiddenNamespaceTransport:
    """Does not see the namespace prod; status 0: it does."""

    def __init__(self, inner: Transport, status: int) -> None:
        self._inner = inner
        self.status = status

    async def send(self, call: Request) -> Response:
        if self.status and call.path == HOME:
            return Response(status=self.status, headers={"content-type": "application/json"}, body=b"{}")
        return await self._inner.send(call)

    async def aclose(self) -> None:
        await self._inner.aclose()
