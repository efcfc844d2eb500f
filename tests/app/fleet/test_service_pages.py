"""The probes and metrics of a fleet manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from plimsoll.core.errors import PlimsollError
from plimsoll.fleet.errors import DatabaseUnreachable
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response
from tests.fleet.service import open_scenario

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fleet.service import FleetScenario


def get_page(fleet: FleetScenario, path: str) -> tuple[int, str]:
    answer = fleet.run.run_until(call_application(fleet.service.pages, "GET", path))
    assert isinstance(answer, Response)
    return answer.status, answer.body.decode()


def test_a_leader_is_alive_and_ready(tmp_path: Path):
    with open_scenario(tmp_path) as fleet:
        fleet.offer(standard={}).start()
        for path in ("/healthz", "/livez"):
            status, text = get_page(fleet, path)
            assert status == 200
            assert "dynamic_scale_up" in text
        assert get_page(fleet, "/readyz")[0] == 200
        status, text = get_page(fleet, "/metrics")
        assert status == 200
        assert 'kas_fleet_manager_leader_worker{worker_type="dynamic_scale_up"} 1.0' in text
        assert 'kas_fleet_manager_cluster_status_count{status="cluster_accepted"} 0.0' in text
        fleet.run_passes(1)
        assert 'status_count{status="cluster_accepted"} 1.0' in get_page(fleet, "/metrics")[1]


def test_a_process_beside_a_leader_is_a_standby_and_ready(tmp_path: Path):
    with open_scenario(tmp_path) as fleet:
        for worker in ("dynamic_scale_up", "dynamic_scale_down", "accepted_kafka", "general_kafka_worker"):
            fleet.run.run_until(fleet.database.leases.acquire_lease(worker, "other", duration_s=3600))
        fleet.offer(standard={}).start().run_passes(40)
        assert fleet.list_clusters() == []
        assert get_page(fleet, "/healthz")[0] == 200
        assert get_page(fleet, "/readyz")[0] == 200


def test_a_database_that_does_not_answer_makes_it_unready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def fail(*_arguments: object, **_options: object) -> None:
        raise DatabaseUnreachable("no answer")

    with open_scenario(tmp_path) as fleet:
        fleet.offer(standard={}).start()
        monkeypatch.setattr(fleet.database.leases, "acquire_lease", fail)
        fleet.pass_by(16)
        assert get_page(fleet, "/readyz")[0] == 503
        monkeypatch.undo()
        fleet.pass_by(15)
        assert get_page(fleet, "/readyz")[0] == 200


def test_requests_and_statements_are_counted(tmp_path: Path):
    with open_scenario(tmp_path) as fleet:
        fleet.offer(standard={}).start()
        assert fleet.create_kafka("orders").status == 202
        assert fleet.call("GET", "/kafkas/unknown").status == 404
        assert fleet.call("BREW", "/nothing/here").status == 404
        page = get_page(fleet, "/metrics")[1]
    path = "/api/kafkas_mgmt/v1/kafkas"
    assert f'api_inbound_request_count{{code="202",method="POST",path="{path}"}} 1.0' in page
    assert f'api_inbound_request_count{{code="404",method="GET",path="{path}/-"}} 1.0' in page
    assert 'api_inbound_request_count{code="404",method="other",path="-"} 1.0' in page
    assert f'api_inbound_request_duration_count{{code="202",method="POST",path="{path}"}} 1.0' in page
    for kind in ("select", "insert", "update"):
        assert f'kas_fleet_manager_database_query_count{{query="{kind}",status="success"}}' in page
        assert f'kas_fleet_manager_database_query_duration_count{{query="{kind}",status="success"}}' in page


def test_a_statement_that_fails_is_counted(tmp_path: Path):
    with open_scenario(tmp_path) as fleet:
        fleet.offer(standard={}).start()
        with pytest.raises(PlimsollError):
            fleet.run.run_until(
                fleet.database.transactions.read(lambda connection: connection.execute(text("SELECT * FROM missing")))
            )
        assert 'database_query_count{query="select",status="failure"} 1.0' in get_page(fleet, "/metrics")[1]
