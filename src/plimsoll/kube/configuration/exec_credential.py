"""The protocol of exec plugins: the ExecCredential of client.authentication.k8s.io, as input and as output.

Unusable output is an `InvalidInput` with the reason. It quotes nothing, because all of the output may be secret.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput, UnreadableDocument
from plimsoll.kube.access import Credential
from plimsoll.kube.configuration.certificates import build_client_pair
from plimsoll.kube.configuration.headers import build_bearer_header
from plimsoll.kube.configuration.sections import Section
from plimsoll.objects.api.meta import Time
from plimsoll.objects.codec.manifests import read_documents

if TYPE_CHECKING:
    from plimsoll.kube.configuration.exec_config import ExecConfig

KIND: Final = "ExecCredential"
_ANSWER: Final = "its answer"


def format_exec_info(entry: ExecConfig, *, is_interactive: bool) -> str:
    """The text of KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": is_interactive}
    if entry.cluster_info is not None:
        spec["cluster"] = entry.cluster_info
    return json.dumps({"kind": KIND, "apiVersion": entry.api_version, "spec": spec}, separators=(",", ":"))


def read_credential(stdout: bytes, *, api_version: str, now: datetime) -> Credential:
    """Read and validate the output of the plugin."""
    answer = _answer(stdout)
    if answer.get_text("kind") != KIND:
        raise answer.build_error("kind", f'must be "{KIND}"')
    if answer.get_text("apiVersion") != api_version:
        given = answer.get_text("apiVersion")
        shown = f", and is {given}" if given.startswith("client.authentication.k8s.io/") and len(given) < 64 else ""
        raise answer.build_error("apiVersion", f"must be {api_version}, as the configuration says{shown}")
    if "status" not in answer:
        raise answer.build_error("status", "is not there")
    return _read_credential(answer.get_section("status"), now=now)


def _answer(stdout: bytes) -> Section:
    if not stdout.strip():
        raise InvalidInput(f"{_ANSWER} is empty")
    try:
        document = next((value for _, value in read_documents(stdout, source="")), None)
    except UnreadableDocument:
        document = None
    if not isinstance(document, dict):
        raise InvalidInput(f"{_ANSWER} ({len(stdout)} bytes) is not an {KIND} in JSON")
    return Section(document, file=_ANSWER)


def _read_credential(status: Section, *, now: datetime) -> Credential:
    token, certificate, key = (status.get_text(name) for name in ("token", "clientCertificateData", "clientKeyData"))
    if not (token or certificate or key):
        raise status.build_error("", "holds neither a token nor a client certificate")
    if bool(certificate) != bool(key):
        given, missing = ("clientCertificateData", "clientKeyData")[:: 1 if certificate else -1]
        raise status.build_error(missing, f"is not there, but {given} is: they come as a pair")
    pair = _read_pair(status, certificate, key) if certificate else (b"", b"")
    return Credential(
        headers=_build_headers(status, token) if token else {},
        certificate_pem=pair[0],
        key_pem=pair[1],
        expires_at=_read_expiry(status, now=now),
    )


def _build_headers(status: Section, token: str) -> dict[str, str]:
    try:
        return build_bearer_header(token)
    except InvalidInput as error:
        raise status.build_error("token", error.problem) from None


def _read_pair(status: Section, certificate: str, key: str) -> tuple[bytes, bytes]:
    try:
        pair = build_client_pair(certificate.encode(), key.encode())
    except InvalidInput as error:
        name = "clientKeyData" if error.path == "key" else "clientCertificateData"
        raise status.build_error(name, error.problem) from None
    return pair.certificate_pem, pair.key_pem


def _read_expiry(status: Section, *, now: datetime) -> datetime | None:
    written = status.get_text("expirationTimestamp")
    if not written:
        return None
    try:
        expires_at = msgspec.convert(written, Time).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError):
        raise status.build_error("expirationTimestamp", "is not a time like 2025-01-31T12:00:00Z") from None
    if expires_at <= now:
        raise status.build_error(
            "expirationTimestamp",
            f"the credential expired at {_format_time(expires_at)}, and it is {_format_time(now)} now: "
            "the plugin gives old ones, or this machine's clock is wrong",
        )
    return expires_at


def _format_time(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
