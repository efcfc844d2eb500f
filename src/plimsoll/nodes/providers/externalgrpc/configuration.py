"""The configuration file of the externalgrpc provider, which Cluster Autoscaler calls the cloud config.

address: host:port; key, cert, cacert: files; grpc_timeout: the limit of a call, "5s" by default. With a certificate
both ends authenticate; without one the connection is not encrypted, which is allowed only within one machine.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.value_parsing import find_problem, parse_duration_s
from plimsoll.kube.configuration.certificates import build_client_pair
from plimsoll.objects.codec.manifests import read_documents

if TYPE_CHECKING:
    from plimsoll.kube.configuration.certificates import ClientPair

_FIELDS: Final = ("address", "key", "cert", "cacert", "grpc_timeout")
_TIMEOUT_S: Final = 5.0
_TIMEOUT: Final = "grpc_timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The certificate of this end, and the authorities of the other."""

    pair: ClientPair
    authorities_pem: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcConfiguration:
    """The address of a provider; without `identity` the connection is not encrypted."""

    address: str
    identity: Identity | None = None
    timeout_s: float = _TIMEOUT_S


def read_configuration(path: Path) -> GrpcConfiguration:
    """The configuration and the files that it names (relative to the working directory); raises `InvalidInput`."""
    documents = [document for _, document in read_documents(read_content(path, "file"), source=str(path))]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("is not one map of address, key, cert, cacert and grpc_timeout", path=str(path))
    return parse_configuration(documents[0])


def parse_configuration(document: dict[str, Any]) -> GrpcConfiguration:
    """Raises `InvalidInput` with the name of the field."""
    for name in document:
        if name not in _FIELDS:
            raise InvalidInput(f"is not known; known are {', '.join(_FIELDS)}", path=str(name))
    texts = {name: _get_text(document, name) for name in ("address", "key", "cert", "cacert")}
    check_address(texts["address"])
    timeout_s = _parse_timeout_s(document.get(_TIMEOUT))
    identity = _read_identity(key=texts["key"], cert=texts["cert"], cacert=texts["cacert"])
    return GrpcConfiguration(address=texts["address"], identity=identity, timeout_s=timeout_s)


def is_this_machine(address: str) -> bool:
    """Whether the address is on this machine, so that encryption is not needed."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_address(address: str, *, path: str = "address") -> None:
    """Raises `InvalidInput`."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise InvalidInput(f"must be host:port, is {address!r}", path=path)


def read_content(path: Path, name: str) -> bytes:
    """The content of the file of the field `name`; raises `InvalidInput`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", path=name) from error


def _parse_timeout_s(value: Any) -> float:
    if value is None:
        return _TIMEOUT_S
    problem = find_problem(parse_duration_s, value)
    if problem is not None:
        raise InvalidInput(problem, path=_TIMEOUT)
    seconds = parse_duration_s(value)
    if seconds <= 0:
        raise InvalidInput("must be more than 0", path=_TIMEOUT)
    return seconds


def _read_identity(*, key: str, cert: str, cacert: str) -> Identity | None:
    if not (key or cert or cacert):
        return None
    for name, given in (("cert", cert), ("key", key), ("cacert", cacert)):
        if not given:
            # Cluster Autoscaler would continue without TLS here, which a user who names a key does not expect.
            raise InvalidInput("must be given too: cert, key and cacert go together", path=name)
    try:
        pair = build_client_pair(read_content(Path(cert), "cert"), read_content(Path(key), "key"))
    except InvalidInput as error:
        where = {"certificate": "cert"}.get(error.path, error.path)
        raise InvalidInput(error.problem, path=where) from error
    return Identity(pair=pair, authorities_pem=read_content(Path(cacert), "cacert"))


def _get_text(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput("must be a text", path=name)
    return value
