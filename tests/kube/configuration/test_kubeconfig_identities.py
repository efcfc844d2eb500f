"""Who we are: tokens, token files, passwords, client certificates, impersonation, and the service account of a pod."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from structlog.testing import capture_logs

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import CredentialsFailed
from plimsoll.testing import run_virtual
from tests.kube.configuration.kubeconfigs import ClientEnvironment, b64, certificate_and_key, config, plugin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from plimsoll.kube.access import Credential
    from plimsoll.runtime.clocks import VirtualClock
    from tests.golden.reviewed_sentences import ReviewedSentences


def presented(machine: ClientEnvironment, user: Mapping[str, Any], **cluster: Any) -> Credential:
    return run_virtual(machine.access(config(user=user, cluster=cluster)).credentials.get_current())


def test_no_user_at_all_is_anonymous(machine: ClientEnvironment):
    content = config(context={"user": ""})
    assert run_virtual(machine.access(content).credentials.get_current()).headers == {}


def test_a_token(machine: ClientEnvironment):
    assert presented(machine, {"token": "abc"}).headers == {"Authorization": "Bearer abc"}


def test_name_and_password(machine: ClientEnvironment):
    headers = presented(machine, {"username": "ada", "password": "pässword"}).headers
    assert headers == {"Authorization": f"Basic {b64('ada:pässword')}"}


def test_a_token_comes_before_an_exec_plugin(machine: ClientEnvironment):
    assert presented(machine, {"token": "abc", **plugin()}).headers == {"Authorization": "Bearer abc"}
    assert machine.runner.commands == []


def test_no_credentials_go_over_http(machine: ClientEnvironment):
    with capture_logs() as logs:
        found = presented(machine, {"token": "abc", "as": "ada"}, server="http://host")
    assert found.headers == {"Impersonate-User": "ada"}
    assert [line["event"] for line in logs] == ["kubeconfig.credentials_not_sent"]


class TestTokenFiles:
    def test_paths_start_where_the_file_lies(
        self, machine: ClientEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        machine.write("sub/token", b" abc\n")
        file = machine.write("sub/config", config(user={"tokenFile": "token"}))
        monkeypatch.chdir(tmp_path)
        for kubeconfig in (file, "sub/config"):
            credentials = machine.access(kubeconfig=kubeconfig).credentials
            assert run_virtual(credentials.get_current()).headers == {"Authorization": "Bearer abc"}

    def test_the_file_comes_before_a_token_beside_it(self, machine: ClientEnvironment):
        file = machine.write("token", b"from-file")
        assert presented(machine, {"token": "abc", "tokenFile": file}).headers == {"Authorization": "Bearer from-file"}

    def test_the_token_stands_in_while_the_file_is_missing(self, machine: ClientEnvironment):
        with capture_logs() as logs:
            found = presented(machine, {"token": "abc", "tokenFile": "gone"})
        assert found.headers == {"Authorization": "Bearer abc"}
        assert [line["event"] for line in logs] == ["credentials.token_file.unreadable"]

    def test_is_read_again_once_a_minute(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = ClientEnvironment(tmp_path, clock=clock)
            credentials = machine.access(config(user={"tokenFile": machine.write("token", b"old")})).credentials
            first = await credentials.get_current()
            machine.write("token", b"new")
            await clock.sleep(59)
            assert await credentials.get_current() is first
            await clock.sleep(1)
            assert (await credentials.get_current()).headers == {"Authorization": "Bearer new"}

        run_virtual(story)

    def test_is_read_again_at_once_when_the_server_refuses_the_token(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = ClientEnvironment(tmp_path, clock=clock)
            credentials = machine.access(config(user={"tokenFile": machine.write("token", b"old")})).credentials
            old = await credentials.get_current()
            machine.write("token", b"new")
            credentials.invalidate(old)
            assert (await credentials.get_current()).headers == {"Authorization": "Bearer new"}

        run_virtual(story)

    @pytest.mark.parametrize("now", [None, b"", b"\xff", b"a\nb"])
    def test_the_old_token_stays_while_the_new_cannot_be_used(self, tmp_path: Path, now: bytes | None):
        async def story(clock: VirtualClock) -> None:
            machine = ClientEnvironment(tmp_path, clock=clock)
            file = machine.write("token", b"old")
            credentials = machine.access(config(user={"tokenFile": file})).credentials
            await credentials.get_current()
            machine.remove("token") if now is None else machine.write("token", now)
            await clock.sleep(60)
            assert (await credentials.get_current()).headers == {"Authorization": "Bearer old"}

        with capture_logs() as logs:
            run_virtual(story)
        assert [line["event"] for line in logs] == ["credentials.token_file.unreadable"]


class TestCertificates:
    def test_from_data(self, machine: ClientEnvironment):
        certificate, key = certificate_and_key(until=datetime(2031, 5, 1, tzinfo=UTC))
        user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
        found = presented(machine, user)
        assert (found.certificate_pem, found.key_pem) == (certificate, key)
        assert found.expires_at == datetime(2031, 5, 1, tzinfo=UTC)

    def test_beside_a_token(self, machine: ClientEnvironment):
        certificate, key = certificate_and_key()
        user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key), "token": "abc"}
        found = presented(machine, user)
        assert found.has_certificate
        assert found.headers == {"Authorization": "Bearer abc"}

    def test_both_in_one_file_with_other_blocks_before(self, machine: ClientEnvironment):
        certificate, key = certificate_and_key()
        parameters = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
        file = machine.write("both.pem", b"a comment\n" + parameters + key + certificate)
        found = presented(machine, {"client-certificate": file, "client-key": file})
        assert (found.certificate_pem, found.key_pem) == (certificate, key)

    def test_a_key_with_a_password_is_refused(self, machine: ClientEnvironment, reviewed: ReviewedSentences):
        certificate, _ = certificate_and_key()
        key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw")
        )
        with pytest.raises(CredentialsFailed) as raised:
            presented(machine, {"client-certificate-data": b64(certificate), "client-key-data": b64(key)})
        reviewed(str(raised.value))

    def test_files_are_read_again_when_they_change_and_never_half_a_pair(self, machine: ClientEnvironment):
        old, new = certificate_and_key(), certificate_and_key()
        files = machine.write("c.pem", old[0]), machine.write("k.pem", old[1])
        user = {"client-certificate": "c.pem", "client-key": "k.pem"}
        credentials = machine.access(config(user=user)).credentials

        first = run_virtual(credentials.get_current())
        assert run_virtual(credentials.get_current()) is first
        renewed(files[0], new[0])
        with capture_logs() as logs:
            assert run_virtual(credentials.get_current()) is first
        assert logs[0]["event"] == "credentials.certificate.unusable"
        renewed(files[1], new[1])
        assert run_virtual(credentials.get_current()).certificate_pem == new[0]


def renewed(file: str, content: bytes) -> None:
    """Replaces a file as kubelets do, by another of the same name."""
    beside = Path(f"{file}.new")
    beside.write_bytes(content)
    beside.replace(file)


class TestServers:
    def test_authority_from_data_and_from_a_file(self, machine: ClientEnvironment):
        ca, _ = certificate_and_key("ca")
        machine.write("ca.crt", b"comment\n" + ca)
        by_data = machine.access(config(cluster={"certificate-authority-data": b64(ca)}))
        by_file = machine.access(config(cluster={"certificate-authority": "ca.crt"}))
        assert by_data.tls.ca_pem == by_file.tls.ca_pem == ca
        assert (by_data.tls.ca_file, by_file.tls.ca_file) == ("", str(machine.folder / "ca.crt"))

    def test_name_proxy_and_no_verification(self, machine: ClientEnvironment):
        cluster = {
            "tls-server-name": "kubernetes",
            "proxy-url": "http://u:secret@proxy:3128",
            "insecure-skip-tls-verify": True,
            "disable-compression": True,
        }
        access = machine.access(config(cluster=cluster))
        assert (access.tls.server_name, access.tls.is_insecure) == ("kubernetes", True)
        assert access.proxy_url == "http://u:secret@proxy:3128"


def test_impersonation(machine: ClientEnvironment):
    user = {
        "token": "abc",
        "as": "ada",
        "as-uid": "u-1",
        "as-groups": ["dev", "ops, really"],
        "as-user-extra": {"example.com/Scopes": ["view", "edit"]},
    }
    found = presented(machine, user)
    assert found.headers == {"Authorization": "Bearer abc", "Impersonate-User": "ada", "Impersonate-Uid": "u-1"}
    assert found.repeated_headers == (
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops, really"),
        ("Impersonate-Extra-example.com%2FScopes", "view"),
        ("Impersonate-Extra-example.com%2FScopes", "edit"),
    )


class TestPods:
    def test_address_authority_token_and_namespace(self, machine: ClientEnvironment):
        machine.in_pod()
        access = machine.access()
        assert (access.server, access.namespace) == ("https://10.96.0.1:443", "apps")
        assert access.tls.ca_file == str(machine.folder / "serviceaccount/ca.crt")
        assert access.tls.ca_pem.startswith(b"-----BEGIN CERTIFICATE")
        assert run_virtual(access.credentials.get_current()).headers == {"Authorization": "Bearer pod-token"}

    def test_an_ipv6_address_stands_in_brackets(self, machine: ClientEnvironment):
        machine.in_pod(host="fd00::1", port="6443")
        assert machine.access().server == "https://[fd00::1]:6443"

    def test_namespace_option_then_pod_namespace_then_file(self, machine: ClientEnvironment):
        machine.in_pod()
        machine.environment["POD_NAMESPACE"] = "told"
        assert machine.access().namespace == "told"
        assert machine.access(namespace="mine").namespace == "mine"

    def test_the_token_is_read_again_as_the_kubelet_replaces_it(self, tmp_path: Path):
        async def story(clock: VirtualClock) -> None:
            machine = ClientEnvironment(tmp_path, clock=clock)
            machine.in_pod(token="old")
            credentials = machine.access().credentials
            await credentials.get_current()
            machine.in_pod(token="new")
            await clock.sleep(60)
            assert (await credentials.get_current()).headers == {"Authorization": "Bearer new"}

        run_virtual(story)

    @pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
    def test_without_the_variables_it_is_no_pod(self, machine: ClientEnvironment, missing: str):
        machine.in_pod()
        del machine.environment[missing]
        with pytest.raises(InvalidInput, match=f"not a pod with a service account: .* is set, but {missing} is not"):
            machine.access()

    def test_without_a_token_it_is_no_pod_and_the_file_is_named(self, machine: ClientEnvironment):
        machine.in_pod()
        file = machine.folder / "serviceaccount/token"
        file.unlink()
        with pytest.raises(InvalidInput, match=f"not a pod with a service account: .* {file} is not there"):
            machine.access()

    def test_an_authority_that_is_no_certificate_is_named(self, machine: ClientEnvironment):
        machine.in_pod()
        file = machine.write("serviceaccount/ca.crt", b"x")
        with pytest.raises(InvalidInput, match=f"^{file}: holds no certificate in PEM$"):
            machine.access()
