"""How to reach a Kafka cluster: bootstrap servers, TLS, SASL and time limits.

The settings come from a properties file, as for Kafka's own tools (`--command-config`). Names of the Java client and
of librdkafka are both read. A property that is not known is an error that names it, because a misspelt one would
connect without encryption. Secrets appear in no message and no log.
"""

from __future__ import annotations

import re
import ssl  # noqa: TC003 - msgspec reads annotations at run time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.value_parsing import InvalidValue, parse_choice, parse_count
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI")
DEFAULT_PORT: Final = 9092
_LARGEST_FILE_BYTES: Final = 1 << 16
_LARGEST_PORT: Final = 65535
_LONGEST_MS: Final = 3_600_000
_JAAS: Final = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))""")


class Secret(str):
    """Text that its representation hides."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class ConnectionSettings(Value):
    """The address, security and time limits of a cluster. An empty text means: not set."""

    bootstrap: tuple[str, ...]
    """HOST:PORT of some brokers. They name all others."""
    security_protocol: str = "PLAINTEXT"
    ssl_cafile: str = ""
    """PEM certificates of the authorities that sign the brokers' certificates; empty: those of the system."""
    ssl_certfile: str = ""
    """The client's own certificate chain (PEM)."""
    ssl_keyfile: str = ""
    ssl_password: Secret = Secret()
    ssl_check_hostname: bool = True
    ssl_context: ssl.SSLContext | None = None
    """From memory instead of files; the settings above are then not used."""
    certificate_pem: bytes = b""
    """The client's own certificate in `ssl_context`, which does not give it back: for messages about it."""
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: Secret = Secret()
    sasl_kerberos_service_name: str = "kafka"
    client_id: str = "plimsoll"
    connect_timeout_s: float = 10.0
    """For the first answer of any broker."""
    request_timeout_s: float = 30.0

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    def list_secrets(self) -> tuple[str, ...]:
        """The texts that no message may contain."""
        return tuple(secret for secret in (self.ssl_password, self.sasl_password) if secret)


def read_connection_settings(bootstrap: str, path: Path | None = None) -> ConnectionSettings:
    """The settings of a bootstrap list and a properties file. Raises `InvalidInput` with the name of the property."""
    if path is None:
        return parse_connection_settings(bootstrap, {})
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise InvalidInput("is not UTF-8", path=str(path)) from error
    if len(data) > _LARGEST_FILE_BYTES:
        raise InvalidInput(f"has more than {_LARGEST_FILE_BYTES} bytes", path=str(path))
    try:
        return parse_connection_settings(bootstrap, parse_properties(text))
    except InvalidInput as error:
        raise error.with_parent(str(path)) from None


def parse_connection_settings(bootstrap: str, properties: Mapping[str, str]) -> ConnectionSettings:
    """The settings of a bootstrap list and properties. Raises `InvalidInput` with the name of the property."""
    fields: dict[str, object] = {"bootstrap": parse_bootstrap(bootstrap)}
    for name, text in properties.items():
        reader = _PROPERTIES.get(name)
        if reader is None:
            raise InvalidInput("is not a property of a connection", path=name)
        try:
            fields |= reader(text.strip())
        except InvalidValue as error:
            raise InvalidInput(str(error), path=name) from None
    settings = ConnectionSettings(**fields)  # type: ignore[arg-type]
    _check(settings)
    return settings


def parse_bootstrap(text: str) -> tuple[str, ...]:
    """The servers of a comma-separated list of HOST[:PORT]; IPv6 addresses in brackets."""
    servers = []
    for written in text.split(","):
        server = written.strip()
        host, colon, port = server.rpartition(":")
        if not colon or server.endswith("]"):
            host, port = server, str(DEFAULT_PORT)
        if ":" in host and not (host.startswith("[") and host.endswith("]")):
            raise InvalidInput(f"{server[:100]!r} is not HOST:PORT; an IPv6 address needs brackets", path="bootstrap")
        if not host or any(character.isspace() or character == "/" for character in host):
            raise InvalidInput(f"{server[:100]!r} is not HOST:PORT", path="bootstrap")
        if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) <= _LARGEST_PORT):
            raise InvalidInput(f"{server[:100]!r} has no port between 1 and {_LARGEST_PORT}", path="bootstrap")
        servers.append(f"{host}:{int(port)}")
    return tuple(servers)


def parse_properties(text: str) -> dict[str, str]:
    """The entries of a Java properties file: `key=value` or `key: value`, comments, continued lines."""
    entries: dict[str, str] = {}
    logical = ""
    for number, line in enumerate(text.splitlines(), start=1):
        piece = line.lstrip()
        if not logical and (not piece or piece[0] in "#!"):
            continue
        logical += piece
        if (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1]
            continue
        key, separator, value = _split_property(logical)
        logical = ""
        if not separator:
            raise InvalidInput("is not key=value", path=f"line {number}")
        if key in entries:
            raise InvalidInput("is set twice", path=key)
        entries[key] = value.replace("\\\\", "\\")
    if logical:
        raise InvalidInput("the last line ends with a backslash")
    return entries


def _split_property(line: str) -> tuple[str, str, str]:
    places = [place for separator in "=:" if (place := line.find(separator)) > 0]
    if not places:
        return line, "", ""
    place = min(places)
    return line[:place].strip(), line[place], line[place + 1 :].strip()


def _read_text(field: str) -> Callable[[str], dict[str, object]]:
    return lambda text: {field: text}


def _read_secret(field: str) -> Callable[[str], dict[str, object]]:
    return lambda text: {field: Secret(text)}


def _read_file(field: str) -> Callable[[str], dict[str, object]]:
    def read(text: str) -> dict[str, object]:
        if not Path(text).is_file():
            raise InvalidValue(f"there is no file {text[:200]}")
        return {field: text}

    return read


def _read_choice(field: str, choices: tuple[str, ...]) -> Callable[[str], dict[str, object]]:
    return lambda text: {field: parse_choice(text, choices)}


def _read_milliseconds(field: str) -> Callable[[str], dict[str, object]]:
    def read(text: str) -> dict[str, object]:
        count = parse_count(text)
        if not 1 <= count <= _LONGEST_MS:
            raise InvalidValue(f"{count} is not between 1 and {_LONGEST_MS}")
        return {field: count / 1000}

    return read


def _read_store_type(text: str) -> dict[str, object]:
    if text.upper() != "PEM":
        raise InvalidValue("only stores of type PEM can be read; convert the store with keytool and openssl")
    return {}


def _read_host_check(text: str) -> dict[str, object]:
    if text.lower() not in {"", "https", "none"}:
        raise InvalidValue('must be "https", or empty to accept a certificate of another host')
    return {"ssl_check_hostname": text.lower() == "https"}


def _read_jaas(text: str) -> dict[str, object]:
    """User and password of a JAAS line for PLAIN or SCRAM."""
    found = {
        match[1]: re.sub(r"\\(.)", r"\1", match[2] or match[3] or match[4] or "") for match in _JAAS.finditer(text)
    }
    if set(found) != {"username", "password"}:
        raise InvalidValue('must contain username="…" and password="…"')
    return {"sasl_username": found["username"], "sasl_password": Secret(found["password"])}


_PROPERTIES: Final[dict[str, Callable[[str], dict[str, object]]]] = {
    "security.protocol": _read_choice("security_protocol", PROTOCOLS),
    "client.id": _read_text("client_id"),
    "request.timeout.ms": _read_milliseconds("request_timeout_s"),
    "default.api.timeout.ms": _read_milliseconds("connect_timeout_s"),
    "ssl.truststore.type": _read_store_type,
    "ssl.truststore.location": _read_file("ssl_cafile"),
    "ssl.ca.location": _read_file("ssl_cafile"),
    "ssl.keystore.type": _read_store_type,
    "ssl.keystore.location": _read_file("ssl_certfile"),
    "ssl.certificate.location": _read_file("ssl_certfile"),
    "ssl.key.location": _read_file("ssl_keyfile"),
    "ssl.key.password": _read_secret("ssl_password"),
    "ssl.endpoint.identification.algorithm": _read_host_check,
    "sasl.mechanism": _read_choice("sasl_mechanism", MECHANISMS),
    "sasl.mechanisms": _read_choice("sasl_mechanism", MECHANISMS),
    "sasl.jaas.config": _read_jaas,
    "sasl.username": _read_text("sasl_username"),
    "sasl.password": _read_secret("sasl_password"),
    "sasl.kerberos.service.name": _read_text("sasl_kerberos_service_name"),
}


def _check(settings: ConnectionSettings) -> None:
    """Settings that contradict each other."""
    uses_sasl = settings.security_protocol.startswith("SASL_")
    if uses_sasl and not settings.sasl_mechanism:
        raise InvalidInput(f"is needed for {settings.security_protocol}", path="sasl.mechanism")
    if not uses_sasl and (settings.sasl_mechanism or settings.sasl_username or settings.sasl_password):
        raise InvalidInput(f"{settings.security_protocol} does not use the SASL properties", path="security.protocol")
    if settings.sasl_mechanism in MECHANISMS[:3] and not (settings.sasl_username and settings.sasl_password):
        raise InvalidInput(f"{settings.sasl_mechanism} needs a user and a password", path="sasl.jaas.config")
    if not settings.uses_tls and (settings.ssl_cafile or settings.ssl_certfile):
        raise InvalidInput(f"{settings.security_protocol} does not use the TLS properties", path="security.protocol")
