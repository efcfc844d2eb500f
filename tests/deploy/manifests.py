"""The manifests in `deploy/`, and the permissions that they grant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from plimsoll.local.apiserver.authorization.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.diagnosis.permissions import Permission
    from tests.local.apiserver.builders import ApiServerHarness

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(file: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / file).read_text()))


def container(subsystem: str) -> dict[str, Any]:
    """The container of the deployment."""
    (deployment,) = documents(f"{subsystem}/deployment.yaml")
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def install_account(server: ApiServerHarness, subsystem: str) -> str:
    """Apply the service account of a subsystem with its rights; gives a token of it."""
    for document in [*documents(f"{subsystem}/service-account.yaml"), *documents(f"{subsystem}/permissions.yaml")]:
        place = "" if document["kind"].startswith("Cluster") else "/namespaces/kube-system"
        api = "/api/v1" if document["kind"] == "ServiceAccount" else "/apis/rbac.authorization.k8s.io/v1"
        server.made(f"{api}{place}/{document['kind'].lower()}s", document)
    path = f"/api/v1/namespaces/kube-system/serviceaccounts/plimsoll-{subsystem}/token"
    token: str = server.made(path, {"spec": {"expirationSeconds": 36_000}})["status"]["token"]
    return token


def rights(subsystem: str, kind: str) -> set[str]:
    """What a role of this kind grants, permission by permission."""
    (role,) = [document for document in documents(f"{subsystem}/permissions.yaml") if document["kind"] == kind]
    return {single.text for rule in role["rules"] for single in Rule.from_json(rule).split_permissions()}


def rights_of(permissions: Iterable[Permission]) -> set[str]:
    """The same for permissions that a controller needs."""
    return {
        single.text
        for permission in permissions
        for single in Rule.from_json(permission.build_rule()).split_permissions()
    }
