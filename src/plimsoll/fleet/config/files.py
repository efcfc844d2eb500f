"""The configuration files of the fleet manager: where they are, and what they say together.

docs/design/fleet.md 2. Every file that is used is read before the first mistake is reported.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import PlimsollError, UnreadableDocument
from plimsoll.core.values import Value
from plimsoll.fleet.config.access_lists import AdminRolesDocument, NamesDocument, QuotaListDocument
from plimsoll.fleet.config.policy_documents import (
    DYNAMIC_SCALING,
    INSTANCE_TYPES,
    MANUAL_CLUSTERS,
    NODE_PREWARMING,
    PROVIDERS,
    PolicyDocuments,
    build_policy,
)
from plimsoll.fleet.config.strict import Mistake, parse_document
from plimsoll.fleet.model.access import DEFAULT_ADMIN_ROLES, AccessPolicy, QuotaPolicy
from plimsoll.fleet.model.statuses import ScalingType
from plimsoll.objects.codec.yaml import load_first

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.fleet.model.policy import FleetPolicy

QUOTA_LIST: Final = "quota_management_list"
DENY_LIST: Final = "deny_list"
ACCESS_LIST: Final = "access_list"
ADMIN_ROLES: Final = "admin_authz"
DEFAULT_DIRECTORY: Final = "config"
FILE_NAMES: Final = {
    PROVIDERS: "provider-configuration.yaml",
    INSTANCE_TYPES: "kafka-instance-types-configuration.yaml",
    DYNAMIC_SCALING: "dynamic-scaling-configuration.yaml",
    NODE_PREWARMING: "node-prewarming-configuration.yaml",
    MANUAL_CLUSTERS: "dataplane-cluster-configuration.yaml",
    QUOTA_LIST: "quota-management-list-configuration.yaml",
    DENY_LIST: "deny-list-configuration.yaml",
    ACCESS_LIST: "access-list-configuration.yaml",
    ADMIN_ROLES: "admin-authz-configuration.yaml",
}
"""The name of each file in its directory."""
FILE_FLAGS: Final = {
    PROVIDERS: "providers-config-file",
    INSTANCE_TYPES: "supported-kafka-instance-types-config-file",
    DYNAMIC_SCALING: "dynamic-scaling-config-file",
    NODE_PREWARMING: "node-prewarming-config-file",
    MANUAL_CLUSTERS: "dataplane-cluster-config-file",
    QUOTA_LIST: "quota-management-list-config-file",
    DENY_LIST: "deny-list-config-file",
    ACCESS_LIST: "access-list-config-file",
    ADMIN_ROLES: "admin-authz-config-file",
}
_MAY_BE_ABSENT: Final = {
    NODE_PREWARMING: "is absent: nothing is reserved",
    INSTANCE_TYPES: "is absent: the instance types that are shipped are used",
    ADMIN_ROLES: "is absent: the default roles are used",
}
_LARGEST_FILE: Final = 16 << 20


class FleetFiles(Value):
    """Which files are used. Paths that are not given are those of the directory."""

    scaling_type: ScalingType
    directory: str = DEFAULT_DIRECTORY
    paths: dict[str, str] = {}
    enforces_quota: bool = False
    uses_deny_list: bool = False
    uses_access_list: bool = False
    allow_developer_instances: bool = True
    max_developer_instances: int = 1

    def get_path(self, key: str) -> str:
        return self.paths.get(key) or str(Path(self.directory, FILE_NAMES[key]))

    def list_used(self) -> list[str]:
        """The keys of the files that these settings use, in the order in which they are reported."""
        used = {
            DYNAMIC_SCALING: self.scaling_type is ScalingType.AUTO,
            MANUAL_CLUSTERS: self.scaling_type is ScalingType.MANUAL,
            QUOTA_LIST: self.enforces_quota,
            DENY_LIST: self.uses_deny_list,
            ACCESS_LIST: self.uses_access_list,
        }
        return [key for key in FILE_NAMES if used.get(key, True)]


class Configuration(Value):
    """What the files say. `warnings` are by file."""

    policy: FleetPolicy
    access: AccessPolicy
    warnings: dict[str, tuple[str, ...]] = {}


class InvalidConfiguration(PlimsollError):
    """Files with mistakes, by path: files without any are there too. `unreadable`: those that are no documents."""

    exit_code = 2

    def __init__(
        self, mistakes: Mapping[str, list[Mistake]], warnings: Mapping[str, list[str]], unreadable: Collection[str]
    ) -> None:
        self.unreadable = frozenset(unreadable)
        self.mistakes = {name: tuple(found) for name, found in mistakes.items()}
        self.warnings = {name: tuple(found) for name, found in warnings.items()}
        super().__init__("\n".join(self.list_lines()))

    def list_lines(self) -> list[str]:
        """One line per mistake: file, path within it, reason."""
        return [f"{name}: {mistake}" for name, found in self.mistakes.items() for mistake in found]


def read_configuration(files: FleetFiles) -> Configuration:
    """Reads and checks all files. Raises `InvalidConfiguration` with all mistakes of all files."""
    mistakes: dict[str, list[Mistake]] = {files.get_path(key): [] for key in files.list_used()}
    warnings: dict[str, list[str]] = {name: [] for name in mistakes}
    documents: dict[str, Any] = {}
    for key in files.list_used():
        name = files.get_path(key)
        try:
            documents[key] = _read_file(Path(name))
        except FileNotFoundError:
            if key in _MAY_BE_ABSENT:
                warnings[name].append(_MAY_BE_ABSENT[key])
            else:
                mistakes[name].append(Mistake("", "does not exist"))
        except OSError as error:
            mistakes[name].append(Mistake("", f"cannot be read: {error.strerror}"))
        except UnicodeDecodeError as error:
            mistakes[name].append(Mistake("", f"is not UTF-8 at byte {error.start}"))
        except UnreadableDocument as error:
            mistakes[name].append(Mistake("", f"is not YAML: {error}"))
    unreadable = {key for key in files.list_used() if mistakes[files.get_path(key)]}
    result = build_policy(PolicyDocuments(scaling_type=files.scaling_type, documents=documents))
    for key in files.list_used():
        name = files.get_path(key)
        mistakes[name] += [] if key in unreadable else result.mistakes.get(key, [])
        warnings[name] += result.warnings.get(key, [])
    access = _AccessReader(files, documents, mistakes).read()
    if any(mistakes.values()) or result.policy is None:
        raise InvalidConfiguration(mistakes, warnings, {files.get_path(key) for key in unreadable})
    return Configuration(
        policy=result.policy,
        access=access,
        warnings={name: tuple(found) for name, found in warnings.items()},
    )


def _read_file(path: Path) -> Any:
    """The document of a file; an empty one is an empty mapping."""
    with path.open("rb") as stream:
        content = stream.read(_LARGEST_FILE + 1)
    if len(content) > _LARGEST_FILE:
        raise UnreadableDocument(f"is larger than {_LARGEST_FILE >> 20} MiB")
    document = load_first(content.decode("utf-8"))
    return {} if document is None else document


class _AccessReader:
    """Reads the lists of callers, and collects their mistakes."""

    def __init__(self, files: FleetFiles, documents: dict[str, Any], mistakes: dict[str, list[Mistake]]) -> None:
        self._files = files
        self._documents = documents
        self._mistakes = mistakes

    def read(self) -> AccessPolicy:
        roles = self._parse(ADMIN_ROLES, AdminRolesDocument)
        return AccessPolicy(
            denied_users=self._read_names(DENY_LIST),
            accepted_organisations=self._read_names(ACCESS_LIST),
            admin_roles=DEFAULT_ADMIN_ROLES if roles is None else roles.build_roles(),
            quota=self._read_quota(),
        )

    def _read_names(self, key: str) -> frozenset[str] | None:
        names = self._parse(key, NamesDocument)
        return None if names is None else frozenset(names.root)

    def _read_quota(self) -> QuotaPolicy:
        listed = self._parse(QUOTA_LIST, QuotaListDocument)
        return QuotaPolicy(
            is_enforced=listed is not None,
            organisations={} if listed is None else listed.build_organisations(),
            service_accounts={} if listed is None else listed.build_service_accounts(),
            allow_developer_instances=self._files.allow_developer_instances,
            max_developer_instances=self._files.max_developer_instances,
        )

    def _parse(self, key: str, model: Any) -> Any:
        """The document of a file that is used; None: it is not, or has mistakes."""
        if key not in self._documents:
            return None
        document = self._documents[key]
        parsed = parse_document(model, [] if document == {} and model is not QuotaListDocument else document)
        if isinstance(parsed, list):
            self._mistakes[self._files.get_path(key)] += parsed
            return None
        return parsed
