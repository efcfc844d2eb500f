"""The kubeconfig for kubectl and other clients of this server."""

from __future__ import annotations

import base64
from typing import Any, Final

from plimsoll.objects.codec.yaml import dump

NAME: Final = "plimsoll"


def build_kubeconfig(*, url: str, ca_pem: bytes, token: str) -> bytes:
    """One cluster, one user, one context, all called plimsoll."""
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": NAME,
                "cluster": {"server": url, "certificate-authority-data": base64.b64encode(ca_pem).decode("ascii")},
            }
        ],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
        "preferences": {},
    }
    return dump(config).encode()


def build_url(host: str, port: int) -> str:
    """Where a client on this machine finds a server that is bound to `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- not bound to
    return f"https://[{reachable}]:{port}" if ":" in reachable else f"https://{reachable}:{port}"
