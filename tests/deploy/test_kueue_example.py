"""The example for Kueue has the form of the version of its API that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from plimsoll.objects.api.provisioning_requests import ATOMIC_CLASSES

EXAMPLE = Path(__file__).parents[2] / "examples/requests/kueue.yaml"
FIELDS = {
    "ProvisioningRequestConfig": {"provisioningClassName", "managedResources", "parameters"},
    "AdmissionCheck": {"controllerName", "parameters"},
    "ResourceFlavor": set[str](),
    "ClusterQueue": {"namespaceSelector", "admissionChecksStrategy", "resourceGroups"},
    "LocalQueue": {"clusterQueue"},
}
"""The fields of `spec` that the example uses, as v1beta2 has them; v1beta1 had `admissionChecks` in a ClusterQueue."""


def read_objects() -> dict[str, dict[str, Any]]:
    return {found["kind"]: found for found in yaml.safe_load_all(EXAMPLE.read_text())}


def test_all_objects_are_of_v1beta2():
    objects = read_objects()
    assert {found["apiVersion"] for found in objects.values()} == {"kueue.x-k8s.io/v1beta2"}
    assert {kind: set(found.get("spec", {})) for kind, found in objects.items()} == FIELDS


def test_the_queue_names_the_check_and_the_check_names_a_class_that_is_served():
    objects = read_objects()
    checks = objects["ClusterQueue"]["spec"]["admissionChecksStrategy"]["admissionChecks"]
    assert checks == [{"name": objects["AdmissionCheck"]["metadata"]["name"]}]
    config = objects["ProvisioningRequestConfig"]
    assert objects["AdmissionCheck"]["spec"]["parameters"]["name"] == config["metadata"]["name"]
    assert config["spec"]["provisioningClassName"] in ATOMIC_CLASSES
