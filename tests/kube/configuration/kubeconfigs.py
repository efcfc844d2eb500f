"""Builders for kubeconfig files and for what stands around them, with defaults that work."""

from __future__ import annotations

import base64
import ipaddress
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from plimsoll.kube.configuration import AccessOptions, LoaderContext, choose_access
from plimsoll.kube.configuration.processes import Command, Finished, Outcome
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Access, Credential

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
SERVER = "https://10.0.0.1:6443"


def certificate_and_key(name: str = "ada", *, until: datetime | None = None) -> tuple[bytes, bytes]:
    """A pair of its own; good for tests that look and do not connect."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    ends = until or datetime(2035, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(ends - timedelta(days=4000))
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), key_pem


def b64(data: bytes | str) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def config(
    *,
    cluster: Mapping[str, Any] | None = None,
    user: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    name: str = "one",
    **more: Any,
) -> dict[str, Any]:
    """One cluster, one user and one context of the same name, which is the current one."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": dict(user or {})}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
        "current-context": name,
        **more,
    }


def plugin(**fields: Any) -> dict[str, Any]:
    """A user with an exec plugin."""
    return {"exec": {"apiVersion": V1, "command": "login", "interactiveMode": "Never", **fields}}


def answer(*, api_version: str = V1, **status: Any) -> bytes:
    """What a plugin prints."""
    return json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status}).encode()


@dataclass
class FakeProcesses:
    """Ends every process with what `play` gives for it, and remembers the commands."""

    play: Callable[[Command], Outcome] = lambda _: Finished(exit_code=0, stdout=answer(token="plugin-token"))
    clock: Clock | None = None
    takes_s: float = 0.0
    commands: list[Command] = field(default_factory=list)

    async def run(self, command: Command) -> Outcome:
        self.commands.append(command)
        if self.clock is not None:
            await self.clock.sleep(self.takes_s)
        return self.play(command)


class ClientEnvironment:
    """A home folder, an environment and a clock."""

    def __init__(self, folder: Path, *, clock: Clock | None = None, runner: FakeProcesses | None = None) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
        self.clock: Clock = clock or RealClock()
        self.runner = runner or FakeProcesses()
        self.is_terminal = False

    def write(self, name: str, content: Any) -> str:
        """A file; what is not bytes is written as JSON, which is YAML."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return str(file)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()

    def access(self, content: Any = None, **choice: str) -> Access:
        """What is found; `content` becomes the file that is named explicitly."""
        if content is not None:
            choice["kubeconfig"] = self.write("config.yaml", content)
        context = LoaderContext(
            environment=self.environment,
            clock=self.clock,
            runner=self.runner,
            has_terminal=lambda: self.is_terminal,
            service_account=self.folder / "serviceaccount",
        )
        return choose_access(AccessOptions(**choice), context)

    async def credential(self, user: Mapping[str, Any], **choice: str) -> Credential:
        return await self.access(config(user=user), **choice).credentials.get_current()

    def in_pod(self, *, host: str = "10.96.0.1", port: str = "443", token: str = "pod-token") -> None:
        self.environment |= {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        self.write("serviceaccount/token", token.encode())
        self.write("serviceaccount/ca.crt", certificate_and_key("ca")[0])
        self.write("serviceaccount/namespace", b"apps\n")
