"""The provider of OCM as a user configures it: addresses, and one file per secret."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.providers.ocm.provider import OcmProvider
from plimsoll.fleet.providers.ocm.settings import OcmClientSettings
from plimsoll.web.client import check_base_url

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.web.client import HttpClient

DEFAULT_TOKEN_URL: Final = "https://sso.redhat.com/auth/realms/redhat-external/protocol/openid-connect/token"  # noqa: S105 - an address
_LONGEST_SECRET: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class OcmOptions:
    """What a user chose. `base_url` empty: no clusters of OCM. Without a client id requests carry no token."""

    base_url: str = ""
    token_url: str = DEFAULT_TOKEN_URL
    client_id_file: Path | None = None
    client_secret_file: Path | None = None
    kafka_operator_addon_id: str = "managed-kafka"
    agent_addon_id: str = "kas-fleetshard-operator"
    logging_addon_id: str = ""
    account_files: dict[str, Path] = field(default_factory=dict)
    """By cloud provider: the JSON object that OCM gets as `aws` or `gcp`."""


def build_ocm_provider(options: OcmOptions, *, web: HttpClient, clock: Clock) -> OcmProvider | None:
    """None: OCM is not configured. Raises `InvalidInput`, naming the option."""
    if not options.base_url:
        return None
    client_id = _read_secret(options.client_id_file, "--ocm-client-id-file")
    if bool(client_id) != (options.client_secret_file is not None):
        raise InvalidInput("needs --ocm-client-secret-file, and the other way round", path="--ocm-client-id-file")
    settings = OcmClientSettings(
        base_url=check_base_url(options.base_url, path="--ocm-base-url"),
        token_url=check_base_url(options.token_url, path="--ocm-token-url") if client_id else "",
        client_id=client_id,
        client_secret=_read_secret(options.client_secret_file, "--ocm-client-secret-file"),
        kafka_operator_addon_id=options.kafka_operator_addon_id,
        agent_addon_id=options.agent_addon_id,
        logging_addon_id=options.logging_addon_id,
        cloud_accounts={cloud: _read_account(file, cloud) for cloud, file in options.account_files.items()},
    )
    return OcmProvider(settings, web=web, clock=clock)


def _read_secret(file: Path | None, option: str) -> str:
    if file is None:
        return ""
    try:
        content = file.read_bytes()[: _LONGEST_SECRET + 1]
        text = content.decode().strip()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}", path=option) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not text", path=option) from error
    if not text or len(content) > _LONGEST_SECRET:
        raise InvalidInput(f"{file} is empty or too long", path=option)
    return text


def _read_account(file: Path, cloud: str) -> dict[str, Any]:
    option = f"--{cloud}-credentials-file"
    try:
        account = msgspec.json.decode(_read_secret(file, option))
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{file} is not JSON", path=option) from error
    if not isinstance(account, dict):
        raise InvalidInput(f"{file} is not a JSON object", path=option)
    return account
