"""The Kafka operators of the cluster and their versions (docs/design/fleet.md 17.7). Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.agent.model.operators import OperatorDeployment, OperatorVersion

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBERED: Final = re.compile(r"-[0-9]+\Z", re.ASCII)
_SORTABLE: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+-[0-9]+\Z", re.ASCII)
_KAFKA_VERSION: Final = re.compile(r"[0-9]{1,9}\.[0-9]{1,9}(\.[0-9]{1,9})*", re.ASCII)


def list_operator_versions(deployments: Iterable[OperatorDeployment]) -> tuple[OperatorVersion, ...]:
    """The operators whose version can be compared and that name the versions of Kafka they run."""
    found: dict[str, OperatorVersion] = {}
    for deployment in deployments:
        version = build_version_name(deployment)
        kafka_versions = list_kafka_versions(deployment.images)
        if _SORTABLE.search(version) and kafka_versions:
            known = found.get(version)
            ready = deployment.is_available or (known is not None and known.ready)
            found[version] = OperatorVersion(version=version, ready=ready, kafka_versions=kafka_versions)
    return tuple(found[version] for version in sorted(found))


def build_version_name(deployment: OperatorDeployment) -> str:
    label = deployment.version
    return f"{deployment.name}.v{label if _NUMBERED.search(label) else f'{label}-0'}"


def list_kafka_versions(images: str) -> tuple[str, ...]:
    """The keys of the images, `4.3.0=quay.io/…` per line, later versions last."""
    keys = {line.partition("=")[0] for line in images.split()}
    return tuple(sorted((key for key in keys if _KAFKA_VERSION.fullmatch(key)), key=_to_numbers))


def _to_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
