from __future__ import annotations

from plimsoll.local.apiserver.bootstrap.namespace_defaults import NamespaceDefaults
from tests.local.apiserver.builders import ApiServerHarness


def filled(world: ApiServerHarness) -> None:
    world.run.spawn(NamespaceDefaults(world.server, ca_certificate="the certificate").run())
    world.run.settle()


def names(world: ApiServerHarness, what: str, namespace: str) -> list[str]:
    return [
        item["metadata"]["name"] for item in world.ask("GET", f"/api/v1/namespaces/{namespace}/{what}").body["items"]
    ]


def test_a_new_namespace_gets_what_pods_need():
    with ApiServerHarness() as world:
        filled(world)
        world.made("/api/v1/namespaces", {"metadata": {"name": "team"}})
        world.run.settle()
        assert names(world, "serviceaccounts", "team") == ["default"]
        certificate = world.ask("GET", "/api/v1/namespaces/team/configmaps/kube-root-ca.crt").body
        assert certificate["data"] == {"ca.crt": "the certificate"}
        assert certificate["metadata"]["uid"]


def test_a_namespace_that_was_there_before_gets_it_too_and_nothing_twice():
    with ApiServerHarness() as world:
        world.made("/api/v1/namespaces", {"metadata": {"name": "team"}})
        world.made(
            "/api/v1/namespaces/team/serviceaccounts", {"metadata": {"name": "default", "labels": {"mine": "1"}}}
        )
        filled(world)
        filled(world)
        assert names(world, "serviceaccounts", "team") == ["default"]
        kept = world.ask("GET", "/api/v1/namespaces/team/serviceaccounts/default").body
        assert kept["metadata"]["labels"] == {"mine": "1"}
