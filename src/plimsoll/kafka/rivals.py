"""Other operators of the same Kafka objects: two operators that both write pod sets would undo each other's work.

Strimzi's Deployment has the label `strimzi.io/kind: cluster-operator`, and names the namespaces that it watches in its
environment: `STRIMZI_NAMESPACE`, where nothing, an empty text and `*` mean all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import structlog

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.client import Client

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

SELECTOR: Final = "strimzi.io/kind=cluster-operator"
_OWN_SELECTOR: Final = "app.kubernetes.io/name=plimsoll-kafka"
_ENGINE_OPTION: Final = "--rebalance-engine cruise-control"
_VARIABLE: Final = "STRIMZI_NAMESPACE"
_ALL: Final = "*"
_OWN_NAMESPACE: Final = "metadata.namespace"


class RivalFound(PlimsollError):
    """Strimzi's operator watches the same namespaces."""

    exit_code: ClassVar[int] = 1


class Rival(Value):
    """A cluster operator of Strimzi. `namespaces` None: it watches all, or it is not known which."""

    namespace: str
    name: str
    namespaces: frozenset[str] | None

    def is_watching(self, namespace: str) -> bool:
        """Whether it watches a namespace; empty: any."""
        return self.namespaces is None or not namespace or namespace in self.namespaces

    def __str__(self) -> str:
        watched = "all namespaces" if self.namespaces is None else f"namespace {', '.join(sorted(self.namespaces))}"
        return f"Deployment {self.namespace}/{self.name} watches {watched}"


async def find_rivals(client: Client, namespace: str) -> tuple[Rival, ...]:
    """The operators of Strimzi that watch `namespace`; empty: any. Raises what the API server answers."""
    rivals = [_read_rival(deployment) for deployment in await _list_deployments(client, namespace, SELECTOR)]
    return tuple(rival for rival in rivals if rival.is_watching(namespace))


async def is_cruise_control_needed(client: Client, namespace: str) -> bool:
    """Whether an operator that runs here lets Cruise Controls plan and move: Strimzi's, or ours with that engine.

    One that cannot be looked for may be there.
    """
    try:
        if await find_rivals(client, namespace):
            return True
        ours = await _list_deployments(client, namespace, _OWN_SELECTOR)
    except Forbidden:
        return True
    commands = [container.get("args") for deployment in ours for container in _list_containers(deployment)]
    return any(
        _ENGINE_OPTION in " ".join(map(str, words)).replace("=", " ") for words in commands if isinstance(words, list)
    )


async def _list_deployments(client: Client, namespace: str, selector: str) -> list[dict[str, Any]]:
    """The Deployments with pods, of all namespaces, or of the only namespace that this operator may read."""
    selected = [("labelSelector", selector)]
    try:
        listed = await client.get_json("/apis/apps/v1/deployments", selected)
    except Forbidden as error:
        if not namespace:
            raise
        log.warning("rivals.unseen", namespace=namespace, problem=f"other namespaces cannot be looked at: {error}")
        listed = await client.get_json(f"/apis/apps/v1/namespaces/{namespace}/deployments", selected)
    items = listed.get("items")
    deployments = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [deployment for deployment in deployments if _may_run(deployment)]


async def refuse_rivals(client: Client, namespace: str) -> None:
    """Raises `RivalFound` if another operator watches `namespace`; empty: any."""
    rivals = await find_rivals(client, namespace)
    if rivals:
        raise RivalFound(
            f"Strimzi's operator has the same Kafka objects: {'; '.join(map(str, rivals))}. Run beside it with "
            "--kafka-mode=companion, choose another namespace with --namespace, or scale that Deployment to 0"
        )


def _may_run(deployment: dict[str, Any]) -> bool:
    """Whether it has pods, or is to have some."""
    replicas = _get_part(deployment, "spec").get("replicas", 1)
    return replicas != 0 or bool(_get_part(deployment, "status").get("replicas", 0))


def _read_rival(deployment: dict[str, Any]) -> Rival:
    metadata = _get_part(deployment, "metadata")
    namespace = str(metadata.get("namespace", ""))
    watched: set[str] = set()
    for variable in _list_variables(deployment):
        found = _read_namespaces(variable, own=namespace)
        if found is None:
            watched = set()
            break
        watched |= found
    return Rival(namespace=namespace, name=str(metadata.get("name", "")), namespaces=frozenset(watched) or None)


def _list_variables(deployment: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for container in _list_containers(deployment):
        environment = container.get("env")
        for variable in environment if isinstance(environment, list) else ():
            if isinstance(variable, dict) and variable.get("name") == _VARIABLE:
                yield variable


def _list_containers(deployment: dict[str, Any]) -> list[dict[str, Any]]:
    pod = _get_part(_get_part(_get_part(deployment, "spec"), "template"), "spec")
    containers = pod.get("containers")
    return [found for found in containers if isinstance(found, dict)] if isinstance(containers, list) else []


def _read_namespaces(variable: dict[str, Any], *, own: str) -> frozenset[str] | None:
    """The namespaces that a variable names; None: all, or its value is in another object."""
    source = variable.get("valueFrom")
    if source is not None:
        field = _get_part(source, "fieldRef").get("fieldPath") if isinstance(source, dict) else None
        return frozenset({own}) if field == _OWN_NAMESPACE else None
    named = frozenset(word for part in str(variable.get("value") or "").split(",") if (word := part.strip()))
    return None if not named or _ALL in named else named


def _get_part(whole: dict[str, Any], key: str) -> dict[str, Any]:
    value = whole.get(key)
    return value if isinstance(value, dict) else {}
