"""Defaults of pods and of pod templates. The functions change their argument."""

from __future__ import annotations

import re
from typing import Any, Final

from plimsoll.core.quantity import Quantity

Json = dict[str, Any]

_FILE_MODE: Final = 0o644
_IMAGE_NAME: Final = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_VOLUME_SOURCES_APART: Final = frozenset({"name"})
_QOS_RESOURCES: Final = ("cpu", "memory")


def default_pod(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    default_pod_spec(spec)
    default_requests_and_host_ports(spec)
    spec.setdefault("enableServiceLinks", True)


def default_requests_and_host_ports(spec: Json) -> None:
    """Set missing requests from limits. This applies to pods only, not to templates."""
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        limits = container.get("resources", {}).get("limits")
        if limits is not None:
            requests = container["resources"].setdefault("requests", {})
            for name, amount in limits.items():
                requests.setdefault(name, amount)
        if spec.get("hostNetwork"):
            for port in container.get("ports", []):
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)


def default_template(obj: Json) -> None:
    default_pod_spec(obj.setdefault("spec", {}))


def default_pod_spec(spec: Json) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    _fill_empty(spec, dnsPolicy="ClusterFirst", restartPolicy="Always", schedulerName="default-scheduler")
    spec.setdefault("securityContext", {})
    spec.setdefault("terminationGracePeriodSeconds", 30)
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(name, []):
            _default_container(container)
    for volume in spec.get("volumes", []):
        _default_volume(volume)


def _default_container(container: Json) -> None:
    pulled = "Always" if is_latest(container.get("image", "")) else "IfNotPresent"
    _fill_empty(
        container,
        imagePullPolicy=pulled,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    for port in container.get("ports", []):
        _fill_empty(port, protocol="TCP")
    for variable in container.get("env", []):
        source = variable.get("valueFrom", {})
        _default_references(source)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _probe(container[name])
    for hook in container.get("lifecycle", {}).values():
        if isinstance(hook, dict):
            _default_handler(hook)


def _probe(probe: Json) -> None:
    _fill_empty(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _default_handler(probe)


def _default_handler(handler: Json) -> None:
    if "httpGet" in handler:
        _fill_empty(handler["httpGet"], path="/", scheme="HTTP")
    if "grpc" in handler:
        handler["grpc"].setdefault("service", "")


def _default_references(holder: Json) -> None:
    if "fieldRef" in holder:
        _fill_empty(holder["fieldRef"], apiVersion="v1")
    if "resourceFieldRef" in holder:
        holder["resourceFieldRef"].setdefault("divisor", "0")


def _default_volume(volume: Json) -> None:
    if not volume.keys() - _VOLUME_SOURCES_APART:
        volume["emptyDir"] = {}
    for name in ("configMap", "secret", "downwardAPI", "projected"):
        if name in volume:
            volume[name].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    for item in volume.get("downwardAPI", {}).get("items", []):
        _default_references(item)
    for source in volume.get("projected", {}).get("sources", []):
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        for item in source.get("downwardAPI", {}).get("items", []):
            _default_references(item)
    if "volumeClaimTemplate" in volume.get("ephemeral", {}):
        volume["ephemeral"]["volumeClaimTemplate"].setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def is_latest(image: str) -> bool:
    """The tag of an image: `latest` if it is missing, none with a digest or for an invalid reference."""
    name, at, _ = image.partition("@")
    before, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        before, tag = name, ""
    host, slash, rest = before.partition("/")
    repository = rest if slash and ("." in host or ":" in host or host == "localhost") else before
    if not _IMAGE_NAME.fullmatch(repository):
        return False
    return tag == "latest" or (not tag and not at)


def compute_qos_class(spec: Json) -> str:
    """The QoS class: Guaranteed, Burstable or BestEffort."""
    wanted = [
        {
            field: {
                name: Quantity.parse(amount)
                for name, amount in container.get("resources", {}).get(field, {}).items()
                if name in _QOS_RESOURCES and Quantity.parse(amount)
            }
            for field in ("requests", "limits")
        }
        for container in [*spec.get("containers", []), *spec.get("initContainers", [])]
    ]
    if not any(resources[field] for resources in wanted for field in resources):
        return "BestEffort"
    guaranteed = all(
        len(resources["limits"]) == len(_QOS_RESOURCES) and resources["requests"] == resources["limits"]
        for resources in wanted
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _fill_empty(holder: Json, **values: str | int) -> None:
    """Set a default. Go does not distinguish an empty string or a zero from an absent value."""
    for name, value in values.items():
        if not holder.get(name):
            holder[name] = value
