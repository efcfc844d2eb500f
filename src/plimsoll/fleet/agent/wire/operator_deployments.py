"""Deployments of Kafka operators, read from the JSON of their list: env variables are in no struct of ours. Pure."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.fleet.agent.model.operators import OperatorDeployment

SELECTORS: Final = ("strimzi.io/kind=cluster-operator", "app.kubernetes.io/component=kafka-operator")
PATH: Final = "/apis/apps/v1/deployments"
IMAGES: Final = "STRIMZI_KAFKA_IMAGES"
_VERSION_LABEL: Final = "app.kubernetes.io/version"


def read_operator_deployments(listed: Any) -> tuple[OperatorDeployment, ...]:
    items = _get_part(listed, "items", list)
    return tuple(_read_deployment(item) for item in items if isinstance(item, dict))


def _read_deployment(item: dict[str, Any]) -> OperatorDeployment:
    metadata = _get_part(item, "metadata", dict)
    pod = _get_part(_get_part(_get_part(item, "spec", dict), "template", dict), "spec", dict)
    conditions = _get_part(_get_part(item, "status", dict), "conditions", list)
    version = _get_part(metadata, "labels", dict).get(_VERSION_LABEL)
    return OperatorDeployment(
        name=str(metadata.get("name", "")),
        version=version if isinstance(version, str) else "",
        is_available=any(
            isinstance(found, dict) and (found.get("type"), found.get("status")) == ("Available", "True")
            for found in conditions
        ),
        images=_find_images(_get_part(pod, "containers", list)),
    )


def _find_images(containers: list[Any]) -> str:
    variables = [
        variable
        for container in containers
        for variable in _get_part(container, "env", list)
        if isinstance(variable, dict) and variable.get("name") == IMAGES
    ]
    return "\n".join(str(variable.get("value") or "") for variable in variables)


def _get_part(whole: Any, key: str, kind: type[Any]) -> Any:
    value = whole.get(key) if isinstance(whole, dict) else None
    return value if isinstance(value, kind) else kind()
