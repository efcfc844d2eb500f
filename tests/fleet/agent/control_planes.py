"""A control plane that a test plays: what it lists, how it answers, and which reports it got."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from plimsoll.fleet.agent.settings import AgentParameters
from plimsoll.web.client import FailureKind, RequestFailed, Response

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.web.client import Request

Json = dict[str, Any]

URL = "http://fleet.test"
ISSUER = "http://sso.test/auth/realms/data-plane"
CLUSTER = "cluster-a"
ACCOUNT = {"client_id": "agent-a", "client_secret": "secret of the agent"}
PARAMETERS = AgentParameters(
    control_plane_url=URL,
    cluster_id=CLUSTER,
    issuer_url=ISSUER,
    client_id=ACCOUNT["client_id"],
    client_secret=ACCOUNT["client_secret"],
)
VERSIONS = {"kafka": "4.3.0", "strimzi": "plimsoll-kafka.v0.1.0-0", "kafkaIbp": "4.3"}
TOKEN_S = 300


def build_item(
    kafka_id: str,
    *,
    units: int = 1,
    placement: str = "p1",
    instance_type: str = "standard",
    name: str = "",
    deleted: bool = False,
    **spec: Any,
) -> Json:
    """An item as the control plane lists it."""
    return {
        "id": kafka_id,
        "kind": "ManagedKafka",
        "metadata": {
            "name": name or f"k-{kafka_id}",
            "namespace": f"kafka-{kafka_id}",
            "annotations": {"bf2.org/id": kafka_id, "bf2.org/placementId": placement},
            "labels": {
                "bf2.org/kafkaInstanceProfileType": instance_type,
                "bf2.org/kafkaInstanceProfileQuotaConsumed": str(units),
                "bf2.org/suspended": "false",
            },
        },
        "spec": {
            "capacity": {"ingressPerSec": "50Mi", "maxDataRetentionSize": f"{1000 * units}Gi", "maxPartitions": 1500},
            "oauth": {"maximumSessionLifetime": 0},
            "endpoint": {"bootstrapServerHost": f"k-{kafka_id}.kas.a.example.com"},
            "versions": VERSIONS,
            "owners": ["alice"],
            "deleted": deleted,
            **spec,
        },
    }


def build_reserved_item(number: int, instance_type: str = "standard") -> Json:
    name = f"reserved-kafka-{instance_type}-{number}"
    item = build_item(name, placement=name, instance_type=instance_type, name=name)
    item["metadata"]["namespace"] = name
    item["metadata"]["labels"] |= {"bf2.org/deployment": "reserved"}
    return item


class PlayedControlPlane:
    """Answers like the service. `answer` changes how: a status, a body, or None for no answer at all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.items: list[Any] = []
        self.max_nodes: dict[str, int] = {"standard": 6}
        self.list_answer: Response | RequestFailed | None = None
        """Instead of the list."""
        self.is_away = False
        self.takes_reports = True
        self.polls = 0
        self.expires_in: Any = TOKEN_S
        """As its answers say it."""
        self.tokens: list[float] = []
        """When each token was given."""
        self.refused_tokens: set[str] = set()
        self.cluster_reports: list[Json] = []
        self.kafka_reports: list[Json] = []

    def get_last(self, kafka_id: str) -> Json:
        """The last report of an instance: its Ready condition, with everything else."""
        for report in reversed(self.kafka_reports):
            if kafka_id in report:
                found: Json = report[kafka_id]
                return {**found["conditions"][0], **found}
        raise AssertionError(f"{kafka_id} was never reported: {self.kafka_reports}")

    async def send(self, request: Request) -> Response | RequestFailed:
        if self.is_away:
            return RequestFailed(problem="there is nothing", kind=FailureKind.UNCONNECTED)
        parts = urlsplit(request.url)
        if request.url.startswith(ISSUER):
            return self._issue(parts.path, request)
        prefix = f"/api/kafkas_mgmt/v1/agent-clusters/{CLUSTER}"
        assert parts.path.startswith(prefix), request.url
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not self._is_valid(token):
            return _answer(401, {"kind": "Error"})
        return self._serve(request.method, parts.path.removeprefix(prefix), request.body)

    def _issue(self, path: str, request: Request) -> Response:
        if path.endswith("openid-configuration"):
            return _answer(200, {"token_endpoint": f"{ISSUER}/protocol/token"})
        assert path.endswith("/protocol/token"), path
        fields = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        if fields != {"grant_type": "client_credentials", **ACCOUNT}:
            return _answer(401, {"error": "invalid_client"})
        self.tokens.append(self._clock.monotonic_s())
        return _answer(200, {"access_token": f"token-{len(self.tokens)}", "expires_in": self.expires_in})

    def _is_valid(self, token: str) -> bool:
        number = int(token.removeprefix("token-"))
        is_fresh = self._clock.monotonic_s() < self.tokens[number - 1] + TOKEN_S
        return is_fresh and token not in self.refused_tokens

    def _serve(self, method: str, path: str, body: bytes) -> Response | RequestFailed:
        match method, path:
            case "GET", "":
                capacity = {name: {"maxNodes": nodes} for name, nodes in self.max_nodes.items()}
                return _answer(200, {"spec": {"net": {"private": False}, "capacity": capacity, "unknown": 1}})
            case "GET", "/kafkas":
                self.polls += 1
                return self.list_answer or _answer(200, {"kind": "ManagedKafkaList", "items": self.items})
            case "PUT", "/status" if self.takes_reports:
                self.cluster_reports.append(json.loads(body))
                return Response(status=204)
            case "PUT", "/kafkas/status" if self.takes_reports:
                self.kafka_reports.append(json.loads(body))
                return Response(status=200)
        return _answer(503, {"kind": "Error"})


def _answer(status: int, document: Any) -> Response:
    return Response(status=status, body=json.dumps(document).encode())
