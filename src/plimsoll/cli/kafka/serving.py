"""Options of servers with Cruise Control's API: users and certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.kafka.cruise_control.server.authentication import Authentication
    from plimsoll.web.serving import TlsFiles

UsersOption = Annotated[
    str, typer.Option("--users-file", help='Users, a line "user: password,ROLE" each.', metavar="FILE")
]
CertificateOption = Annotated[
    str, typer.Option("--tls-cert", help="Certificate chain (PEM): serve https.", metavar="FILE")
]
KeyOption = Annotated[str, typer.Option("--tls-key", help="Key of --tls-cert (PEM).", metavar="FILE")]


def read_tls_files(certificate: str, key: str) -> TlsFiles | None:
    """The files of a server; None: it serves plain http. Raises `InvalidInput`."""
    from plimsoll.web.serving import TlsFiles

    if bool(certificate) != bool(key):
        raise InvalidInput("--tls-cert and --tls-key belong together", path="--tls-cert")
    if not certificate:
        return None
    files = TlsFiles(certificate=certificate, key=key)
    files.check()
    return files


def read_authentication(users_file: str, *, host: str, path: str) -> Authentication:
    """The users of a server. Without any it may listen on loopback only. Raises `InvalidInput`."""
    from plimsoll.kafka.cruise_control.server.authentication import Authentication, read_users
    from plimsoll.web.guards import LOOPBACK_NAMES

    users = read_users(Path(users_file)) if users_file else ()
    if not users and host not in LOOPBACK_NAMES:
        shown = host or "every address"
        raise InvalidInput(f"{shown} is not loopback: give --users-file, so that clients must log in", path=path)
    return Authentication(users)
