"""Connection settings: Kafka's own properties files, and mistakes in them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.brokers.connection_settings import (
    parse_bootstrap,
    parse_connection_settings,
    parse_properties,
    read_connection_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}


def test_a_properties_file_of_kafkas_own_tools(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificates")
    path = tmp_path / "client.properties"
    path.write_text(
        "! a comment\n\n"
        "security.protocol = SASL_SSL\n"
        "sasl.mechanism: SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '  username="u" password="a\\\\"b=c";\n'
        f"ssl.truststore.location={tmp_path / 'ca.pem'}\n"
        "ssl.endpoint.identification.algorithm=\n"
        "request.timeout.ms=1500\n"
    )
    settings = read_connection_settings("h1:1,h2", path)
    assert settings.bootstrap == ("h1:1", "h2:9092")
    assert (settings.security_protocol, settings.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-256")
    assert (settings.sasl_username, str(settings.sasl_password)) == ("u", 'a"b=c')
    assert settings.ssl_cafile == str(tmp_path / "ca.pem")
    assert not settings.ssl_check_hostname
    assert settings.request_timeout_s == 1.5


def test_secrets_are_in_no_representation() -> None:
    settings = parse_connection_settings("h", {**SASL, "sasl.username": "u", "sasl.password": "deep-secret"})
    assert settings.list_secrets() == ("deep-secret",)
    assert "deep-secret" not in repr(settings)
    assert "deep-secret" not in f"{settings}"


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"security.protocl": "SSL"}, "security.protocl"),
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism"),
        ({"sasl.username": "u", "sasl.password": "deep-secret"}, "security.protocol"),
        ({**SASL, "sasl.username": "u"}, "sasl.jaas.config"),
        ({**SASL, "sasl.jaas.config": "required password=deep-secret;"}, "sasl.jaas.config"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/no/such/file"}, "ssl.ca.location"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "JKS"}, "ssl.truststore.type"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "x"}, "ssl.endpoint.identification"),
        ({"request.timeout.ms": "0"}, "request.timeout.ms"),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms"),
    ],
)
def test_a_mistake_is_named_by_its_property_without_secrets(properties: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_connection_settings("h", properties)
    assert refused.value.path.startswith(named)
    assert "deep-secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "h:", "h:0", "h:65536", "h:x", "::1", "a b:1", "h:1,,g:2", "http://h:1", ":9092"])
def test_a_bootstrap_that_is_no_list_of_servers_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_bootstrap(text)
    assert refused.value.path == "bootstrap"


def test_bootstrap_servers_may_be_ipv6() -> None:
    assert parse_bootstrap("[::1]:9093, [fe80::1]") == ("[::1]:9093", "[fe80::1]:9092")


@pytest.mark.parametrize("text", ["no separator\n", "a=1\na=2\n", "a=1\\"])
def test_a_file_that_is_no_properties_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_properties(text)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"a=\xff")
    (tmp_path / "large").write_bytes(b"#" * (1 << 17))
    for name, problem in (("absent", "cannot be read"), ("binary", "UTF-8"), ("large", "more than")):
        with pytest.raises(InvalidInput, match=problem) as refused:
            read_connection_settings("h", tmp_path / name)
        assert str(tmp_path / name) in str(refused.value)
