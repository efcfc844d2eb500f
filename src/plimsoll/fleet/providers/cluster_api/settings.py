"""Settings of the provider, as an operator gives them."""

from __future__ import annotations

import re
from typing import Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import find_dns1123_label_problems
from plimsoll.core.values import Value
from plimsoll.fleet.providers.data_planes.manifests import AddonManifests

VERSION: Final = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?")
DEFAULT_WORKER_CLASS: Final = "default-worker"
_NAMESPACE_PREFIX: Final = "plimsoll-"


class ClassReference(Value):
    """A ClusterClass. Without a namespace it is in the namespace of the Cluster."""

    name: str
    namespace: str = ""


class ClusterApiProviderSettings(Value):
    """`cluster_class` is for regions without one of their own; it is written NAME or NAMESPACE/NAME."""

    cluster_class: str = ""
    kubernetes_version: str = ""
    """For orders whose version is not one of Kubernetes (such as `openshift-v4.11.22`)."""
    worker_class: str = DEFAULT_WORKER_CLASS
    """The class of machine deployments within the ClusterClass."""
    domain: str = "kafka.bf2.dev"
    addons: AddonManifests = AddonManifests()


def name_namespace(region: str) -> str:
    """The namespace of the clusters of a region."""
    return f"{_NAMESPACE_PREFIX}{region}".lower()


def find_region(namespace: str) -> str:
    """The region of a namespace; empty if it is none of ours."""
    return namespace.removeprefix(_NAMESPACE_PREFIX) if namespace.startswith(_NAMESPACE_PREFIX) else ""


def parse_class(text: str) -> ClassReference:
    """Raises `InvalidInput`."""
    namespace, slash, name = text.rpartition("/")
    if not name or (slash and find_dns1123_label_problems(namespace)):
        raise InvalidInput(f"{text!r} is not NAME or NAMESPACE/NAME of a ClusterClass", path="--cluster-class")
    return ClassReference(name=name, namespace=namespace)
