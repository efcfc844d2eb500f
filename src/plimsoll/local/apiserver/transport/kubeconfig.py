"""The kubeconfig for kubectl and other clients of this server, and of the clusters behind its address."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.errors import InvalidInput
from plimsoll.local.apiserver.transport.cluster_router import CLUSTERS_PATH
from plimsoll.objects.codec.yaml import dump, load_first

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = "plimsoll"


class KubeconfigContext(NamedTuple):
    """A cluster with the user who administers it. All three entries of the file have its name."""

    name: str
    url: str
    token: str

    def build_below(self, cluster_id: str, token: str) -> KubeconfigContext:
        """The context of a cluster behind this address."""
        return KubeconfigContext(cluster_id, f"{self.url}{CLUSTERS_PATH}{cluster_id}", token)


def build_kubeconfig(contexts: Sequence[KubeconfigContext], *, ca_pem: bytes, current: str = NAME) -> bytes:
    """`current` is a context that the file has; otherwise the first one is."""
    authority = base64.b64encode(ca_pem).decode("ascii")
    names = [context.name for context in contexts]
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": context.name, "cluster": {"server": context.url, "certificate-authority-data": authority}}
            for context in contexts
        ],
        "users": [{"name": context.name, "user": {"token": context.token}} for context in contexts],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}} for name in names
        ],
        "current-context": current if current in names else names[0],
        "preferences": {},
    }
    return dump(config).encode()


def read_current_context(content: bytes) -> str:
    """The context that a user selected in such a file; empty: none, or it cannot be read."""
    try:
        config = load_first(content.decode())
    except (InvalidInput, UnicodeDecodeError):
        return ""
    current = config.get("current-context") if isinstance(config, dict) else None
    return current if isinstance(current, str) else ""


def build_url(host: str, port: int) -> str:
    """Where a client on this machine finds a server that is bound to `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- not bound to
    return f"https://[{reachable}]:{port}" if ":" in reachable else f"https://{reachable}:{port}"
