"""Access to the PD of a cluster: its address, the client certificate of a cluster with TLS, and the lease.

The certificate is the one that TiDB Operator uses: Secret `CLUSTER-cluster-client-secret`. It is looked up in every
reconcile that uses PD, and loaded again only if it changed. Without it PD is reported as not answering.

PD does not know which process leads, so every request that changes something asks the guard of the Kubernetes client
right before it is sent. A reconcile that began under the lease and goes on after its loss changes nothing in PD.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.secret_tls import AUTHORITY_KEY, CERTIFICATE_KEY, PRIVATE_KEY, TlsContextCache
from plimsoll.operator.guarded_http import GuardedHttpClient
from plimsoll.tidb.pd.client import PdClient
from plimsoll.web.client import TIMEOUT_S, RequestFailed

if TYPE_CHECKING:
    import ssl

    from plimsoll.kube.secret_tls import SecretReader
    from plimsoll.kube.transport import Guard
    from plimsoll.objects.api.tidb import TidbCluster
    from plimsoll.web.client import HttpClient, Request, Response

_NEEDED: Final = (AUTHORITY_KEY, CERTIFICATE_KEY, PRIVATE_KEY)


class PdAccess:
    """Access to the PDs of all clusters. `address` replaces the address derived from the name of a cluster."""

    def __init__(self, web: HttpClient, secrets: SecretReader, *, guard: Guard | None, address: str = "") -> None:
        self._web = web if guard is None else GuardedHttpClient(web, guard, timeout_s=TIMEOUT_S)
        self._address = address
        self._certificates = _Certificates(secrets)

    def build_client(self, base: TidbCluster) -> PdClient:
        """A client for one reconcile: a certificate that changes meanwhile is used by the next."""
        address = self._address or build_pd_address(base)
        if not base.spec.tls_cluster.enabled or not address.startswith("https:"):
            return PdClient(address, web=self._web)
        namespace, name = base.metadata.namespace, f"{base.metadata.name}-cluster-client-secret"
        return PdClient(address, web=_TlsHttpClient(self._web, self._certificates, namespace=namespace, name=name))


def build_pd_address(base: TidbCluster) -> str:
    """The address of TiDB Operator's Service. A heterogeneous cluster uses the PD of the cluster it joined."""
    joined = base.spec.cluster if base.is_heterogeneous else None
    name = joined.name if joined is not None else base.metadata.name
    namespace = (joined.namespace if joined is not None else "") or base.metadata.namespace
    domain = joined.cluster_domain if joined is not None else base.spec.cluster_domain
    scheme = "https" if base.spec.tls_cluster.enabled else "http"
    return f"{scheme}://{name}-pd.{namespace}{f'.svc.{domain}' if domain else ''}:2379"


class _Certificates:
    """The client certificates of clusters, read with each use: they are rotated."""

    def __init__(self, secrets: SecretReader) -> None:
        self._secrets = secrets
        self._contexts = TlsContextCache()

    async def get_context(self, namespace: str, name: str) -> ssl.SSLContext | RequestFailed:
        data = await self._secrets.read(namespace, name)
        try:
            return self._contexts.get_context(data, f"Secret {namespace}/{name}", needed=_NEEDED)
        except InvalidInput as error:
            return RequestFailed(problem=f"PD needs a client certificate: {error}")


class _TlsHttpClient:
    """Uses the certificate of one Secret, which is read with the first request."""

    def __init__(self, web: HttpClient, certificates: _Certificates, *, namespace: str, name: str) -> None:
        self._web = web
        self._certificates = certificates
        self._secret = (namespace, name)
        self._context: ssl.SSLContext | None = None

    async def send(self, request: Request) -> Response | RequestFailed:
        if self._context is None:
            found = await self._certificates.get_context(*self._secret)
            if isinstance(found, RequestFailed):
                return found
            self._context = found
        return await self._web.send(replace(request, tls=self._context))
