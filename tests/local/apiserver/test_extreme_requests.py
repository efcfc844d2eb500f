"""Requests with extreme values in every field: answered as Kubernetes does, never with an error of our own making."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from tests.local.apiserver.builders import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, ApiServerHarness, definition

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUESTS = 1_000
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HERE = "namespaces/here"
EXTREMES: tuple[Any, ...] = (
    *(None, 0, -1, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 1e308, -1e308, 1.5, True),
    *("", "x", "-1", "9" * 400, "1e308", "1E999", "99999999999999999999Gi", "\u0000", "é" * 300, "a" * 70, "..", "~1"),
    *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999+14:00", "2026-13-45T99:99:99Z"),
    *([], {}, [None], [[]], [{}], {"": ""}, {"a": None}, [1, "a", {}], [{"name": "x"}, {"name": "x"}]),
    *({"$patch": "delete"}, {"$patch": "replace"}, [{"$patch": "merge"}], {"$retainKeys": [1]}),
    *({"$setElementOrder/containers": [{"name": "x"}]}, {"$deleteFromPrimitiveList/finalizers": ["x"]}),
)
SELECTOR = {"matchLabels": {"app": "a"}}
CONTAINER = {
    "name": "c",
    "image": "i",
    "ports": [{"containerPort": 80}],
    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    "env": [{"name": "A", "value": "b"}],
    "livenessProbe": {"httpGet": {"port": 80, "path": "/"}, "periodSeconds": 1},
}
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [CONTAINER]}}
TOLERATION = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
OBJECTS: dict[str, dict[str, Any]] = {
    f"/api/v1/{HERE}/pods": {
        "metadata": {"name": "o", "finalizers": ["a.b/c"]},
        "spec": {
            "containers": [CONTAINER],
            "terminationGracePeriodSeconds": 5,
            "activeDeadlineSeconds": 5,
            "tolerations": [TOLERATION],
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        },
    },
    f"/apis/apps/v1/{HERE}/deployments": {
        "metadata": {"name": "o"},
        "spec": {
            "replicas": 1,
            "selector": SELECTOR,
            "template": TEMPLATE,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
            "minReadySeconds": 1,
            "progressDeadlineSeconds": 5,
        },
    },
    f"/apis/batch/v1/{HERE}/jobs": {
        "metadata": {"name": "o"},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 1,
            "activeDeadlineSeconds": 5,
            "ttlSecondsAfterFinished": 5,
            "template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}},
        },
    },
    f"/api/v1/{HERE}/services": {
        "metadata": {"name": "o"},
        "spec": {"type": "NodePort", "ports": [{"port": 80, "targetPort": "x", "nodePort": 30001}], "clusterIP": ""},
    },
    f"/api/v1/{HERE}/resourcequotas": {
        "metadata": {"name": "o"},
        "spec": {"hard": {"pods": "1000", "requests.cpu": "100"}},
    },
    f"/api/v1/{HERE}/limitranges": {
        "metadata": {"name": "o"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}, "min": {"cpu": "1m"}}]},
    },
    f"/api/v1/{HERE}/events": {
        "metadata": {"name": "o"},
        "involvedObject": {"kind": "Pod", "namespace": "here", "name": "p"},
        "count": 1,
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
    },
    "/api/v1/nodes": {
        "metadata": {"name": "o"},
        "spec": {"taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]},
        "status": {"allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
    },
    f"/apis/policy/v1/{HERE}/poddisruptionbudgets": {
        "metadata": {"name": "o"},
        "spec": {"minAvailable": "50%", "selector": SELECTOR},
    },
    f"/apis/coordination.k8s.io/v1/{HERE}/leases": {
        "metadata": {"name": "o"},
        "spec": {"leaseDurationSeconds": 5, "renewTime": "2026-01-01T00:00:00.000000Z"},
    },
    CRDS: definition(),
    f"/apis/ex.com/v1/{HERE}/widgets": {
        "apiVersion": "ex.com/v1",
        "kind": "Widget",
        "metadata": {"name": "o"},
        "spec": {"size": 1, "x": [{"a": 1}]},
    },
}

Step = str | int
Path = tuple[Step, ...]


def paths_in(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield from paths_in(item, (*path, step))


def replaced(value: Any, path: Path, by: Any) -> Any:
    if not path:
        return by
    copied = json.loads(json.dumps(value))
    target = copied
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = by
    return copied


def nested(path: Path, value: Any) -> Any:
    """A patch that sets the value at a path."""
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


class Fuzzer:
    """Requests from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._paths = {url: list(paths_in(value)) for url, value in OBJECTS.items()}

    def request(self) -> tuple[str, str, Any, str]:
        """Method, URL, body and content type."""
        pick = self._random.choice
        url = pick(list(OBJECTS))
        path, value = pick(self._paths[url]), pick(EXTREMES)
        whole, one = replaced(OBJECTS[url], path, value), f"{url}/o"
        if url == CRDS:
            one = f"{url}/widgets.ex.com"
        kind = pick(("create", "create", "update", "patch", "patch", "patch", "delete", "list"))
        if kind == "create":
            return "POST", url, whole, JSON
        if kind == "update":
            return "PUT", one, whole, JSON
        if kind == "patch":
            part = pick(("", "/status", "/scale"))
            return self._patch(f"{one}{part}", path, value, whole)
        if kind == "delete":
            options = pick((None, {"gracePeriodSeconds": value}, {"preconditions": value}, {"dryRun": value}))
            return "DELETE", f"{one}?gracePeriodSeconds={pick((0, -1, 2**63 - 1, 2**63))}", options, JSON
        name = pick(("limit", "continue", "labelSelector", "fieldSelector", "timeoutSeconds", "resourceVersion"))
        return "GET", f"{url}?{name}={pick((0, -1, 2**63 - 1, 'x', 'a=b', '!', '%00'))}", None, JSON

    def _patch(self, url: str, path: Path, value: Any, whole: Any) -> tuple[str, str, Any, str]:
        pick = self._random.choice
        media = pick((MERGE, STRATEGIC, APPLY, JSON_PATCH))
        if media == APPLY:
            return "PATCH", f"{url}?fieldManager=m&force=true", whole, media
        if media != JSON_PATCH:
            return "PATCH", url, nested(path, value), media
        pointer = "".join(f"/{step}" for step in path)
        operation = {
            "op": pick(("add", "replace", "test", "remove", "copy", "move", "x")),
            "path": pick((pointer, f"{pointer}/-", f"{pointer}/0", "")),
            "from": pick((pointer, "/metadata", "/spec", "")),
            "value": value,
        }
        return "PATCH", url, [operation], media


@pytest.mark.parametrize("seed", [1, 2])
def test_no_extreme_value_makes_an_error_of_our_own(seed: int):
    fuzzer = Fuzzer(seed)
    answered: set[int] = set()
    with ApiServerHarness() as world, capture_logs() as logs:
        world.namespace()
        world.ask("POST", CRDS, definition())
        for number in range(REQUESTS):
            method, url, body, content = fuzzer.request()
            reply = world.ask(method, url, body, content=content)
            failed = [log for log in logs if log["event"] == "apiserver.request_failed"]
            assert not failed, (method, url, body, content, failed)
            answered.add(reply.status)
            if number % 200 == 199:
                world.run.advance_by(40)
    assert {200, 201, 400, 404, 422} <= answered
