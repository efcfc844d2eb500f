"""Anonymises recordings: names of objects and namespaces, values of labels, images, and possible secrets.

Every text becomes a keyed hash of itself, the same everywhere: a pod's nodeName still names its node, selectors
still select, affinity still matches, an instance type still is the machine type's name. Kept as they are: keys (of
labels, taints, resources), whole numbers (`Gt` and `Lt` compare them), and words whose meaning is Kubernetes' own or
ours ("true", "kube-system", "amd64"). Dropped: environment, commands, addresses, messages, data of ConfigMaps and
Secrets, annotations that no planner reads.

The salt is never written into a recording. With the same salt two recordings can be compared. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_WHOLE_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)
_KEPT_TEXTS: Final = frozenset(
    {
        *("", "true", "false", "True", "False", "Unknown"),
        *("default", "kube-system", "kube-public", "kube-node-lease"),
        *("amd64", "arm64", "arm", "386", "ppc64le", "s390x", "riscv64", "linux", "windows"),
        *("on-demand", "spot", "reserved", "present", "default-scheduler"),
        *("system-node-critical", "system-cluster-critical"),
        *("NoSchedule", "NoExecute", "PreferNoSchedule", "on-completion"),
    }
)
_OF_THE_SYSTEM: Final = re.compile(r"kubernetes\.io/.*|([a-z0-9.-]+\.)?csi\..*", re.ASCII)
"""Provisioners and drivers: the rules about volumes know some of them by name."""


class Rules(Value):
    """The values that are hidden, by their keys. A subsystem adds the keys of its own snapshot."""

    names: frozenset[str] = frozenset(
        {
            *("name", "generateName", "namespace", "namespaces", "uid", "hostname", "subdomain"),
            *("nodeName", "nominatedNodeName", "providerID", "claimName", "volumeName", "serviceAccountName"),
            *("serviceAccount", "secretName", "storageClassName", "priorityClassName", "runtimeClassName"),
            *("image", "imageID", "containerID", "machineID", "systemUUID", "bootID", "volumeHandle", "driver"),
            *("provisioner", "podTemplateName", "clusterName", "path", "server", "nodeID"),
            *("machineType", "zone", "zones", "group", "groupId", "instance", "request"),
            *("volumeID", "pdName", "diskName", "diskURI", "volumePath", "targetPortal", "iqn", "monitors", "pool"),
            *("resourceClaimName", "resourceClaimTemplateName", "schedulerName", "conditionType", "finalizers"),
        }
    )
    """Texts, and lists or maps of texts, that are names."""
    label_maps: frozenset[str] = frozenset({"labels", "matchLabels", "nodeSelector", "systemLabels", "parameters"})
    """Keys stay, values are hidden."""
    name_maps: frozenset[str] = frozenset({"groupOf"})
    """Keys and values are names."""
    paths: frozenset[str] = frozenset()
    """Names with slashes between them: NAMESPACE/NAME."""
    texts: frozenset[str] = frozenset()
    """Sentences, which may name anything: only that there is one stays, and whether it speaks of a back-off."""
    dropped: frozenset[str] = frozenset(
        {
            *("env", "envFrom", "command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"),
            *("managedFields", "message", "data", "stringData", "binaryData", "imagePullSecrets", "hostAliases"),
            *("podIP", "podIPs", "hostIP", "hostIPs", "podCIDR", "podCIDRs", "addresses", "images", "dnsConfig"),
            *("externalID", "selfLink", "securityContext", "volumeAttributes", "mountOptions"),
            *("nodeInfo", "volumesAttached", "volumesInUse", "disruptedPods", "resourceVersion", "fieldPath"),
            "plimsoll.io/unknownFields",
        }
    )
    annotations: tuple[str, ...] = (
        "kubernetes.io/config.mirror",
        "controller.kubernetes.io/pod-deletion-cost",
        "volume.kubernetes.io/selected-node",
        "volume.beta.kubernetes.io/storage-class",
        "pv.kubernetes.io/bind-completed",
    )
    """Prefixes of the annotations that stay, with hidden values; all others are dropped."""
    annotated_lists: frozenset[str] = frozenset()
    """Annotations whose value is a list of names, separated by commas."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of names that have a meaning and stay, as those of generated node groups."""
    hidden_prefixes: tuple[str, ...] = ()
    """Prefixes that are hidden too: names with the same prefix keep a common prefix."""


class Anonymiser:
    """One salt, one mapping."""

    def __init__(self, salt: str, rules: Rules | None = None) -> None:
        self._key = hashlib.blake2b(salt.encode(), digest_size=32).digest()
        self._rules = rules or Rules()
        self._known: dict[str, str] = {}

    def anonymise(self, value: Any) -> Any:
        """An anonymised copy of plain JSON: a Kubernetes object, a list of them, or any value that contains them."""
        for pod, volume in _find_ephemeral_volumes(value):
            # Kubernetes itself puts this name together, and so does every reader of the claim.
            self._known[f"{pod}-{volume}"] = f"{self.replace_name(pod)}-{self.replace_name(volume)}"
        return self._anonymise(value)

    def _anonymise(self, value: Any) -> Any:
        if isinstance(value, dict):
            if _is_selection(value):
                return self._anonymise_selection(value)
            return {
                key: self._anonymise_member(key, held) for key, held in value.items() if key not in self._rules.dropped
            }
        if isinstance(value, list):
            return [self._anonymise(item) for item in value]
        return value

    def replace_name(self, text: str) -> str:
        """The pseudonym of a text: a legal name, label value and image."""
        if text in self._known:
            return self._known[text]
        made = self._known[text] = self._make_name(text)
        return made

    def _make_name(self, text: str) -> str:
        if text in _KEPT_TEXTS or _WHOLE_NUMBER.fullmatch(text) or _OF_THE_SYSTEM.fullmatch(text):
            return text
        for prefix in self._rules.prefixes:
            if text.startswith((f"{prefix}-", f"{prefix}_")):
                cut = len(prefix) + 1
                return f"{text[:cut]}{self._hash(text)}"
        for prefix in self._rules.hidden_prefixes:
            if text.startswith((f"{prefix}-", f"{prefix}_")):
                return f"{self.replace_name(prefix)}{text[len(prefix)]}{self._hash(text)}"
        return self._hash(text)

    def _hash(self, text: str) -> str:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10, key=self._key).digest()
        return f"x{base64.b32encode(digest).decode().lower()}"

    def _anonymise_member(self, key: str, value: Any) -> Any:
        if key == "annotations":
            return self._anonymise_annotations(value)
        if key in self._rules.name_maps and isinstance(value, dict):
            return {self.replace_name(name): self._anonymise_names(held) for name, held in value.items()}
        if key in self._rules.label_maps and _is_flat(value):
            return self._anonymise_values(value)
        if key in {"taints", "tolerations"}:
            return _map_items(value, self._anonymise_taint)
        if key in self._rules.names:
            return self._anonymise_names(value)
        if key in self._rules.paths and isinstance(value, str):
            return "/".join(self.replace_name(part) for part in value.split("/"))
        if key in self._rules.texts and isinstance(value, str):
            return _redact_text(value)
        return self._anonymise(value)

    def _anonymise_names(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.replace_name(value)
        if isinstance(value, list):
            return [self._anonymise_names(item) for item in value]
        return self._anonymise(value)

    def _anonymise_values(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return self._anonymise(value)
        return {key: self._anonymise_names(held) for key, held in value.items()}

    def _anonymise_taint(self, value: dict[str, Any]) -> dict[str, Any]:
        return {key: self._anonymise_names(held) if key == "value" else held for key, held in value.items()}

    def _anonymise_selection(self, value: dict[str, Any]) -> dict[str, Any]:
        """`key`, `operator`, `values` of a selector or a topology; values that are compared are numbers, and stay."""
        return {key: self._anonymise_names(held) if key == "values" else held for key, held in value.items()}

    def _anonymise_annotations(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return {}
        kept = self._rules.annotations
        return {key: self._anonymise_annotation(key, held) for key, held in value.items() if key.startswith(kept)}

    def _anonymise_annotation(self, key: str, value: Any) -> Any:
        if key in self._rules.annotated_lists and isinstance(value, str):
            return ",".join(self.replace_name(part.strip()) for part in value.split(","))
        return self._anonymise_names(value)


def _redact_text(text: str) -> str:
    if not text:
        return ""
    return "in backoff" if "backoff" in text.replace("-", "") else "hidden"


def _is_selection(value: Mapping[str, Any]) -> bool:
    return "key" in value and "values" in value


def _find_ephemeral_volumes(value: Any) -> Iterator[tuple[str, str]]:
    """The names of pods and of their ephemeral volumes, wherever the value contains pods."""
    if isinstance(value, list):
        for item in value:
            yield from _find_ephemeral_volumes(item)
    if not isinstance(value, dict):
        return
    match value:
        case {"metadata": {"name": str(pod)}, "spec": {"volumes": [*volumes]}}:
            for volume in volumes:
                match volume:
                    case {"name": str(name), "ephemeral": dict()}:
                        yield pod, name
    for held in value.values():
        yield from _find_ephemeral_volumes(held)


def _is_flat(value: Any) -> bool:
    """A map of labels, and not an object that happens to stand under the same key (`nodeSelector` of a volume)."""
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _map_items(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if not isinstance(value, list):
        return value
    return [change(item) if isinstance(item, dict) else item for item in value]
