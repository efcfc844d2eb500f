"""The API on a database in memory, in virtual time, with tokens of the built-in issuer."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.fleet.api.application import FleetApi
from plimsoll.fleet.api.errors import BASE_PATH
from plimsoll.fleet.api.ports import ApiPorts, ApiSettings, RateLimit
from plimsoll.fleet.auth.issuer import DEFAULT_AUDIENCE, Issuer, Realm, UserIdentity, build_issuer_url
from plimsoll.fleet.auth.issuer_keys import IssuerKeys
from plimsoll.fleet.auth.key_sets import KeySet
from plimsoll.fleet.auth.verification import TokenVerifier
from plimsoll.fleet.model.access import DEFAULT_ADMIN_ROLES, AccessPolicy
from plimsoll.journal.memory import MemoryJournal
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.thread_isolation import allow_outside_calls
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response
from tests.fleet.fleet_rows import NOW, make_cluster, make_policy, offer
from tests.fleet.service import MEMORY, open_inline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.fleet.auth.key_sets import KeySource
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.workers import Worker

ISSUER_URL = "http://fleet.test/auth"
ADMIN_ROLE = DEFAULT_ADMIN_ROLES["DELETE"][0]
ALICE = UserIdentity(user="alice", organisation="org-1", account="account-1")
NO_LIMIT = RateLimit(per_second=1e6, burst=10**9)


class Answer(NamedTuple):
    status: int
    document: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        """The number of the error; empty for an answer that is none."""
        is_error = isinstance(self.document, dict) and self.document.get("kind") == "Error"
        return self.document["id"] if is_error else ""


class RecordingSignals:
    def __init__(self) -> None:
        self.notified: list[Worker] = []

    def notify(self, worker: Worker) -> None:
        self.notified.append(worker)


class RecordingMetrics:
    def __init__(self) -> None:
        self.reserved: dict[str, dict[tuple[str, str], int]] = {}
        self.requests: list[tuple[str, str, int]] = []
        self.cluster_creations_s: list[float] = []
        self.kafka_creations_s: list[float] = []

    def set_reserved(self, cluster_id: str, counts: Mapping[tuple[str, str], int]) -> None:
        self.reserved[cluster_id] = dict(counts)

    def observe_cluster_creation(self, duration_s: float) -> None:
        self.cluster_creations_s.append(duration_s)

    def observe_kafka_creation(self, duration_s: float) -> None:
        self.kafka_creations_s.append(duration_s)

    def count_request(self, method: str, path: str, code: int, *, duration_s: float) -> None:
        assert duration_s >= 0
        self.requests.append((method, path, code))


@cache
def make_key_folder() -> Path:
    """Keys are made once: that takes longer than most tests."""
    return Path(tempfile.mkdtemp(prefix="plimsoll-keys-"))


class ApiWorld:
    """`call` sends a request, and the world goes on only as far as its answer."""

    def __init__(
        self,
        policy: FleetPolicy | None = None,
        *,
        access: AccessPolicy | None = None,
        rate: RateLimit = NO_LIMIT,
        key_file: Path | None = None,
        other_keys: Sequence[KeySource] = (),
        url: str = MEMORY,
    ) -> None:
        self.run = VirtualRun(start=NOW)
        self.clock = self.run.clock
        entropy = SeededEntropy("fleet api")
        self.database = open_inline(url, self.clock)
        self.store = self.database.store
        self.journal = MemoryJournal()
        self.signals = RecordingSignals()
        self.metrics = RecordingMetrics()
        keys = IssuerKeys(key_file or make_key_folder() / "keys.json", clock=self.clock, entropy=entropy)
        self.issuer = Issuer(keys, base_url=ISSUER_URL, clock=self.clock, entropy=entropy)
        issuers = {realm: build_issuer_url(ISSUER_URL, realm) for realm in Realm}
        key_set = KeySet([keys, *other_keys], clock=self.clock, issuers={keys.name: issuers.values()})
        verifier = TokenVerifier(key_set, audience=DEFAULT_AUDIENCE, clock=self.clock)
        self.policy = policy or make_policy(offer("standard"), offer("developer"))
        self.ports = ApiPorts(
            store=self.store,
            journal=self.journal,
            clock=self.clock,
            entropy=entropy,
            policy=self.policy,
            verifier=verifier,
            settings=ApiSettings(issuers=issuers, rate=rate),
            signals=self.signals,
            metrics=self.metrics,
            access=access or AccessPolicy(),
            issuer=self.issuer,
        )
        self.api = FleetApi(self.ports)

    def close(self) -> None:
        self.run.close()
        with allow_outside_calls():
            self.database.close()

    # ---- tokens

    def user_token(self, identity: UserIdentity = ALICE) -> str:
        return self.issuer.issue_user_token(identity)

    def admin_token(self, *roles: str) -> str:
        return self.issuer.issue_admin_token(UserIdentity(user="root", roles=roles or (ADMIN_ROLE,)))

    def agent_token(self, cluster: Cluster) -> str:
        return self.issuer.issue_agent_token(cluster.client_id)

    # ---- rows

    def add_cluster(self, row_id: str = "a", units: Any = 10, **changes: Any) -> Cluster:
        settings = {
            "client_id": f"agent-{row_id}",
            "client_secret": f"secret of {row_id}",
            "cluster_dns": "apps.example.com",
            "last_report_at": NOW,
        }
        cluster = make_cluster(row_id, units, **(settings | changes))
        assert self.run.run_until(self.store.insert_cluster(cluster))
        return cluster

    def get_cluster(self, row_id: str) -> Cluster:
        found = self.run.run_until(self.store.get_cluster(row_id))
        assert found is not None
        return found

    # ---- requests

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        raw: bytes | None = None,
        query: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """`path` is below the base unless it begins with `/api` or `/auth`; both are encoded as on the wire."""
        full = path if path.startswith(("/api", "/auth")) else f"{BASE_PATH}{path}"
        sent = dict(headers or {})
        if token:
            sent["authorization"] = f"Bearer {token}"
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        answer = self.run.run_until(
            call_application(self.api.application, method, full, query=query, headers=sent, body=content)
        )
        assert isinstance(answer, Response), answer
        is_json = answer.body and answer.headers.get("content-type", "").startswith("application/json")
        return Answer(answer.status, json.loads(answer.body) if is_json else answer.body, answer.headers)

    def create(self, name: str, plan: str = "standard.x1", *, token: str = "", **fields: Any) -> Answer:
        body = {"name": name, "plan": plan, **fields}
        return self.call("POST", "/kafkas", body, token=token or self.user_token(), query="async=true")
