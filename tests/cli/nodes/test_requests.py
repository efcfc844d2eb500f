"""`plimsoll requests list | describe | wait` as people type them, on a server in memory."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.runner import plimsoll
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.golden.reviewed_sentences import ReviewedSentences

REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests"
NOON = "2026-01-01T12:00:00Z"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        definition = files("plimsoll.objects").joinpath("crds", "provisioningrequests.yaml").read_text()
        world.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(definition))

        def with_client(_connection: Any, work: Any, **_more: Any) -> Any:
            return world.do(work(world.client))

        monkeypatch.setattr("plimsoll.cli.nodes.requests.run_with_client", with_client)
        monkeypatch.setattr(
            "plimsoll.cli.nodes.requests._get_namespace", lambda connection: connection.namespace or "default"
        )
        yield world


def condition(kind: str, status: str = "True", reason: str = "Because", message: str = "so it is") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOON}


def given(world: EmbeddedApi, name: str, *conditions: dict[str, str], **details: str) -> None:
    body: dict[str, Any] = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": name},
        "spec": {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [
                {"podTemplateRef": {"name": "worker"}, "count": 7},
                {"podTemplateRef": {"name": "leader"}, "count": 1},
            ],
        },
    }
    made = world.ask("POST", REQUESTS, body)
    made["status"] = {"conditions": list(conditions), "provisioningClassDetails": details}
    world.ask("PUT", f"{REQUESTS}/{name}/status", made)


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ([], "New"),
        ([condition("Accepted")], "Accepted"),
        ([condition("Accepted"), condition("Provisioned", "False")], "Waiting"),
        ([condition("Provisioned")], "Provisioned"),
        ([condition("Provisioned"), condition("BookingExpired", reason="CapacityBookingConsumed")], "Consumed"),
        ([condition("Provisioned"), condition("BookingExpired")], "BookingExpired"),
        ([condition("Provisioned"), condition("CapacityRevoked")], "Revoked"),
        ([condition("Provisioned", "False"), condition("Failed")], "Failed"),
    ],
)
def test_one_word_says_where_a_request_stands(world: EmbeddedApi, conditions: list[dict[str, str]], state: str):
    given(world, "r", *conditions)
    assert json.loads(plimsoll("requests", "list", "-o", "json").stdout)[0]["state"] == state


def test_the_list_has_all_of_them_with_nodes_and_cost(world: EmbeddedApi):
    given(world, "b", condition("Provisioned"), nodeGroups='{"g":3}', planCostPerHour="0.57")
    given(world, "a")
    lines = plimsoll("requests", "list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "CLASS", "PODS", "STATE", "NODES", "COST/H", "AGE", "SAYS"]
    assert lines[1].split()[:4] == ["a", "check-capacity.autoscaling.x-k8s.io", "8", "New"]
    assert "Provisioned   g +3    0.57" in lines[2]
    assert plimsoll("requests", "list", "-A").stdout.splitlines()[0].startswith("NAMESPACE")
    assert plimsoll("requests", "list", "-o", "name").stdout.split() == [
        "provisioningrequest/default/a",
        "provisioningrequest/default/b",
    ]


def test_no_requests_is_an_answer(world: EmbeddedApi, reviewed: ReviewedSentences):
    ended = plimsoll("requests", "list")
    assert ended.returncode == 0
    reviewed(ended.stdout)
    assert plimsoll("requests", "list", "-o", "json").stdout == "[]\n"


def test_a_description_shows_what_stands_in_the_way(world: EmbeddedApi):
    given(
        world,
        "r",
        condition("Provisioned", "False", "CapacityIsNotFound", "14 of 24 pods fit"),
        attempts="3",
        lastAttemptTime=NOON,
        nextAttemptTime="2026-01-01T12:04:00Z",
        blocking='{"0":["zone b is backed off until 02:10"]}',
    )
    reported = plimsoll("requests", "describe", "r").stdout
    assert "pods         8 (7 x worker, 1 x leader)" in reported
    assert "             14 of 24 pods fit" in reported
    assert f"attempts     3, last at {NOON}, next after 2026-01-01T12:04:00Z" in reported
    assert "blocked by   pod set 0: zone b is backed off until 02:10" in reported
    assert "Provisioned   False    CapacityIsNotFound" in reported


def test_details_of_another_program_are_no_trouble(world: EmbeddedApi):
    given(world, "r", condition("Provisioned"), attempts="many", nodeGroups="[", blocking="<b>", bookedUntil="soon")
    reported = json.loads(plimsoll("requests", "describe", "default/r", "-o", "json").stdout)
    assert (reported["attempts"], reported["nodeGroups"], reported["blocking"], reported["bookedUntil"]) == (
        0,
        {},
        "<b>",
        None,
    )


def test_a_request_that_is_not_there_is_exit_3(world: EmbeddedApi):
    for words in (["describe", "nobody"], ["wait", "nobody"]):
        ended = plimsoll("requests", *words)
        assert ended.returncode == 3
        assert "ProvisioningRequest default/nobody does not exist" in ended.stderr


@pytest.mark.parametrize(("name", "fault"), [("a/b/c", "is not NAME"), ("/r", "is not NAME"), ("x/r", "-n")])
def test_names_that_cannot_be_are_exit_2(world: EmbeddedApi, name: str, fault: str):
    ended = plimsoll("requests", "describe", name, "-n", "default")
    assert ended.returncode == 2
    assert fault in ended.stderr


def test_a_wait_ends_well_when_it_is_provisioned(world: EmbeddedApi):
    given(world, "r", condition("Provisioned", message="Capacity for 8 pods is there."))
    ended = plimsoll("requests", "wait", "r")
    assert (ended.returncode, ended.stdout) == (0, "request default/r Provisioned: Capacity for 8 pods is there.\n")


def test_a_wait_for_what_can_never_be_ends_at_once(world: EmbeddedApi):
    given(world, "r", condition("Failed", message="no template"))
    ended = plimsoll("requests", "wait", "r")
    assert (ended.returncode, ended.stderr) == (1, "request default/r Failed: no template\n")
    given(world, "over", condition("Provisioned"), condition("BookingExpired"))
    assert plimsoll("requests", "wait", "over", "--for", "consumed").returncode == 1


def test_a_wait_that_is_over_says_what_stands_in_the_way(world: EmbeddedApi):
    given(world, "r", condition("Provisioned", "False", message="14 of 24 pods fit"))
    ended = plimsoll("requests", "wait", "r", "--timeout", "0s")
    assert ended.returncode == 1
    assert "not provisioned in time, it is Waiting: 14 of 24 pods fit" in ended.stderr
    assert plimsoll("requests", "wait", "r", "--for", "answered").returncode == 0


def test_a_timeout_that_is_none_is_exit_2(world: EmbeddedApi):
    ended = plimsoll("requests", "wait", "r", "--timeout", "soon")
    assert ended.returncode == 2
    assert "--timeout" in ended.stderr


def test_a_cluster_that_does_not_know_requests_is_reported_what_to_install(
    world: EmbeddedApi,
):
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    world.ask("DELETE", f"{definitions}/provisioningrequests.autoscaling.x-k8s.io")
    ended = plimsoll("requests", "list")
    assert ended.returncode == 3
    assert "kubectl apply -f deploy/crds" in ended.stderr


# ---- --watch


def watched(monkeypatch: pytest.MonkeyPatch, *pauses: Callable[[], object]) -> Any:
    """`plimsoll requests list --watch`: what happens in each pause between two looks; then Ctrl-C."""
    waiting = iter(pauses)

    def pass_time(_seconds: float) -> None:
        happens = next(waiting, None)
        if happens is None:
            raise KeyboardInterrupt
        happens()

    monkeypatch.setattr("time.sleep", pass_time)
    return plimsoll("requests", "list", "--watch")


def test_a_watch_prints_all_and_then_only_rows_that_changed(world: EmbeddedApi, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.runtime.clocks.RealClock.now", lambda _clock: world.run.clock.now())
    given(world, "a")
    given(world, "b")

    def provision() -> None:
        found = world.ask("GET", f"{REQUESTS}/b")
        found["status"] = {"conditions": [condition("Provisioned")]}
        world.ask("PUT", f"{REQUESTS}/b/status", found)

    ended = watched(
        monkeypatch,
        lambda: world.run.advance_by(3600),
        provision,
        lambda: world.run.advance_by(3600),
        lambda: given(world, "c"),
    )
    assert ended.returncode == 130, ended.stderr
    rows = [tuple(line.split()[index] for index in (0, 3)) for line in ended.stdout.splitlines()]
    head = ("NAME", "STATE")
    assert rows == [head, ("a", "New"), ("b", "New"), head, ("b", "Provisioned"), head, ("c", "New")]
