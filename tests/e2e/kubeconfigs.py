"""What a kubeconfig gives access to: the server, its authority, and credentials, inline or in files beside it.

Tests that run on a cluster of PLIMSOLL_E2E_KUBECONFIG read it here, so that every kubeconfig that kubectl accepts will
do: certificates as data or as files, whose names are relative to the kubeconfig, and tokens as text or in a file.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from tests.e2e.timeouts import PATIENCE_S


class ClusterAccess(NamedTuple):
    """The cluster and the user of the current context. Certificates are PEM, empty if there are none."""

    server: str
    authority: str
    token: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def cluster(self) -> dict[str, Any]:
        """The cluster as a kubeconfig anywhere else may have it."""
        return {
            "server": self.server,
            "certificate-authority-data": base64.b64encode(self.authority.encode()).decode(),
        }

    def tls_context(self) -> ssl.SSLContext:
        trusting = ssl.create_default_context(cadata=self.authority)
        if self.certificate:
            # Python reads certificates of clients from files only.
            with tempfile.TemporaryDirectory() as folder:
                both = Path(folder) / "client.pem"
                both.touch(mode=0o600)
                both.write_text(f"{self.certificate}\n{self.key}")
                trusting.load_cert_chain(both)
        return trusting

    def ask(
        self, method: str, path: str, body: Any = None, *, content: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        where = urlsplit(self.server)
        connection = http.client.HTTPSConnection(
            where.hostname or "", where.port, context=self.tls_context(), timeout=PATIENCE_S
        )
        headers = {"Content-Type": content, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        response = connection.getresponse()
        found: dict[str, Any] = json.loads(response.read())
        connection.close()
        return response.status, found


def read_access(kubeconfig: Path) -> ClusterAccess:
    document = yaml.safe_load(kubeconfig.read_text())
    context = _named(document, "context", document["current-context"])
    cluster, user = _named(document, "cluster", context["cluster"]), _named(document, "user", context["user"])
    assert urlsplit(cluster["server"]).scheme == "https"
    token = user.get("token", "")
    if not token and user.get("tokenFile"):
        token = (kubeconfig.parent / user["tokenFile"]).read_text().strip()
    return ClusterAccess(
        server=cluster["server"],
        authority=_read_pem(cluster, "certificate-authority", kubeconfig),
        token=token,
        certificate=_read_pem(user, "client-certificate", kubeconfig),
        key=_read_pem(user, "client-key", kubeconfig),
    )


def _named(document: dict[str, Any], what: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry[what] for entry in document[f"{what}s"] if entry["name"] == name)
    return found


def _read_pem(entry: dict[str, Any], field: str, kubeconfig: Path) -> str:
    """Data comes first, as for kubectl; a file is relative to the kubeconfig."""
    if data := entry.get(f"{field}-data"):
        return base64.b64decode(data).decode()
    return (kubeconfig.parent / entry[field]).read_text() if entry.get(field) else ""
