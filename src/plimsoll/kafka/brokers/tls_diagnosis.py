"""Why a broker and this client do not agree on TLS: whose certificate it is, and what is wrong with it.

kafka-python passes on OpenSSL's words, without dates and names; if the broker refuses our certificate, it often passes
on only that the connection ended. So the handshake is made again on a connection of its own, which sends nothing.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.utils import CryptographyDeprecationWarning

from plimsoll.kafka.brokers.ports import REFUSED_CERTIFICATE, UNTRUSTED_CERTIFICATE, KafkaRefused
from plimsoll.kube.http.tls_failures import (
    CLIENT_CERTIFICATE_ALERTS,
    EXPIRED,
    NOT_YET_VALID,
    SELF_SIGNED,
    UNTRUSTED,
    WRONG_NAME,
    Presented,
    format_certificate_time,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from plimsoll.kafka.brokers.connection_settings import ConnectionSettings

_NO_CERTIFICATE: Final = "TLSV13_ALERT_CERTIFICATE_REQUIRED"


def find_certificate_problem(
    server: str, settings: ConnectionSettings, *, now: datetime, timeout_s: float = 1.0
) -> KafkaRefused | None:
    """The mistake in a certificate that keeps a bootstrap server from answering; None: it is something else."""
    presented: Presented | None = None
    try:
        context = settings.ssl_context or _build_context(settings)
        with _connect(server, context, timeout_s) as connection:
            presented = _parse(connection.getpeercert(binary_form=True))
            connection.recv(1)  # TLS 1.3: the broker looks at our certificate after our handshake has ended
    except ssl.SSLCertVerificationError as error:
        trusted = [_parse(held) for held in context.get_ca_certs(binary_form=True)]
        shown = _fetch_certificate(server, timeout_s)
        reason = _explain_distrust(error, shown, [held for held in trusted if held is not None], server, now)
        return KafkaRefused(reason, code=UNTRUSTED_CERTIFICATE)
    except ssl.SSLError as error:
        if error.reason in CLIENT_CERTIFICATE_ALERTS:
            reason = _explain_refusal(error.reason, _read_own(settings), presented, now)
            return KafkaRefused(reason, code=REFUSED_CERTIFICATE)
    except (OSError, ValueError):
        pass  # nothing listens, or the broker is content and waits for a request
    return None


def _explain_distrust(
    error: ssl.SSLCertVerificationError,
    shown: Presented | None,
    trusted: Collection[Presented],
    server: str,
    now: datetime,
) -> str:
    """What is wrong with the certificate of the broker."""
    code = error.verify_code
    subject = "the certificate of the broker"
    if shown is not None and code == EXPIRED:
        authority = next((held for held in trusted if held.subject == shown.issuer), shown)
        if shown.ends > now > authority.ends:
            return f"the authority of the broker, {shown.issuer}, expired at {format_certificate_time(authority.ends)}"
        return f"{subject} expired at {format_certificate_time(shown.ends)}"
    if shown is not None and code == NOT_YET_VALID:
        return f"{subject} is not valid before {format_certificate_time(shown.begins)}"
    if shown is not None and code in WRONG_NAME:
        return f"{subject} is for {shown.listed_names}, not for {_split(server)[0]}"
    if code == SELF_SIGNED or code in UNTRUSTED:
        return f"{subject} is not trusted: {_explain_authority(shown, trusted)}"
    return f"{subject} is not trusted: {error.verify_message}"


def _explain_authority(shown: Presented | None, trusted: Collection[Presented]) -> str:
    if shown is None:
        return "unknown authority"
    if any(held.subject == shown.issuer for held in trusted):
        return f"unknown authority {shown.issuer}; the trusted one of this name has another key"
    return f"unknown authority {shown.issuer}"


def _explain_refusal(alert: str, ours: Presented | None, broker: Presented | None, now: datetime) -> str:
    """What is wrong with our certificate. Java says the same for all mistakes, so that the dates are looked at here."""
    subject = "the broker does not accept our certificate"
    if alert == _NO_CERTIFICATE:
        return "the broker asks for a certificate, and we have none"
    if ours is None:
        return f"{subject}: {CLIENT_CERTIFICATE_ALERTS[alert]}"
    if ours.ends <= now:
        return f"{subject}: it expired at {format_certificate_time(ours.ends)}"
    if now < ours.begins:
        return f"{subject}: it is not valid before {format_certificate_time(ours.begins)}"
    if broker is not None and broker.issuer != ours.issuer:
        return f"{subject}: unknown authority {ours.issuer}; its own is signed by {broker.issuer}"
    return f"{subject} of {ours.issuer}: {CLIENT_CERTIFICATE_ALERTS[alert]}"


def _read_own(settings: ConnectionSettings) -> Presented | None:
    pem = settings.certificate_pem
    if not pem and settings.ssl_certfile:
        with contextlib.suppress(OSError):
            pem = Path(settings.ssl_certfile).read_bytes()
    try:
        return Presented.from_certificate(x509.load_pem_x509_certificate(pem)) if pem else None
    except ValueError:
        return None


def _build_context(settings: ConnectionSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ssl_cafile or None)
    context.check_hostname = settings.ssl_check_hostname
    if settings.ssl_certfile:
        password = str(settings.ssl_password)
        context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile or None, lambda: password)
    return context


def _fetch_certificate(server: str, timeout_s: float) -> Presented | None:
    """The certificate of a broker that is not trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with _connect(server, context, timeout_s) as connection:
            return _parse(connection.getpeercert(binary_form=True))
    except OSError:
        return None


def _connect(server: str, context: ssl.SSLContext, timeout_s: float) -> ssl.SSLSocket:
    host, port = _split(server)
    plain = socket.create_connection((host, port), timeout=timeout_s)
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except BaseException:  # the error is passed on; a failed handshake leaves the socket open
        plain.close()
        raise


def _split(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host.removeprefix("[").removesuffix("]").rstrip("."), int(port)


def _parse(der: bytes | None) -> Presented | None:
    with warnings.catch_warnings():  # of old authorities of the system, which the user cannot mend
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        try:
            return Presented.from_certificate(x509.load_der_x509_certificate(der)) if der else None
        except ValueError:
            return None
