"""`plimsoll run tidb --once` over sockets: a Kubernetes of few words, a planner and a PD, all of them played."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from plimsoll.runtime.clocks import RealClock
from plimsoll.web.client import Request, Response
from tests.cli.runner import CommandResult, plimsoll
from tests.e2e.tidb.fake_servers import serving
from tests.tidb.autoscaled_clusters import AUTO, GROUP, SMALL, group, homogeneous
from tests.tidb.fake_kubernetes import FakeKubernetes
from tests.tidb.pd.simulated_pd import SimulatedPd

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]

START = datetime(2026, 1, 1, tzinfo=UTC)
FINALIZER = "autoscaler.tidb.pingcap.com/drain"


class OncePassServers:
    """Three servers on sockets, and the command."""

    def __init__(self, *, token: str = "") -> None:
        self._token = token
        self.kubernetes = FakeKubernetes()
        self.pd = SimulatedPd(RealClock(), leaders_per_s=float("inf"), regions_per_s=float("inf"))
        self.plans: Any = []
        self.refuses_status = False
        self._stack = ExitStack()
        requests = {"cpu": "4", "memory": "16Gi", "storage": "100Gi"}
        spec = {
            "pd": {"replicas": 3},
            "tikv": {"replicas": 3, "requests": requests},
            "tidb": {"replicas": 2, "requests": {"cpu": "4", "memory": "16Gi"}},
        }
        self.kubernetes.put("tidbclusters", {"metadata": {"name": "db", "namespace": "prod"}, "spec": spec})
        rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
        tikv = {"rules": rules, "resources": {"storage_small": SMALL}}
        self.kubernetes.put(
            "tidbclusterautoscalers",
            {"metadata": {"name": "as1", "namespace": "prod"}, "spec": {"cluster": {"name": "db"}, "tikv": tikv}},
        )
        for number in range(3):
            self.pd.register(f"db-tikv-{number}")

    def __enter__(self) -> Self:
        self._server = self._stack.enter_context(serving(self._answer_of_kubernetes))
        self._planner = self._stack.enter_context(
            serving(lambda *_: (200, json.dumps(self.plans).encode()), token=self._token)
        )
        self._pd = self._stack.enter_context(serving(self._answer_of_pd, token=self._token))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def once(self, *more: str | Path, at_s: float = 0) -> CommandResult:
        now = f"{START + timedelta(seconds=at_s):%Y-%m-%dT%H:%M:%SZ}"
        given = ("--server", self._server, "--planner", self._planner, "--pd", self._pd, "--drain=active")
        return plimsoll("run", "tidb", *given, "--once", "--now", now, *more)

    def cluster(self, name: str = AUTO) -> Json | None:
        return self.kubernetes.objects.get(("tidbclusters", "prod", name))

    @property
    def autoscaler(self) -> Json:
        return self.kubernetes.objects["tidbclusterautoscalers", "prod", "as1"]

    def status_of(self, name: str, replicas: int) -> None:
        there = self.cluster(name)
        assert there is not None
        self.kubernetes.put(
            "tidbclusters", {**there, "status": {"tikv": {"phase": "Normal", "statefulSet": {"replicas": replicas}}}}
        )

    def _answer_of_kubernetes(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if method == "PATCH" and path.partition("?")[0].endswith("/status") and self.refuses_status:
            return 500, b'{"kind": "Status", "code": 500, "message": "disk full"}'
        return self.kubernetes.answer(method, path, body)

    def _answer_of_pd(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        asked = Request(method=method, url=f"http://pd.test{path}", body=body)  # type: ignore[arg-type] # one of three
        answer = asyncio.run(self.pd.send(asked))
        assert isinstance(answer, Response)
        return answer.status, answer.body


def test_a_pass_writes_the_cluster_then_the_status_and_a_second_one_nothing() -> None:
    with OncePassServers() as scene:
        scene.plans = [group(1)]
        ended = scene.once()
        assert (ended.returncode, ended.stderr) == (0, "")
        assert f"prod/as1 tikv: {AUTO} created with 1" in ended.stdout
        written = [path.rsplit("/", 2)[-2:] for method, path in scene.kubernetes.wrote if "/events" not in path]
        assert written == [["tidbclusterautoscalers", "as1"], ["prod", "tidbclusters"], ["as1", "status"]]
        assert scene.autoscaler["status"]["tikv"][GROUP]["lastAutoScalingTimestamp"] == "2026-01-01T00:00:00Z"
        assert scene.autoscaler["metadata"]["finalizers"] == [FINALIZER]
        scene.pd.register(f"{AUTO}-tikv-0")
        scene.kubernetes.wrote.clear()
        again = scene.once(at_s=30)
        assert again.returncode == 0
        assert scene.kubernetes.wrote == []


def test_a_status_that_cannot_be_written_is_a_pass_that_failed_and_not_a_server_out_of_reach() -> None:
    with OncePassServers() as scene:
        scene.refuses_status = True
        ended = scene.once()
        assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, "error: prod/as1: disk full")


def test_a_gate_before_planner_and_pd_is_shown_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    with OncePassServers(token="s3cret") as scene:
        scene.plans = [group(1)]
        assert "the planner answers 401: a token is needed" in scene.once().stdout
        ended = scene.once("--pd-token-file", tmp_path / "token")
        assert f"prod/as1 tikv: {AUTO} created with 1" in ended.stdout, ended
        assert "s3cret" not in ended.stdout + ended.stderr


def test_it_needs_neither_discovery_nor_definitions() -> None:
    with OncePassServers() as scene:
        scene.once()
        paths = {line.split()[1] for line in scene.kubernetes.asked}
        assert not {"/api", "/apis", "/openapi/v2", "/openapi/v3", "/version"} & paths
        assert not any("customresourcedefinitions" in path or "leases" in path for path in paths)


def test_all_times_are_those_of_the_given_clock() -> None:
    with OncePassServers() as scene:
        scene.plans = [homogeneous(6)]
        scene.once(at_s=3600)
        reported = {condition["lastTransitionTime"] for condition in scene.autoscaler["status"]["conditions"]}
        reported.add(scene.autoscaler["status"]["tikv"]["default_homogeneous_tikv"]["lastAutoScalingTimestamp"])
        assert reported == {"2026-01-01T01:00:00Z"}


def test_a_group_leaves_store_first(tmp_path: Path) -> None:
    """Also when nothing but the StatefulSet's size is in the statuses: PD knows the stores."""
    with OncePassServers() as scene:
        scene.plans = [group(1)]
        scene.once()
        scene.pd.register(f"{AUTO}-tikv-0", labels={"specialUse": "hotRegion"})
        scene.status_of(AUTO, 1)
        scene.plans = None
        scene.once(at_s=700)
        assert scene.pd.wrote == []
        ended = scene.once("--data", tmp_path, at_s=730)
        assert "DELETE /store/4" in scene.pd.wrote, ended
        scene.status_of(AUTO, 0)
        scene.once(at_s=760)
        assert scene.cluster() is None
        why = plimsoll("why", f"tidbcluster/prod/{AUTO}", "--data", tmp_path)
        assert why.returncode == 0, why.stderr
        assert "take-out" in why.stdout


def test_a_dry_run_reports_and_writes_nothing() -> None:
    with OncePassServers() as scene:
        scene.plans = [group(2)]
        ended = scene.once("--dry-run", "-o", "json")
        assert ended.returncode == 0
        (reported,) = json.loads(ended.stdout)
        assert [action["verb"] for action in reported["plan"]["actions"]] == ["create"]
        assert [outcome["result"] for outcome in reported["outcomes"]] == ["HeldBack"]
        assert scene.kubernetes.wrote == []


def test_an_external_service_on_loopback_must_be_allowed() -> None:
    advice = {"name": "db", "namespace": "prod", "type": "tikv", "recommendedReplicas": 5}
    with OncePassServers() as scene, serving(lambda *_: (200, json.dumps(advice).encode())) as service:
        endpoint = {"host": "127.0.0.1", "port": int(service.rpartition(":")[2]), "path": "/"}
        spec = {"cluster": {"name": "db"}, "tikv": {"external": {"endpoint": endpoint, "maxReplicas": 3}}}
        scene.kubernetes.put("tidbclusterautoscalers", {"metadata": scene.autoscaler["metadata"], "spec": spec})
        assert scene.once().returncode == 0
        assert scene.cluster("db-tikv-external") is None
        assert scene.once("--external-allow=10.0.0.0/8,127.0.0.1").returncode == 0
        made = scene.cluster("db-tikv-external")
        assert made is not None
        assert made["spec"]["tikv"]["replicas"] == 3


def test_a_time_is_for_a_single_pass_only() -> None:
    ended = plimsoll("run", "tidb", "--server", "http://127.0.0.1:9", "--now", "2026-01-01T00:00:00Z")
    assert (ended.returncode, "--now" in ended.stderr) == (2, True)
