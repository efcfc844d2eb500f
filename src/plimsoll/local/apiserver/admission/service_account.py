"""ServiceAccount: a pod runs as an account of its namespace and, unless it opts out, mounts that account's token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.admission.attributes import forbidden
from plimsoll.local.apiserver.storage import Key
from plimsoll.objects.schema.json_values import copy

if TYPE_CHECKING:
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

_MIRROR: Final = "kubernetes.io/config.mirror"
_VOLUME: Final = "kube-api-access-"
_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
# An odd number, so that a token of admission differs from one that a user requested.
_TOKEN_LIFE_S: Final = 3607


class ServiceAccount:
    """Applies to pods on creation. The kubelet's mirror pods are not changed, and may have no account."""

    def __init__(self, store: Store, entropy: Entropy) -> None:
        self._store = store
        self._entropy = entropy

    def mutate(self, attempt: AdmissionAttributes) -> None:
        if not attempt.creates("pods"):
            return
        assert attempt.obj is not None
        spec = attempt.obj["spec"]
        if _MIRROR in (attempt.obj["metadata"].get("annotations") or {}):
            _check_mirror(attempt, spec)
            return
        name = spec.get("serviceAccountName") or "default"
        account = self._store.get(Key("serviceaccounts", attempt.namespace, name))
        if account is None:
            where = f"error looking up service account {attempt.namespace}/{name}"
            raise forbidden(attempt, f'{where}: serviceaccount "{name}" not found')
        # Go writes the name under its old spelling, too.
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        self._give(spec, self._store.get_shared_body(account))

    def _give(self, spec: Json, account: Json) -> None:
        wanted = spec.get("automountServiceAccountToken")
        if wanted is None:
            wanted = account.get("automountServiceAccountToken", True)
        if wanted:
            mount_token(spec, volume=f"{_VOLUME}{self._entropy.generate_suffix()}")
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = copy(account["imagePullSecrets"])


def mount_token(spec: Json, *, volume: str) -> None:
    """Mount the token where nothing else is mounted; a volume that is there under the reserved name is used."""
    volumes = spec.get("volumes") or []
    present = next((volume["name"] for volume in volumes if volume.get("name", "").startswith(_VOLUME)), None)
    mount = {"name": present or volume, "readOnly": True, "mountPath": _MOUNT_PATH}
    mounted = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if all(item.get("mountPath") != _MOUNT_PATH for item in mounts):
            container["volumeMounts"] = [*mounts, dict(mount)]
            mounted = True
    if mounted and present is None:
        spec["volumes"] = [*volumes, {"name": volume, "projected": _build_token_source()}]


def _build_token_source() -> Json:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_LIFE_S, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }


def _check_mirror(attempt: AdmissionAttributes, spec: Json) -> None:
    if spec.get("serviceAccountName"):
        raise forbidden(attempt, "a mirror pod may not reference service accounts")
    for volume in spec.get("volumes") or ():
        if "secret" in volume:
            raise forbidden(attempt, "a mirror pod may not reference secrets")
        if any("serviceAccountToken" in source for source in (volume.get("projected") or {}).get("sources") or ()):
            raise forbidden(attempt, "a mirror pod may not use ServiceAccountToken volume projections")
