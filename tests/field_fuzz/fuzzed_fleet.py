"""A whole fleet manager in virtual time, to which requests and reports with extreme fields are sent over HTTP.

What must not happen is a finding: an answer of 5xx, a log line with a traceback, a pass of a worker that failed, and a
Kafka that goes away without a request. A seed gives the same requests every time.
"""

from __future__ import annotations

import copy
import json
import random
from typing import TYPE_CHECKING, Any, Final

from structlog.testing import capture_logs

from plimsoll.fleet.config.policy_documents import PROVIDERS
from plimsoll.fleet.model.statuses import KafkaStatus
from tests.field_fuzz.field_table import put
from tests.field_fuzz.fleet_table import KAFKA, list_body_fields, name_operation
from tests.fleet.service import FleetScenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from plimsoll.fleet.api.operations import Operation
    from tests.field_fuzz.fleet_table import BodyField

Json = dict[str, Any]

_BATCH: Final = 20
_KAFKAS: Final = 4
CALM_REGION: Final = "eu-west-1"
"""No fuzzed request names it."""
_STRIMZI: Final = {
    "version": "strimzi-cluster-operator.v0.23.0-0",
    "ready": True,
    "kafkaVersions": ["2.7.0"],
    "kafkaIbpVersions": ["2.7"],
}
_READY: Final = {"type": "Ready", "status": "True", "reason": "", "message": ""}
_CLUSTER_REPORT: Final = {
    "conditions": [_READY],
    "capacity": {"standard": {"maxUnits": 10, "remainingUnits": 4}},
    "strimzi": [_STRIMZI],
}
_KAFKA_REPORT: Final = {
    "conditions": [_READY],
    "versions": {"kafka": "2.7.0", "strimzi": _STRIMZI["version"], "kafkaIbp": "2.7"},
    "routes": [{"name": "admin", "prefix": "admin", "router": "r.example.com"}],
    "adminServerURI": "https://admin.example.com",
    "bytesStored": 10,
}
_BODIES: Final[dict[str, Json]] = {
    "POST /kafkas": {"name": "orders", "plan": "standard.x1"},
    "PATCH /kafkas/{id}": {"reauthentication_enabled": True},
    "PUT /agent-clusters/{id}/status": _CLUSTER_REPORT,
    "PUT /agent-clusters/{id}/kafkas/status": {KAFKA: _KAFKA_REPORT},
    "POST /admin/clusters": {"cluster_id": "cid", "cloud_provider": "aws", "region": "us-east-1"},
}
"""A plain valid body by operation; others begin empty."""


class FuzzedFleet(FleetScenario):
    """`with FuzzedFleet(folder, seed) as fleet:`, then `fuzz`."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder)
        self._chance = random.Random(seed)
        self._count = 0
        self.answers: dict[int, int] = {}
        self.offer(standard={"limit": 100}, developer={"limit": 100})
        regions = self.documents[PROVIDERS]["supported_providers"][0]["regions"]
        regions.append({"name": CALM_REGION, "supported_instance_type": {"standard": {"limit": 5}}})
        self._clusters = [self.add_cluster(row_id, used=_KAFKAS) for row_id in ("a", "b")]
        self._calm = self.add_cluster("calm", region=CALM_REGION)
        self._kafka_ids = [f"{cluster.id}-{number}" for cluster in self._clusters for number in range(_KAFKAS)]
        self.start()
        self._operations = {name_operation(found): found for found in self.service.api.operations}
        self._fields: dict[str, list[BodyField]] = {}
        for field in list_body_fields(self.service.api.operations):
            self._fields.setdefault(field.operation, []).append(field)

    def fuzz(self, count: int) -> list[str]:
        """Send so many requests; gives the findings."""
        findings: list[str] = []
        for start in range(0, count, _BATCH):
            with capture_logs() as logs:
                for _ in range(min(_BATCH, count - start)):
                    findings += self._send_fuzzed()
                self.run_passes(1)
            findings += [*_find_problems(logs), *self._find_lost()]
        return findings

    def serves_a_plain_request(self) -> bool:
        """Whether a Kafka in the region that no fuzzed request names becomes ready."""
        body = {"name": "calm", "plan": "standard.x1", "region": CALM_REGION, "cloud_provider": "aws"}
        created = self.call("POST", "/kafkas", body, query="async=true")
        assert created.status == 202, created
        self._report("status", _CLUSTER_REPORT)
        self.run_passes(3)
        answer = self._report("kafkas/status", {created.document["id"]: _KAFKA_REPORT})
        assert answer == 200, answer
        found = self.call("GET", f"/kafkas/{created.document['id']}")
        return bool(found.document["status"] == KafkaStatus.READY)

    # ---- requests

    def _send_fuzzed(self) -> list[str]:
        name = self._chance.choice(sorted(self._fields))
        operation = self._operations[name]
        body: Any = copy.deepcopy(_BODIES.get(name, {}))
        self._count += 1
        for unique in ("name", "cluster_id"):
            if unique in body:
                body[unique] = f"{body[unique]}-{self._count}"
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            field = self._chance.choice(self._fields[name])
            body = put(body, field.path, copy.deepcopy(self._chance.choice(field.values)))
        kafka_id = self._chance.choice(self._kafka_ids)
        if isinstance(body, dict) and KAFKA in body:
            body[kafka_id] = body.pop(KAFKA)
        cluster = self._chance.choice(self._clusters)
        row_id = kafka_id if "kafkas" in operation.path else cluster.id
        path = operation.path.replace("{id}", cluster.cluster_id if "/agent-" in operation.path else row_id)
        status, answer = self._send(operation, path, body, cluster.client_id)
        if status < 500:
            return []
        return [f"{status} {operation.method} {path}: {json.dumps(body)[:2000]}: {answer}"]

    def _send(self, operation: Operation, path: str, body: Any, client_id: str) -> tuple[int, Any]:
        assert self.service.issuer is not None
        if "/agent-" in path:
            token = self.service.issuer.issue_agent_token(client_id)
            answer = self.call(operation.method, path, body, token=token)
        elif "/admin/" in path:
            answer = self.call_admin(operation.method, path, body, query="async=true")
        else:
            answer = self.call(operation.method, path, body, query="async=true")
        self.answers[answer.status] = self.answers.get(answer.status, 0) + 1
        return answer

    def _report(self, path: str, body: Json) -> int:
        """A report of the agent of the cluster that is not fuzzed."""
        assert self.service.issuer is not None
        token = self.service.issuer.issue_agent_token(self._calm.client_id)
        return self.call("PUT", f"/agent-clusters/{self._calm.cluster_id}/{path}", body, token=token).status

    def _find_lost(self) -> list[str]:
        """Kafkas that were there at the start. No request deletes one."""
        lost = []
        for kafka_id in self._kafka_ids:
            answer = self.call_admin("GET", f"/admin/kafkas/{kafka_id}")
            if answer.status != 200 or answer.document["status"] in {"deprovision", "deleting"}:
                lost.append(f"kafka/{kafka_id} goes away: {answer}")
        statuses = {found["id"]: found["status"] for found in self.list_clusters()}
        lost += [
            f"cluster/{cluster.id} goes away with its Kafkas: {statuses.get(cluster.id)}"
            for cluster in self._clusters
            if statuses.get(cluster.id) in {None, "deprovisioning", "cleanup"}
        ]
        return lost


def _find_problems(logs: Sequence[Mapping[str, Any]]) -> list[str]:
    failures = {"pass.failed", "step.failed", "request.failed"}
    return [
        str(dict(line))[:2000]
        for line in logs
        if line.get("exc_info") or line["log_level"] in {"error", "critical"} or line["event"] in failures
    ]
