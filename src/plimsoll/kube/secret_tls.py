"""A TLS context from a Secret: the certificate authority to trust, and the client certificate.

The content of a Secret leaves this module only as a context; messages name the Secret and its keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.access import Credential, Tls
from plimsoll.kube.errors import ApiCallFailed, CredentialsFailed
from plimsoll.kube.http.tls_contexts import TlsContexts
from plimsoll.objects.api.core import Secret

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection

    from plimsoll.kube.client import Client

AUTHORITY_KEY: Final = "ca.crt"
CERTIFICATE_KEY: Final = "tls.crt"
PRIVATE_KEY: Final = "tls.key"
_REMEMBERED: Final = 1_000


class SecretReader(Protocol):
    """Reads the data of a Secret; None if there is none, or it cannot be read."""

    async def read(self, namespace: str, name: str) -> dict[str, bytes] | None: ...


class ClusterSecrets:
    """Reads Secrets from the API server. They are rotated, so they are never cached."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, namespace: str, name: str) -> dict[str, bytes] | None:
        try:
            return (await self._client.get(Secret, name, namespace=namespace)).data
        except ApiCallFailed:
            return None


class TlsContextCache:
    """TLS contexts by the name of their Secret, rebuilt when the Secret changes: connections belong to a context."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[dict[str, bytes] | None, ssl.SSLContext]] = {}

    def get_context(self, data: dict[str, bytes] | None, where: str, *, needed: Collection[str] = ()) -> ssl.SSLContext:
        """As `build_tls_context`."""
        made = self._made.get(where)
        if made is not None and made[0] == data:
            return made[1]
        context = build_tls_context(data, where, needed=needed)
        if len(self._made) >= _REMEMBERED:
            self._made.clear()
        self._made[where] = (data, context)
        return context


def join_authorities(data: dict[str, bytes]) -> bytes:
    """All certificates of the Secret. While the authority is replaced, the former ones stay beside `ca.crt`."""
    names = sorted(data, key=lambda name: (name != AUTHORITY_KEY, name))
    return b"\n".join(data[name] for name in names if name.endswith(".crt"))


def build_tls_context(data: dict[str, bytes] | None, where: str, *, needed: Collection[str] = ()) -> ssl.SSLContext:
    """The context from the data of the Secret that `where` names. Raises `InvalidInput` if a part is missing."""
    if data is None:
        raise InvalidInput(f"{where} cannot be read")
    if missing := [key for key in needed if not data.get(key)]:
        raise InvalidInput(f"{where} holds no {missing[0]}")
    if not data.get(AUTHORITY_KEY) and not data.get(CERTIFICATE_KEY):
        raise InvalidInput(f"{where} holds neither {AUTHORITY_KEY} nor {CERTIFICATE_KEY}")
    trusted = Tls(ca_pem=data.get(AUTHORITY_KEY, b""), ca_file=f"{AUTHORITY_KEY} of {where}")
    shown = Credential(certificate_pem=data.get(CERTIFICATE_KEY, b""), key_pem=data.get(PRIVATE_KEY, b""))
    try:
        return TlsContexts(trusted).get_context(shown)
    except CredentialsFailed as error:
        raise InvalidInput(f"{where}: {error.problem}") from None
