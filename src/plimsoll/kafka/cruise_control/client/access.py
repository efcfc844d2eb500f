"""Access to the Cruise Control of a Kafka cluster: its address, the trust in its certificate, and its user.

Names are Strimzi's (docs/design/kafka.md 5). Secrets are read with each use, because they are rotated, and only where
the security of the cluster needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.cruise_control.client.client import TIMEOUT_S, CruiseControlClient
from plimsoll.kafka.model.rebalances import RebalanceRefused
from plimsoll.kafka.wire.internal_security import uses_basic_authentication, uses_tls
from plimsoll.kube.secret_tls import AUTHORITY_KEY, TlsContextCache, join_authorities
from plimsoll.operator.guarded_http import GuardedHttpClient

if TYPE_CHECKING:
    import ssl

    from plimsoll.kube.secret_tls import SecretReader
    from plimsoll.kube.transport import Guard
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.web.client import HttpClient

PORT: Final = 9090
BASE_PATH: Final = "/kafkacruisecontrol"
USER: Final = "rebalance-operator"
PASSWORD_KEY: Final = f"{USER}.password"
_NOT_FOUND: Final = "NoSuchResourceException"
_INVALID: Final = "InvalidResourceException"


class CruiseControlAccess:
    """Finds the Cruise Control of any Kafka cluster by its Service. `guard`: the leader's, asked before changes."""

    def __init__(self, web: HttpClient, secrets: SecretReader, *, guard: Guard | None = None) -> None:
        self._web = web if guard is None else GuardedHttpClient(web, guard, timeout_s=TIMEOUT_S)
        self._secrets = secrets
        self._contexts = TlsContextCache()

    async def find(self, kafka: Kafka) -> CruiseControlClient | RebalanceRefused:
        """A client for one reconcile: a password that changes meanwhile is used by the next."""
        try:
            has_tls = uses_tls(kafka)
        except InvalidInput as error:
            return RebalanceRefused(reason=_INVALID, message=str(error), is_transient=True)
        tls = await self._build_tls(kafka) if has_tls else None
        if isinstance(tls, RebalanceRefused):
            return tls
        password = await self._read_password(kafka) if uses_basic_authentication(kafka) else None
        if isinstance(password, RebalanceRefused):
            return password
        base = build_base_url(kafka, has_tls=has_tls)
        if password is None:
            return CruiseControlClient(base, web=self._web, tls=tls)
        return CruiseControlClient(base, web=self._web, tls=tls, user=USER, password=password)

    async def _build_tls(self, kafka: Kafka) -> ssl.SSLContext | RebalanceRefused:
        namespace, name = kafka.metadata.namespace, f"{kafka.metadata.name}-cluster-ca-cert"
        data = await self._secrets.read(namespace, name)
        where = f"Secret {namespace}/{name}"
        if data is None:
            return _refuse_missing(where)
        try:
            return self._contexts.get_context({AUTHORITY_KEY: join_authorities(data)}, where, needed=(AUTHORITY_KEY,))
        except InvalidInput as error:
            return RebalanceRefused(reason=_INVALID, message=str(error), is_transient=True)

    async def _read_password(self, kafka: Kafka) -> str | RebalanceRefused:
        namespace, name = kafka.metadata.namespace, f"{kafka.metadata.name}-cruise-control-api"
        data = await self._secrets.read(namespace, name)
        where = f"Secret {namespace}/{name}"
        if data is None:
            return _refuse_missing(where)
        password = data.get(PASSWORD_KEY, b"").decode(errors="replace").strip()
        if not password:
            return RebalanceRefused(reason=_INVALID, message=f"{where} holds no {PASSWORD_KEY}", is_transient=True)
        return password


def build_base_url(kafka: Kafka, *, has_tls: bool) -> str:
    scheme = "https" if has_tls else "http"
    return f"{scheme}://{kafka.metadata.name}-cruise-control.{kafka.metadata.namespace}.svc:{PORT}{BASE_PATH}"


def _refuse_missing(where: str) -> RebalanceRefused:
    message = f"{where} does not exist, or cannot be read"
    return RebalanceRefused(reason=_NOT_FOUND, message=message, is_transient=True)
