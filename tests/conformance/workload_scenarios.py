"""What the stories of recorded sets and jobs have in common: the recorder's part, the kubelet's and the scheduler's."""

from __future__ import annotations

from typing import Any

from tests.conformance.comparison import body_differences
from tests.conformance.recordings import by_id
from tests.conformance.servers import RECORDED_DAY
from tests.local.apiserver.builders import MERGE, STRATEGIC
from tests.local.controller_manager.workloads.builders import all_sets
from tests.local.local_cluster import LocalClusterHarness

GOLDEN = {"User-Agent": "golden/1.0"}
PODS = "/api/v1/namespaces/ctl/pods"
NODES = "/api/v1/nodes"


class RecordedScenario(LocalClusterHarness):
    """Replays recorded scenarios and keeps our answers to the recorded requests."""

    def __init__(self) -> None:
        super().__init__(all_sets)
        self.run.advance_to(RECORDED_DAY)
        self.answers: dict[str, Any] = {}

    def begin(self) -> None:
        self.namespace("ctl")
        for name in ("n1", "n2", "n3"):
            self.made(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            self.ask("PATCH", f"{NODES}/{name}", {"spec": {"taints": None}}, content=MERGE)
        self.run.settle()

    def look(self, *numbers: int) -> None:
        for number in numbers:
            recorded = by_id(f"controllers-{number:03}")
            query = "&".join(f"{name}={value}" for name, value in recorded.query.items() if name != "limit")
            self.answers[recorded.id] = self.ask("GET", f"{recorded.path}?{query}").body

    def create(self, url: str, body: dict[str, Any]) -> None:
        reply = self.ask("POST", url, body, headers=GOLDEN)
        assert reply.status == 201, reply
        self.run.settle()

    def image(self, url: str, image: str) -> None:
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
        assert self.ask("PATCH", url, patch, content=STRATEGIC, headers=GOLDEN).status == 200
        self.run.settle()

    def pods(self, app: str) -> list[Any]:
        return list(self.ask("GET", f"{PODS}?labelSelector=app={app}").body["items"])

    def bind(self, name: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        assert self.ask("POST", f"{PODS}/{name}/binding", binding).status == 201
        self.run.settle()

    def says(self, name: str, status: dict[str, Any]) -> None:
        reply = self.ask("PATCH", f"{PODS}/{name}/status", {"status": status}, content=MERGE, headers=GOLDEN)
        assert reply.status == 200, reply

    def ready(self, name: str) -> None:
        self.says(name, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
        self.run.settle()


def differences_from(recorded_id: str, ours: Any) -> list[str]:
    """A line for each."""
    recorded = by_id(recorded_id)
    return list(body_differences(recorded.response, ours, is_cut=False, id_=recorded_id))
