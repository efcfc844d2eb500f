"""A socket that makes TLS handshakes as a broker does, with any certificate, and answers nothing.

kafka-python leaves the sockets of failed connections to the garbage collector: tests that see failures are marked with
`UNCLOSED`, and call `collect_sockets` at their end.
"""

from __future__ import annotations

import contextlib
import gc
import socket
import ssl
import tempfile
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kube.http.authorities import CertificateAuthority, KeyPair

UNCLOSED = [pytest.mark.filterwarnings(f"ignore:unclosed <{kind}:ResourceWarning") for kind in ("socket", "ssl")]


def collect_sockets() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@contextlib.contextmanager
def open_tls_listener(shown: KeyPair, clients: CertificateAuthority | None = None) -> Iterator[str]:
    """Its address. `clients`: the authority of the certificates that it asks clients for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    show_certificate(context, shown)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.pem.decode())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve, args=(listening, context))
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def show_certificate(context: ssl.SSLContext, pair: KeyPair) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(pair.certificate_pem + pair.key_pem)
        context.load_cert_chain(file.name)


def _serve(listening: socket.socket, context: ssl.SSLContext) -> None:
    """Until the socket is shut down."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        connection.settimeout(5)
        with contextlib.suppress(OSError), connection, context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)
