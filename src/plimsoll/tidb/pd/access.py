"""The way to the PD of a cluster: its address, and the certificate that a cluster with TLS wants to be shown.

The drainer and the planner in this process both go through it. The certificate is the one that TiDB Operator has its
own calls made with: Secret `CLUSTER-cluster-client-secret`. It is looked up for every pass that asks PD anything, and
read anew only if it changed. Without it PD is not asked: that is told like a PD that does not answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.secret_tls import AUTHORITY_KEY, CERTIFICATE_KEY, PRIVATE_KEY, context_from
from plimsoll.tidb.pd.client import Pd
from plimsoll.web.client import RequestFailed

if TYPE_CHECKING:
    import ssl

    from plimsoll.kube.secret_tls import Secrets
    from plimsoll.objects.api.tidb import TidbCluster
    from plimsoll.web.client import HttpClient, Request, Response

_NEEDED: Final = (AUTHORITY_KEY, CERTIFICATE_KEY, PRIVATE_KEY)
_REMEMBERED: Final = 1_000


class PdAccess:
    """To the PDs of all clusters. `address` replaces what a cluster's name gives."""

    def __init__(self, web: HttpClient, secrets: Secrets, *, address: str = "") -> None:
        self._web = web
        self._address = address
        self._certificates = Certificates(secrets)

    def of(self, base: TidbCluster) -> Pd:
        """For one pass: a certificate that changes meanwhile is taken up by the next."""
        address = self._address or address_of_pd(base)
        if not base.spec.tls_cluster.enabled or not address.startswith("https:"):
            return Pd(address, web=self._web)
        namespace, name = base.metadata.namespace, f"{base.metadata.name}-cluster-client-secret"
        return Pd(address, web=_CertifiedWeb(self._web, self._certificates, namespace=namespace, name=name))


def address_of_pd(base: TidbCluster) -> str:
    """Of the Service that TiDB Operator makes; a cluster that joined another has that one's PD."""
    joined = base.spec.cluster if base.is_heterogeneous else None
    name = joined.name if joined is not None else base.metadata.name
    namespace = (joined.namespace if joined is not None else "") or base.metadata.namespace
    domain = joined.cluster_domain if joined is not None else base.spec.cluster_domain
    scheme = "https" if base.spec.tls_cluster.enabled else "http"
    return f"{scheme}://{name}-pd.{namespace}{f'.svc.{domain}' if domain else ''}:2379"


class Certificates:
    """Contexts of Secrets, each made anew when what its Secret holds has changed."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._made: dict[tuple[str, str], tuple[dict[str, bytes] | None, ssl.SSLContext]] = {}

    async def context(self, namespace: str, name: str) -> ssl.SSLContext | RequestFailed:
        data = await self._secrets.data(namespace, name)
        made = self._made.get((namespace, name))
        if made is not None and made[0] == data:
            return made[1]
        try:
            context = context_from(data, f"Secret {namespace}/{name}", needed=_NEEDED)
        except InvalidInput as error:
            return RequestFailed(problem=f"PD wants a certificate, and {error}")
        if len(self._made) >= _REMEMBERED:
            self._made.clear()
        self._made[namespace, name] = (data, context)
        return context


class _CertifiedWeb:
    """Shows the certificate of one Secret, which is looked up with the first question."""

    def __init__(self, web: HttpClient, certificates: Certificates, *, namespace: str, name: str) -> None:
        self._web = web
        self._certificates = certificates
        self._secret = (namespace, name)
        self._context: ssl.SSLContext | None = None

    async def send(self, asked: Request) -> Response | RequestFailed:
        if self._context is None:
            found = await self._certificates.context(*self._secret)
            if isinstance(found, RequestFailed):
                return found
            self._context = found
        return await self._web.send(replace(asked, tls=self._context))
