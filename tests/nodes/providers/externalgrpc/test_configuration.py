"""The cloud config of a provider behind gRPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.providers.externalgrpc.configuration import parse_configuration, read_configuration
from tests.e2e.externalgrpc.authorities import CertificateAuthority

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences


def test_an_address_is_all_it_takes():
    found = parse_configuration({"address": "localhost:8086"})
    assert (found.address, found.identity, found.timeout_s) == ("localhost:8086", None, 5.0)


def test_a_file_names_certificates_and_a_deadline(tmp_path: Path):
    files = CertificateAuthority(tmp_path, "authority").files("client")
    file = tmp_path / "cloud.yaml"
    lines = [f'{name}: "{path}"' for name, path in files.items()]
    file.write_text("\n".join(['address: "host:1"', "grpc_timeout: 1500ms", *lines]))
    found = read_configuration(file)
    assert found.timeout_s == 1.5
    assert found.identity is not None
    assert b"PRIVATE KEY" in found.identity.pair.key_pem
    assert "PRIVATE" not in repr(found)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({}, "address"),
        ({"address": "host"}, "address"),
        ({"address": "host:99999"}, "address"),
        ({"address": 5}, "address"),
        ({"address": "h:1", "grpc_timeout": "fast"}, "grpc_timeout"),
        ({"address": "h:1", "grpc_timeout": 5}, "grpc_timeout"),
        ({"address": "h:1", "grpc_timeout": "0s"}, "grpc_timeout"),
        ({"address": "h:1", "caCert": "x"}, "caCert"),
        ({"address": "h:1", "cacert": "x"}, "cert"),
        ({"address": "h:1", "cert": "x", "cacert": "x"}, "key"),
        ({"address": "h:1", "cert": "nowhere", "key": "nowhere", "cacert": "nowhere"}, "cert"),
    ],
)
def test_mistakes_name_their_field(document: dict[str, Any], path: str):
    with pytest.raises(InvalidInput) as caught:
        parse_configuration(document)
    assert caught.value.path == path


def test_a_key_of_another_owner_is_refused(tmp_path: Path, reviewed: ReviewedSentences):
    authority = CertificateAuthority(tmp_path, "authority")
    mixed = {**authority.files("one"), "key": authority.files("two")["key"]}
    with pytest.raises(InvalidInput) as refused:
        parse_configuration({"address": "h:1", **mixed})
    reviewed(str(refused.value))


def test_a_file_that_is_no_map_is_refused(tmp_path: Path):
    file = tmp_path / "cloud.yaml"
    file.write_text("- address")
    with pytest.raises(InvalidInput):
        read_configuration(file)
