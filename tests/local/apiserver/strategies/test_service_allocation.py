from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.local.apiserver.strategies import service_allocation
from tests.local.apiserver.admission.lagging_driver import LaggingDriver
from tests.local.apiserver.builders import ADMIN, JSON, MERGE, ApiServerHarness, _as, _request

if TYPE_CHECKING:
    from tests.local.apiserver.builders import Reply

SERVICES = "/api/v1/namespaces/here/services"


def furnished(driver: LaggingDriver | None = None) -> ApiServerHarness:
    return ApiServerHarness(driver=driver or LaggingDriver([3, 0, 1]))


@pytest.fixture
def world():
    with furnished() as made:
        made.namespace()
        yield made


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def exposed(name: str = "s", *ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return service(name, type="NodePort", ports=list(ports) or [{"port": 80}], **spec)


def at_once(world: ApiServerHarness, *bodies: dict[str, Any]) -> list[Reply]:
    asked = [world._asked(_request("POST", SERVICES, body, JSON, _as(ADMIN))) for body in bodies]

    async def all_of_them() -> list[Reply]:
        return await asyncio.gather(*asked)

    return world.run.run_until(all_of_them())


def node_ports(reply: Reply) -> list[int]:
    return [port["nodePort"] for port in reply.body["spec"]["ports"]]


class TestAtTheSameTime:
    def test_every_service_gets_node_ports_of_its_own(self, world: ApiServerHarness):
        replies = at_once(world, *(exposed(f"s{number}", {"port": 80, "name": "a"}) for number in range(30)))
        assert {reply.status for reply in replies} == {201}
        assert sorted(port for reply in replies for port in node_ports(reply)) == [*range(30000, 30030)]

    def test_what_was_answered_is_what_is_stored(self, world: ApiServerHarness):
        for reply in at_once(world, *(exposed(f"s{number}") for number in range(10))):
            assert world.ask("GET", f"{SERVICES}/{reply.body['metadata']['name']}").body == reply.body

    def test_every_service_gets_an_address_of_its_own(self, world: ApiServerHarness, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(service_allocation, "ADDRESSES", ipaddress.ip_network("10.96.0.0/27"))
        replies = at_once(world, *(service(f"s{number}") for number in range(20)))
        assert len({reply.body["spec"]["clusterIP"] for reply in replies}) == 20

    def test_one_of_several_services_gets_a_requested_address(self, world: ApiServerHarness):
        replies = at_once(world, *(service(f"s{number}", clusterIP="10.96.5.5") for number in range(3)))
        assert sorted(reply.status for reply in replies) == [201, 422, 422]

    def test_one_of_several_services_gets_a_requested_node_port(self, world: ApiServerHarness):
        asked = (exposed(f"s{number}", {"port": 80, "nodePort": 30000}) for number in range(2))
        replies = at_once(world, exposed("any"), *asked)
        assert sorted(reply.status for reply in replies) in ([201, 201, 422], [201, 422, 422])
        given = [port for reply in replies if reply.status == 201 for port in node_ports(reply)]
        assert len(given) == len(set(given))

    def test_a_write_that_failed_holds_nothing(self):
        driver = LaggingDriver([2])
        with furnished(driver) as world:
            world.namespace()
            driver.fail([True])
            assert world.ask("POST", SERVICES, exposed("a", {"port": 80, "nodePort": 30100})).status == 500
            driver.fail(())
            assert world.ask("POST", SERVICES, exposed("b", {"port": 80, "nodePort": 30100})).status == 201


def refusal(world: ApiServerHarness, body: dict[str, Any]) -> str:
    reply = world.ask("POST", SERVICES, body)
    assert (reply.status, reply.body["reason"]) == (422, "Invalid")
    return reply.message


class TestWhatIsRefused:
    def test_an_address_in_use(self, world: ApiServerHarness):
        world.made(SERVICES, service("a", clusterIP="10.96.5.5"))
        assert refusal(world, service("b", clusterIP="10.96.5.5")) == (
            'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.5.5"]: '
            "failed to allocate IP 10.96.5.5: provided IP is already allocated"
        )

    def test_a_node_port_in_use(self, world: ApiServerHarness):
        world.made(SERVICES, exposed("a", {"port": 80, "nodePort": 30100}))
        reported = refusal(world, exposed("b", {"port": 1, "name": "x"}, {"port": 80, "name": "y", "nodePort": 30100}))
        problem = "spec.ports[1].nodePort: Invalid value: 30100: provided port is already allocated"
        assert reported == f'Service "b" is invalid: {problem}'

    @pytest.mark.parametrize("port", [80, 29999, 32768])
    def test_a_node_port_out_of_range(self, world: ApiServerHarness, port: int):
        problem = f"spec.ports[0].nodePort: Invalid value: {port}: provided port is not in the valid range. "
        problem += "The range of valid ports is 30000-32767"
        assert refusal(world, exposed("s", {"port": 80, "nodePort": port})) == f'Service "s" is invalid: {problem}'

    def test_one_node_port_for_two_ports(self, world: ApiServerHarness):
        one = {"port": 80, "name": "a", "protocol": "TCP", "nodePort": 30100}
        other = {"port": 81, "name": "b", "protocol": "UDP", "nodePort": 30100}
        assert "spec.ports[1].nodePort: Invalid value: 30100" in refusal(world, exposed("s", one, other))

    def test_a_node_port_in_use_in_an_update(self, world: ApiServerHarness):
        world.made(SERVICES, exposed("a", {"port": 80, "nodePort": 30100}))
        world.made(SERVICES, exposed("b"))
        patch = {"spec": {"ports": [{"port": 80, "nodePort": 30100}]}}
        reply = world.ask("PATCH", f"{SERVICES}/b", patch, content=MERGE)
        assert (reply.status, reply.body["details"]["causes"][0]["field"]) == (422, "spec.ports[0].nodePort")

    def test_a_port_when_all_are_given(self, world: ApiServerHarness, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(service_allocation, "NODE_PORTS", range(30000, 30001))
        world.made(SERVICES, exposed("a"))
        reply = world.ask("POST", SERVICES, exposed("b"))
        assert (reply.status, reply.body["reason"]) == (500, "InternalError")
        assert reply.message == "Internal error occurred: failed to allocate a nodePort: range is full"

    def test_an_address_when_all_are_given(self, world: ApiServerHarness, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(service_allocation, "ADDRESSES", ipaddress.ip_network("10.96.0.0/28"))
        for number in range(5):
            world.made(SERVICES, service(f"s{number}"))
        reply = world.ask("POST", SERVICES, service("more"))
        assert reply.status == 500
        assert reply.message == "Internal error occurred: failed to allocate a serviceIP: range is full"


class TestNodePorts:
    def test_one_number_over_two_protocols_is_one_node_port(self, world: ApiServerHarness):
        dns = [{"port": 53, "name": "a", "protocol": "TCP"}, {"port": 53, "name": "b", "protocol": "UDP"}]
        first, second = world.made(SERVICES, exposed("dns", *dns))["spec"]["ports"]
        assert first["nodePort"] == second["nodePort"]

    def test_a_free_one_is_not_what_another_port_asks_for(self, world: ApiServerHarness):
        ports = [{"port": 1, "name": "a"}, {"port": 2, "name": "b", "nodePort": 30000}]
        made = world.made(SERVICES, exposed("s", *ports))["spec"]["ports"]
        assert [port["nodePort"] for port in made] == [30001, 30000]

    def test_a_load_balancer_may_go_without(self, world: ApiServerHarness):
        body = service(type="LoadBalancer", allocateLoadBalancerNodePorts=False)
        assert "nodePort" not in world.made(SERVICES, body)["spec"]["ports"][0]

    def test_what_is_given_back_can_be_had_again(self, world: ApiServerHarness):
        world.made(SERVICES, exposed("a", {"port": 80, "nodePort": 30100}))
        assert world.ask("DELETE", f"{SERVICES}/a").status == 200
        world.made(SERVICES, exposed("b", {"port": 80, "nodePort": 30100}))

    def test_its_own_is_free_for_itself(self, world: ApiServerHarness):
        made = world.made(SERVICES, exposed("a", {"port": 80, "nodePort": 30100}))
        made["metadata"]["labels"] = {"l": "1"}
        assert world.ask("PUT", f"{SERVICES}/a", made).status == 200

    def test_a_dry_run_takes_none(self, world: ApiServerHarness):
        assert world.ask("POST", f"{SERVICES}?dryRun=All", exposed("a")).body["spec"]["ports"][0]["nodePort"] == 30000
        assert world.made(SERVICES, exposed("b"))["spec"]["ports"][0]["nodePort"] == 30000
