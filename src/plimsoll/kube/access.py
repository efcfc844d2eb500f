"""The address of an API server and the identity used there.

Nothing here shows a secret when printed, logged or put into a traceback.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.kube.errors import CredentialsLate


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """The credential at one moment: header fields, a client certificate, or nothing."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """`Authorization`, and the `Impersonate-…` ones."""
    repeated_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Further header lines, one each: `Impersonate-Group` may occur several times, and no server splits it."""
    certificate_pem: bytes = field(default=b"", repr=False)
    key_pem: bytes = field(default=b"", repr=False)
    expires_at: datetime | None = None

    @property
    def has_certificate(self) -> bool:
        return bool(self.certificate_pem)


class Credentials(Protocol):
    """Where credentials come from: a file that changes, a plugin that is run, or simply a value."""

    async def get_current(self) -> Credential:
        """What to present now; cached while it is good. Raises `CredentialsFailed`."""
        ...

    def invalidate(self, credential: Credential) -> None:
        """The server answered 401 to this one: do not give it again if a fresh one can be had."""
        ...


@runtime_checkable
class SlowCredentials(Protocol):
    """`Credentials` from a plugin or a user: obtaining them may take longer than the timeout of a call."""

    def find_late_credentials(self) -> CredentialsLate | None:
        """What `get_current` is waiting for, and since when; None if it does not wait."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How the certificate of the server is verified."""

    ca_pem: bytes = b""
    """Empty: the machine's own authorities."""
    ca_file: str = ""
    """Where `ca_pem` was read from, for messages."""
    server_name: str = ""
    """Empty: the host of the address."""
    is_insecure: bool = False
    """Take any certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One server and one identity."""

    server: str
    """`https://host:port`, with a path if the API lies below one, without a slash at the end."""
    credentials: Credentials
    tls: Tls = field(default_factory=Tls)
    proxy_url: str = field(default="", repr=False)
    """May hold a password. Empty: what the environment says (HTTPS_PROXY, NO_PROXY)."""
    namespace: str = "default"
    origin: str = ""
    """For messages: `context kind of /home/x/.kube/config`, `the service account of this pod`, `--server`."""
