"""TLS contexts: trusted authorities and client certificates.

Trust is that of Go's clients, because kubeconfigs are written for them: any certificate in the given file is an anchor
(also an intermediate one, also the server's own), and only alternative names count, not the common name. Without a file
the authorities of the machine are trusted; with `insecure-skip-tls-verify` every server is.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import CredentialsFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.access import Credential, Tls


class TlsContexts:
    """The context for a credential: made again only when the certificate changes, since connections belong to one."""

    def __init__(self, tls: Tls) -> None:
        self._tls = tls
        self._pair: tuple[bytes, bytes] | None = None
        self._context: ssl.SSLContext | None = None

    def get_context(self, credential: Credential) -> ssl.SSLContext:
        """Raises `InvalidInput` for authorities, `CredentialsFailed` for a certificate, that cannot be used."""
        pair = (credential.certificate_pem, credential.key_pem)
        if self._context is None or pair != self._pair:
            context = build_context(self._tls)
            if credential.has_certificate:
                _show(context, credential)
            self._context, self._pair = context, pair
        return self._context


def build_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if tls.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.ca_pem:
        _load_authorities(context, tls)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def describe_authorities(tls: Tls) -> str:
    """The trusted authorities, for messages."""
    return f"the authorities in {_describe_origin(tls)}" if tls.ca_pem else "the authorities of this machine"


def _describe_origin(tls: Tls) -> str:
    return tls.ca_file or "certificate-authority-data"


def _load_authorities(context: ssl.SSLContext, tls: Tls) -> None:
    # Bundles may have non-ASCII remarks between the certificates; the ssl module accepts only ASCII.
    text = tls.ca_pem.decode("ascii", "ignore")
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise InvalidInput("holds no certificate authority in PEM form", path=_describe_origin(tls)) from None


def _show(context: ssl.SSLContext, credential: Credential) -> None:
    # OpenSSL would ask for the passphrase at the terminal.
    if b"ENCRYPTED" in credential.key_pem:
        raise CredentialsFailed("the client key is encrypted; only keys without a passphrase can be used")
    try:
        with _write_private_file(credential.certificate_pem + b"\n" + credential.key_pem) as path:
            context.load_cert_chain(path, password=lambda: b"")
    except ssl.SSLError as error:
        raise CredentialsFailed(_format_unusable(error)) from None


def _format_unusable(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the client certificate and the client key do not belong together"
    return f"the client certificate or its key is not usable PEM ({error.reason or 'unreadable'})"


@contextmanager
def _write_private_file(content: bytes) -> Iterator[str]:
    """A file for as long as OpenSSL reads it; on Linux in memory only, else on disk with mode 0600."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
