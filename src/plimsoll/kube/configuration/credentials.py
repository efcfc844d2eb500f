"""Credentials from the configuration: fixed ones, a token file, certificate files, and combinations of them.

Each is a `kube.access.Credentials`. Files are read again as they change, because kubelets and cert-manager replace them
under a running process; while the new content is invalid, the old content stays in use and a warning is logged.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.access import Credential, SlowCredentials
from plimsoll.kube.configuration.certificates import ClientPair, build_client_pair
from plimsoll.kube.configuration.headers import build_bearer_header
from plimsoll.kube.errors import CredentialsFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Credentials
    from plimsoll.kube.errors import CredentialsLate

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# Kubelets replace a token at 80 % of its lifetime; client-go reads files at the same interval.
TOKEN_FILE_PERIOD_S: Final = 60.0


class FixedCredentials:
    """Credentials that never change."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def get_current(self) -> Credential:
        return self._credential

    def invalidate(self, credential: Credential) -> None:
        """Nothing to do: there are no other credentials."""


ANONYMOUS: Final = FixedCredentials(Credential())


class TokenFile:
    """A bearer token in a file that another process renews. `fallback` is used until the file has been read once."""

    def __init__(self, file: str, *, clock: Clock, fallback: str = "") -> None:
        self._file = file
        self._clock = clock
        self._credential = Credential(headers=build_bearer_header(fallback)) if fallback else None
        self._read_at_s: float | None = None

    async def get_current(self) -> Credential:
        now_s = self._clock.monotonic_s()
        if self._read_at_s is None or now_s - self._read_at_s >= TOKEN_FILE_PERIOD_S:
            self._read()
            self._read_at_s = now_s
        assert self._credential is not None
        return self._credential

    def invalidate(self, credential: Credential) -> None:
        if self._credential is not None and has_part(credential, self._credential):
            self._read_at_s = None

    def _read(self) -> None:
        try:
            headers = build_bearer_header(Path(self._file).read_text("utf-8").strip())
        except (OSError, ValueError) as error:
            self._keep_on((error.strerror or "unreadable") if isinstance(error, OSError) else "not text")
        except InvalidInput as error:
            self._keep_on(error.problem)
        else:
            if self._credential is None or self._credential.headers != headers:
                self._credential = Credential(headers=headers)

    def _keep_on(self, problem: str) -> None:
        if self._credential is None:
            raise CredentialsFailed(f"no token can be read: {problem}", path=self._file)
        log.warning("credentials.token_file.unreadable", file=self._file, problem=problem)


class PemSource:
    """The source of a client certificate or key: the configuration, or a file that may change.

    `place` is the field that gives it, for messages.
    """

    def __init__(self, *, place: str, data: bytes = b"", file: str = "") -> None:
        self.place = place
        self._data = data
        self._file = file

    def read_version(self) -> tuple[int, ...]:
        """A new version means that the content may have changed."""
        if not self._file:
            return ()
        try:
            found = Path(self._file).stat()
        except (OSError, ValueError):
            return (-1,)
        return found.st_mtime_ns, found.st_size, found.st_ino

    def read(self) -> bytes:
        if not self._file:
            return self._data
        try:
            return Path(self._file).read_bytes()
        except (OSError, ValueError) as error:
            reason = (error.strerror or "unreadable") if isinstance(error, OSError) else "not a path"
            raise CredentialsFailed(f"{self._file} cannot be read: {reason}", path=self.place) from None

    def build_error(self, problem: str) -> CredentialsFailed:
        return CredentialsFailed(f"{self._file} {problem}".strip(), path=self.place)


class CertificatePair:
    """A client certificate and its key; read again when one of their files changes."""

    def __init__(self, certificate: PemSource, key: PemSource) -> None:
        self._certificate = certificate
        self._key = key
        self._versions: tuple[tuple[int, ...], ...] | None = None
        self._credential: Credential | None = None

    async def get_current(self) -> Credential:
        versions = (self._certificate.read_version(), self._key.read_version())
        if self._credential is None or versions != self._versions:
            self._credential = self._read(self._credential)
            self._versions = versions
        return self._credential

    def check(self) -> None:
        """Raises CredentialsFailed, naming the field, if the pair is invalid now."""
        self._read_pair()

    def invalidate(self, credential: Credential) -> None:
        """Files change by themselves; there is nothing to do after a refusal."""

    def _read(self, known: Credential | None) -> Credential:
        try:
            pair = self._read_pair()
        except CredentialsFailed as error:
            if known is None:
                raise
            # Usually one of the two files is written before the other, whose version then changes, too.
            log.warning("credentials.certificate.unusable", field=error.path, problem=error.problem)
            return known
        if known is not None and (known.certificate_pem, known.key_pem) == (pair.certificate_pem, pair.key_pem):
            return known
        return Credential(certificate_pem=pair.certificate_pem, key_pem=pair.key_pem, expires_at=pair.expires_at)

    def _read_pair(self) -> ClientPair:
        try:
            return build_client_pair(self._certificate.read(), self._key.read())
        except CredentialsFailed:
            raise
        except InvalidInput as error:
            source = self._key if error.path == "key" else self._certificate
            raise source.build_error(error.problem) from None


class CombinedCredentials:
    """Several credentials presented at once: a certificate and a token, either and impersonation. The first has it."""

    def __init__(self, parts: Sequence[Credentials]) -> None:
        self._parts = tuple(parts)
        self._last: tuple[tuple[Credential, ...], Credential] | None = None

    async def get_current(self) -> Credential:
        found = tuple([await part.get_current() for part in self._parts])
        if self._last is None or any(new is not old for new, old in zip(found, self._last[0], strict=True)):
            self._last = (found, _combine(found))
        return self._last[1]

    def invalidate(self, credential: Credential) -> None:
        for part in self._parts:
            part.invalidate(credential)

    def find_late_credentials(self) -> CredentialsLate | None:
        late = (part.find_late_credentials() for part in self._parts if isinstance(part, SlowCredentials))
        return next((credentials_late for credentials_late in late if credentials_late is not None), None)


def _combine(parts: Sequence[Credential]) -> Credential:
    headers: dict[str, str] = {}
    for part in parts:
        headers = {**part.headers, **headers}
    certified = next((part for part in parts if part.has_certificate), Credential())
    ends = [part.expires_at for part in parts if part.expires_at is not None]
    return Credential(
        headers=headers,
        repeated_headers=tuple(line for part in parts for line in part.repeated_headers),
        certificate_pem=certified.certificate_pem,
        key_pem=certified.key_pem,
        expires_at=min(ends, default=None),
    )


def has_part(whole: Credential, part: Credential) -> bool:
    """Whether `part` was sent. Its headers decide, if it has any: a fixed certificate hides another."""
    if part.headers:
        return part.headers.items() <= whole.headers.items()
    return part.has_certificate and part.certificate_pem == whole.certificate_pem
