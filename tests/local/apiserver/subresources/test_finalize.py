from __future__ import annotations

from tests.local.apiserver.subresources.builders import cluster

NAMESPACES = "/api/v1/namespaces"


def test_only_the_finalizers_of_the_body_count():
    with cluster() as world:
        world.made(NAMESPACES, {"metadata": {"name": "x", "labels": {"a": "b"}}})
        body = {"metadata": {"name": "x", "labels": {"c": "d"}}, "spec": {"finalizers": ["ex.com/f"]}}
        assert world.send("PUT", f"{NAMESPACES}/x/finalize", body).status == 200
        after = world.get(f"{NAMESPACES}/x")
        assert after["spec"] == {"finalizers": ["ex.com/f"]}
        assert after["metadata"]["labels"] == {"a": "b", "kubernetes.io/metadata.name": "x"}


def test_a_terminating_namespace_goes_with_its_last_finalizer():
    with cluster() as world:
        world.made(NAMESPACES, {"metadata": {"name": "x"}})
        world.send("DELETE", f"{NAMESPACES}/x")
        assert world.get(f"{NAMESPACES}/x")["status"]["phase"] == "Terminating"
        assert world.send("PUT", f"{NAMESPACES}/x/finalize", {"metadata": {"name": "x"}, "spec": {}}).status == 200
        assert world.send("GET", f"{NAMESPACES}/x").status == 404


def test_a_stale_version_conflicts():
    with cluster() as world:
        world.made(NAMESPACES, {"metadata": {"name": "x"}})
        body = {"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {"finalizers": ["ex.com/f"]}}
        assert world.send("PUT", f"{NAMESPACES}/x/finalize", body).status == 409
