"""Why TLS failed and how to fix it: the certificate, its names and dates, and the authorities it was checked against.

OpenSSL gives only the reason. To describe the certificate, it is fetched again on a connection that verifies
nothing and sends nothing.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from cryptography import x509

from plimsoll.kube.access import Tls
from plimsoll.kube.errors import NotSent, TlsRefused, UnknownAuthority
from plimsoll.kube.http.tls_contexts import build_context, describe_authorities

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.http.failures import Route

_FETCH_S: Final = 2.0
_NAMES_SHOWN: Final = 12

# OpenSSL's error numbers (x509_vfy.h) that have a message of their own.
NOT_YET_VALID: Final = 9
EXPIRED: Final = 10
SELF_SIGNED: Final = 18
UNTRUSTED: Final = frozenset({2, 7, 19, 20, 21, 30})
WRONG_NAME: Final = frozenset({62, 64})

_NOT_TLS: Final = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "UNKNOWN_PROTOCOL"}
)
CLIENT_CERTIFICATE_ALERTS: Final = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a client certificate, and we show none",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not know the authority of our client certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it takes our client certificate for broken",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it does not support the kind of our client certificate",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "our client certificate is revoked",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "our client certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept our client certificate",
    "TLSV1_ALERT_ACCESS_DENIED": "it denies access to our client certificate",
    "TLSV1_ALERT_DECRYPT_ERROR": "it cannot verify our client certificate",
}


class Presented(NamedTuple):
    """The contents of a certificate that a server, or this client, presents."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    begins: datetime
    ends: datetime

    @classmethod
    def from_certificate(cls, certificate: x509.Certificate) -> Self:
        return cls(
            subject=certificate.subject.rfc4514_string(),
            issuer=certificate.issuer.rfc4514_string(),
            names=_list_alternative_names(certificate),
            begins=certificate.not_valid_before_utc,
            ends=certificate.not_valid_after_utc,
        )

    @property
    def validity(self) -> str:
        begins, ends = format_certificate_time(self.begins), format_certificate_time(self.ends)
        return f"its certificate is valid from {begins} to {ends}"

    @property
    def listed_names(self) -> str:
        if not self.names:
            return "no name at all"
        more = len(self.names) - _NAMES_SHOWN
        return ", ".join(self.names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


async def build_handshake_error(error: ssl.SSLError, *, route: Route, tls: Tls) -> NotSent:
    """The error for a failed handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        presented = await _fetch_certificate(route, tls)
        is_unknown = error.verify_code == SELF_SIGNED or error.verify_code in UNTRUSTED
        kind = UnknownAuthority if is_unknown else TlsRefused
        return kind(
            f"{route}: {explain_distrust(error.verify_code, error.verify_message, presented, route=route, tls=tls)}"
        )
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        # A server that starts or stops does this, and a load balancer without backends: it may be temporary.
        return NotSent(f"cannot reach {route}: the connection was closed during the TLS handshake")
    return TlsRefused(f"{route}: {explain_handshake_error(error.reason or '', route=route)}")


def build_proxy_handshake_error(error: ssl.SSLError, *, route: Route, tls: Tls) -> NotSent:
    """The error for a failed handshake with an https proxy; as in Go, the same authorities vouch for it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        trusted = describe_authorities(tls)
        why = f"the proxy's certificate is not accepted ({error.verify_message}), checked against {trusted}"
    elif error.reason in _NOT_TLS:
        why = "the proxy does not speak TLS; its URL may have to begin with http://"
    else:
        why = f"the TLS handshake with the proxy failed ({error.reason or 'no reason given'})"
    return TlsRefused(f"{route}: {why}")


def refuses_client(error: ssl.SSLError) -> bool:
    """Whether the server rejects the client. With TLS 1.3 it reports that only after the client's handshake."""
    return error.reason in CLIENT_CERTIFICATE_ALERTS


def explain_handshake_error(reason: str, *, route: Route) -> str:
    """The meaning of a handshake error other than an untrusted certificate."""
    if reason in _NOT_TLS:
        plain = route.address.base.replace("https://", "http://", 1)
        return f"the server does not speak TLS; if it speaks plain HTTP, its address is {plain}"
    if reason in CLIENT_CERTIFICATE_ALERTS:
        why = CLIENT_CERTIFICATE_ALERTS[reason]
        return f"the server refused us: {why}; see client-certificate and client-key of the user"
    if reason == "SSLV3_ALERT_HANDSHAKE_FAILURE":
        return "the server refused the TLS handshake; it may ask for a client certificate (client-certificate)"
    if reason in {"TLSV1_UNRECOGNIZED_NAME", "TLSV1_ALERT_UNRECOGNIZED_NAME"}:
        return "the server does not know the name it was asked for; set tls-server-name to one it knows"
    if reason in {"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"}:
        return "the server speaks no TLS of version 1.2 or newer"
    return f"the TLS handshake failed ({reason or 'no reason given'})"


def explain_distrust(code: int, openssl_words: str, presented: Presented | None, *, route: Route, tls: Tls) -> str:
    """Why the server's certificate is not accepted, and what to do."""
    if code == EXPIRED:
        dates = presented.validity if presented else "OpenSSL does not say when it ended"
        return (
            f"the server's certificate, or one it is signed with, has expired ({dates});"
            " renew it on the server, or set this machine's clock"
        )
    if code == NOT_YET_VALID:
        dates = presented.validity if presented else "OpenSSL does not say from when on it is"
        return f"the server's certificate, or one it is signed with, is not yet valid ({dates}); check both clocks"
    if code in WRONG_NAME:
        name = tls.server_name or route.address.host
        names = f"is for {presented.listed_names}," if presented else "is for other names,"
        return (
            f"the server's certificate {names} not for {name};"
            " use one of its names in the address, or set tls-server-name to one"
        )
    if code == SELF_SIGNED:
        who = f" ({presented.subject})" if presented else ""
        trusted = describe_authorities(tls)
        return f"the server's certificate is self-signed{who} and not among {trusted}; {_format_remedy(tls)}"
    if code in UNTRUSTED:
        return f"the server's certificate is signed by {_explain_unknown_issuer(presented, tls)}; {_format_remedy(tls)}"
    return f"the server's certificate is not accepted: {openssl_words}"


def _explain_unknown_issuer(presented: Presented | None, tls: Tls) -> str:
    if presented is None:
        return f"an authority that is not among {describe_authorities(tls)}"
    # A cluster that was set up again has an authority of the same name with another key.
    if presented.issuer in _list_trusted_names(tls):
        return f"another {presented.issuer} than the one among {describe_authorities(tls)}"
    return f"{presented.issuer}, which is not among {describe_authorities(tls)}"


def _list_trusted_names(tls: Tls) -> frozenset[str]:
    try:
        believed = x509.load_pem_x509_certificates(tls.ca_pem)
    except ValueError:
        return frozenset()
    return frozenset(certificate.subject.rfc4514_string() for certificate in believed)


def _format_remedy(tls: Tls) -> str:
    if tls.ca_pem:
        return "certificate-authority must hold the authority of this server; is it the right cluster's?"
    return "set certificate-authority to the file with the server's authority"


async def _fetch_certificate(route: Route, tls: Tls) -> Presented | None:
    """The certificate of the server; None if it is unavailable (behind a proxy no second connection is opened)."""
    if route.proxy is not None:
        return None
    address = route.address
    try:
        async with asyncio.timeout(_FETCH_S):
            _, writer = await asyncio.open_connection(
                address.host,
                address.port,
                ssl=build_context(Tls(is_insecure=True)),
                server_hostname=tls.server_name or address.host,
            )
    except (OSError, TimeoutError):
        return None
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return Presented.from_certificate(x509.load_der_x509_certificate(shown)) if shown else None
    except ValueError:
        return None
    finally:
        writer.transport.abort()


def _list_alternative_names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)


def format_certificate_time(when: datetime) -> str:
    """A date of a certificate."""
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
