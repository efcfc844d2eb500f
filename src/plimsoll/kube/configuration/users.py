"""A user entry of a kubeconfig: its credentials and its impersonation.

The precedence is that of client-go: a token or a password makes an exec plugin unnecessary; a readable token file comes
before a token of the same entry; a client certificate is presented together with any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.access import Credential
from plimsoll.kube.configuration.credentials import (
    ANONYMOUS,
    CertificatePair,
    CombinedCredentials,
    FixedCredentials,
    PemSource,
    TokenFile,
)
from plimsoll.kube.configuration.exec_config import read_exec_config
from plimsoll.kube.configuration.exec_plugin import ExecPlugin
from plimsoll.kube.configuration.headers import (
    build_basic_header,
    build_bearer_header,
    impersonate_more,
    impersonate_user,
)
from plimsoll.kube.configuration.kubeconfig import read_referenced

if TYPE_CHECKING:
    from plimsoll.kube.access import Credentials
    from plimsoll.kube.configuration.clusters import Cluster
    from plimsoll.kube.configuration.exec_plugin import PluginHost
    from plimsoll.kube.configuration.sections import Section


@dataclass(frozen=True, slots=True)
class UserReader:
    """Builds the credentials of one entry, for one cluster."""

    entry: Section
    cluster: Cluster
    host: PluginHost

    def read_credentials(self) -> Credentials:
        parts = [*self._read_all_credentials(), *self._read_impersonation()]
        if not parts:
            return ANONYMOUS
        return parts[0] if len(parts) == 1 else CombinedCredentials(parts)

    def _read_all_credentials(self) -> list[Credentials]:
        """No credentials are sent to a server without TLS, as in kubectl."""
        if not self.cluster.is_https:
            return []
        parts = [*self._read_certificate(), *self._read_header()]
        if "auth-provider" in self.entry:
            raise self.entry.build_error(
                "auth-provider",
                "auth providers are no longer part of Kubernetes clients (since 1.26); use an exec plugin (`exec`)",
            )
        if "exec" in self.entry:
            plugin = ExecPlugin(read_exec_config(self.entry.get_section("exec"), self.cluster), self.host)
            is_needed = not any(self.entry.get_raw(name) for name in ("token", "tokenFile", "username", "password"))
            parts += [plugin] if is_needed else []
        return parts

    def _read_header(self) -> list[Credentials]:
        token, file = self.entry.get_text("token"), self.entry.get_file_path("tokenFile")
        user, password = self.entry.get_text("username"), self.entry.get_text("password")
        if (user or password) and (token or file):
            raise self.entry.build_error("username", "only one may be given: username and password, or a token")
        if user or password:
            return [FixedCredentials(Credential(headers=build_basic_header(user, password)))]
        if token:
            self._check_token(token)
        if not file:
            return [FixedCredentials(Credential(headers=build_bearer_header(token)))] if token else []
        if not token and not read_referenced(self.entry, "tokenFile").strip():
            raise self.entry.build_error("tokenFile", f"{file} is empty")
        return [TokenFile(file, clock=self.host.clock, fallback=token)]

    def _check_token(self, token: str) -> None:
        try:
            build_bearer_header(token)
        except InvalidInput as error:
            raise self.entry.build_error("token", error.problem) from None

    def _read_certificate(self) -> list[Credentials]:
        certificate, key = self._read_pem("client-certificate"), self._read_pem("client-key")
        if certificate is None and key is None:
            return []
        if certificate is None:
            raise self.entry.build_error(
                "client-certificate", "must be given, this or client-certificate-data: there is a key"
            )
        if key is None:
            raise self.entry.build_error("client-key", "must be given, this or client-key-data: there is a certificate")
        pair = CertificatePair(certificate, key)
        pair.check()
        return [pair]

    def _read_pem(self, name: str) -> PemSource | None:
        data, file = self.entry.get_data(f"{name}-data"), self.entry.get_file_path(name)
        if data and file:
            raise self.entry.build_error(f"{name}-data", f"only one may be given, this or {name}")
        if data:
            return PemSource(place=self.entry.get_path(f"{name}-data"), data=data)
        return PemSource(place=self.entry.get_path(name), file=file) if file else None

    def _read_impersonation(self) -> list[Credentials]:
        user, uid, groups = self.entry.get_text("as"), self.entry.get_text("as-uid"), self.entry.get_texts("as-groups")
        section = self.entry.get_section("as-user-extra")
        extra = {key: section.get_texts(key) for key in section.list_names()}
        if not user:
            given = next((name for name in ("as-uid", "as-groups", "as-user-extra") if self.entry.get_raw(name)), "")
            if given:
                raise self.entry.build_error(given, "can be given only with `as`, the user to impersonate")
            return []
        try:
            credential = Credential(
                headers=impersonate_user(user, uid), repeated_headers=impersonate_more(groups, extra)
            )
        except InvalidInput as error:
            raise self.entry.build_error("as", f"or one of the as-… fields beside it {error.problem}") from None
        return [FixedCredentials(credential)]
