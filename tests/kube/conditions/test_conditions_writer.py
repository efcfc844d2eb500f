"""What stands in the status after we told our judgement, and whose it is."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.conditions import ConditionsWriter, Subject, SubjectGone, Told, Unchanged
from plimsoll.kube.errors import AnswerLost
from plimsoll.objects.api.meta import Condition, WireObject
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.policy import PodDisruptionBudget
from plimsoll.objects.api.resource import Resource
from tests.faults import CrashAfter, Crashed, Fault, LoseAnswers
from tests.kube.worlds import KubeWorld
from tests.local.apiserver.builders import APPLY, MERGE, definition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.transport import Request, Response, Transport

WIDGETS = "/apis/ex.com/v1/namespaces/here/widgets"
WIDGET = f"{WIDGETS}/w"


class Widget(WireObject):
    pass


WIDGET_RESOURCE = Resource(
    group="ex.com",
    version="v1",
    kind="Widget",
    plural="widgets",
    singular="widget",
    namespaced=True,
    struct=Widget,
)


def with_conditions() -> dict[str, Any]:
    text = {"type": "string"}
    condition = {
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            **dict.fromkeys(("type", "status", "reason", "message"), text),
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer"},
        },
    }
    listed = {
        "type": "array",
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    fields = {"replicas": {"type": "integer"}, "phase": text, "theirs": text}
    status = {"type": "object", "properties": {"conditions": listed, **fields}}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return definition(versions=[version])


class Desk:
    """A server with a widget, and a writer of its conditions."""

    def __init__(self) -> None:
        self.world = world = KubeWorld()
        self.sent: list[Request] = []
        self.writer = self.new_writer()
        world.namespace("here")
        world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", with_conditions())
        world.run.settle()
        world.made(WIDGETS, {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}})

    def new_writer(self, fault: Fault | None = None) -> ConditionsWriter:
        client = self.world.new_client(through=lambda transport: Noted((fault or Fault()).wrap(transport), self.sent))
        return ConditionsWriter(
            client,
            owned=["Ready", "Scaling"],
            owned_fields=["replicas", "phase"],
            field_manager="us",
            clock=self.world.clock,
        )

    def subject(self) -> Subject:
        return self.world.do(self._subject())

    async def _subject(self) -> Subject:
        return Subject.read(await self.world.new_client().get_raw(WIDGET_RESOURCE, "w", namespace="here"))

    def tell(self, *claims: Condition, subject: Subject | None = None, **fields: Any) -> object:
        subject = subject or self.subject()
        return self.world.do(self.writer.write(WIDGET_RESOURCE, subject, claims, fields=fields))

    @property
    def status(self) -> dict[str, Any]:
        return self.world.ask("GET", WIDGET).get("status", {})

    @property
    def conditions(self) -> dict[str, dict[str, Any]]:
        return {one["type"]: one for one in self.status.get("conditions", [])}

    @property
    def writes(self) -> int:
        return sum(call.method == "PATCH" for call in self.sent)


class Noted:
    """A transport whose calls are written down."""

    def __init__(self, transport: Transport, sent: list[Request]) -> None:
        self._transport = transport
        self._sent = sent

    async def send(self, call: Request) -> Response:
        self._sent.append(call)
        return await self._transport.send(call)

    async def aclose(self) -> None:
        await self._transport.aclose()


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    with desk.world:
        yield desk


def ready(status: str = "True", *, reason: str = "AllUp", message: str = "all 3 are up") -> Condition:
    return Condition(type="Ready", status=status, reason=reason, message=message)


SCALING = Condition(type="Scaling", status="True", reason="Adding", message="")


def foreign(desk: Desk, **more: Any) -> None:
    theirs = {
        "type": "Theirs",
        "status": "True",
        "reason": "Because",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
        **more,
    }
    body = {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "status": {"conditions": [theirs]}}
    desk.world.ask("PATCH", f"{WIDGET}/status?fieldManager=them&force=true", body, content=APPLY)


def test_a_condition_is_written_whole(desk: Desk):
    assert isinstance(desk.tell(ready()), Told)
    assert desk.conditions == {
        "Ready": {
            "type": "Ready",
            "status": "True",
            "reason": "AllUp",
            "message": "all 3 are up",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    }


def test_what_stands_there_already_is_not_sent(desk: Desk):
    desk.tell(ready())
    assert desk.tell(ready()) == Unchanged()
    assert desk.writes == 1


def test_the_time_of_transition_changes_with_the_status(desk: Desk):
    desk.tell(ready())
    desk.world.run.advance_by(60)
    desk.tell(ready("False", reason="OneDown"))
    assert desk.conditions["Ready"]["lastTransitionTime"] == "2026-01-01T00:01:00Z"


@pytest.mark.parametrize("changed", [{"reason": "MostUp"}, {"message": "all 4 are up"}])
def test_the_time_of_transition_stays_when_only_words_change(desk: Desk, changed: dict[str, str]):
    desk.tell(ready())
    desk.world.run.advance_by(60)
    assert isinstance(desk.tell(ready(**changed)), Told)
    assert desk.conditions["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_a_new_generation_is_told_even_if_the_judgement_stays(desk: Desk):
    desk.tell(ready())
    desk.world.ask("PATCH", WIDGET, {"spec": {"size": 5}}, content=MERGE)
    assert isinstance(desk.tell(ready()), Told)
    assert desk.conditions["Ready"]["observedGeneration"] == 2


def test_the_generation_told_is_the_one_that_was_judged(desk: Desk):
    judged = desk.subject()
    desk.world.ask("PATCH", WIDGET, {"spec": {"size": 5}}, content=MERGE)
    desk.tell(ready(), subject=judged)
    assert desk.conditions["Ready"]["observedGeneration"] == 1


def test_a_type_of_ours_that_no_longer_holds_is_taken_away(desk: Desk):
    desk.tell(ready(), SCALING)
    assert isinstance(desk.tell(ready()), Told)
    assert set(desk.conditions) == {"Ready"}
    assert isinstance(desk.tell(), Told)
    assert desk.conditions == {}
    assert desk.tell() == Unchanged()


def test_conditions_of_others_stay_as_they_are(desk: Desk):
    foreign(desk)
    desk.tell(ready(), SCALING)
    desk.tell(ready("False"))
    assert desk.conditions["Theirs"]["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    assert set(desk.conditions) == {"Theirs", "Ready"}


def test_changes_of_others_are_no_reason_to_write(desk: Desk):
    desk.tell(ready())
    foreign(desk)
    assert desk.tell(ready()) == Unchanged()


def test_what_is_ours_is_taken_back_from_whoever_took_it(desk: Desk):
    desk.tell(ready())
    foreign(desk, type="Ready", status="False")
    desk.tell(ready())
    assert desk.conditions["Ready"]["status"] == "True"


def test_fields_of_the_status_go_along(desk: Desk):
    desk.tell(ready(), replicas=3)
    assert desk.status["replicas"] == 3
    assert desk.tell(ready(), replicas=3) == Unchanged()
    assert isinstance(desk.tell(ready(), replicas=4), Told)
    assert desk.status["replicas"] == 4


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_field_of_ours_that_is_no_longer_told_is_taken_away(desk: Desk, is_restarted: bool):
    desk.tell(ready(), replicas=3, phase="Up")
    if is_restarted:
        desk.writer = desk.new_writer()
    assert isinstance(desk.tell(ready(), phase="Up"), Told)
    assert desk.status.keys() == {"conditions", "phase"}
    assert isinstance(desk.tell(ready(), phase=None), Told)
    assert desk.status.keys() == {"conditions"}
    assert desk.tell(ready()) == Unchanged()


def test_fields_of_others_stay_as_they_are(desk: Desk):
    desk.world.ask("PATCH", f"{WIDGET}/status", {"status": {"theirs": "x"}}, content=MERGE)
    desk.tell(ready(), replicas=3)
    desk.tell(ready())
    assert desk.status.keys() == {"conditions", "theirs"}


def test_a_field_that_somebody_else_holds_on_to_is_not_told_to_have_changed(desk: Desk):
    desk.world.ask("PATCH", f"{WIDGET}/status", {"status": {"phase": "Theirs"}}, content=MERGE)
    desk.tell(ready())
    assert desk.tell(ready()) == Unchanged()
    assert desk.status["phase"] == "Theirs"


@pytest.mark.parametrize("name", ["theirs", "conditions"])
def test_a_field_the_writer_does_not_own_is_refused(desk: Desk, name: str):
    with pytest.raises(InvalidInput, match=rf"^fields\.{name}: "):
        desk.tell(ready(), **{name: "x"})
    assert desk.writes == 0


@pytest.mark.parametrize("name", ["", "conditions"])
def test_conditions_are_no_field_to_be_owned(desk: Desk, name: str):
    with pytest.raises(InvalidInput, match=r"^owned_fields: "):
        ConditionsWriter(
            desk.world.client, owned=["Ready"], owned_fields=[name], field_manager="us", clock=desk.world.clock
        )


def test_a_stale_view_does_not_move_the_time_of_transition(desk: Desk):
    stale = desk.subject()
    desk.tell(ready())
    desk.world.run.advance_by(60)
    assert desk.tell(ready(), subject=stale) == Unchanged()
    desk.tell(ready(message="other words"), subject=stale)
    assert desk.conditions["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_an_object_made_anew_is_not_written_to(desk: Desk):
    old = desk.subject()
    desk.world.ask("DELETE", WIDGET)
    desk.world.made(WIDGETS, {"apiVersion": "ex.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    assert desk.tell(ready(), subject=old) == SubjectGone()
    assert desk.conditions == {}


def test_an_object_that_is_gone_is_not_made(desk: Desk):
    old = desk.subject()
    desk.world.ask("DELETE", WIDGET)
    assert desk.tell(ready(), subject=old) == SubjectGone()
    assert desk.world.server.ask("GET", WIDGET).status == 404


def test_a_message_too_long_for_the_api_is_cut(desk: Desk):
    desk.tell(ready(message="x" * 40_000))
    assert len(desk.conditions["Ready"]["message"]) == 32_768
    assert desk.tell(ready(message="x" * 40_000)) == Unchanged()


@pytest.mark.parametrize(
    ("claim", "path"),
    [
        (Condition(type="Ready", status="Yes", reason="R"), r"conditions\[Ready\]\.status"),
        (Condition(type="Ready", status="True", reason=""), r"conditions\[Ready\]\.reason"),
        (Condition(type="Ready", status="True", reason="two words"), r"conditions\[Ready\]\.reason"),
        (Condition(type="Theirs", status="True", reason="R"), r"conditions\[Theirs\]"),
    ],
)
def test_what_the_api_would_refuse_is_refused_before_it_is_sent(desk: Desk, claim: Condition, path: str):
    with pytest.raises(InvalidInput, match=f"^{path}: "):
        desk.tell(claim)
    assert desk.writes == 0


def test_one_type_twice_is_refused(desk: Desk):
    with pytest.raises(InvalidInput, match="twice"):
        desk.tell(ready(), ready("False"))


def test_a_type_kubernetes_does_not_take_cannot_be_owned(desk: Desk):
    with pytest.raises(InvalidInput, match="owned"):
        ConditionsWriter(desk.world.client, owned=["not so"], field_manager="us", clock=desk.world.clock)


# ---- built-in kinds


def test_nodes_have_conditions_without_a_generation(desk: Desk):
    world = desk.world
    times = dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), "2025-01-01T00:00:00Z")
    beat = {"type": "Ready", "status": "True", "reason": "KubeletReady", **times}
    world.made("/api/v1/nodes", {"metadata": {"name": "n"}})
    world.ask("PATCH", "/api/v1/nodes/n/status", {"status": {"conditions": [beat]}}, content=MERGE)
    writer = ConditionsWriter(world.client, owned=["plimsoll.dev/Draining"], field_manager="us", clock=world.clock)
    claim = Condition(type="plimsoll.dev/Draining", status="True", reason="Empty", message="no pod needs it")
    subject = Subject.read(world.do(world.client.get_raw(Node, "n")))
    assert isinstance(world.do(writer.write(Node, subject, [claim])), Told)
    conditions = {one["type"]: one for one in world.ask("GET", "/api/v1/nodes/n")["status"]["conditions"]}
    assert conditions["Ready"] == beat
    assert "observedGeneration" not in conditions["plimsoll.dev/Draining"]


def test_disruption_budgets_take_conditions_of_the_common_shape(desk: Desk):
    world, url = desk.world, "/apis/policy/v1/namespaces/here/poddisruptionbudgets"
    world.made(url, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {}}})
    writer = ConditionsWriter(world.client, owned=["Watched"], field_manager="us", clock=world.clock)
    subject = Subject.read(world.do(world.client.get_raw(PodDisruptionBudget, "b", namespace="here")))
    claim = Condition(type="Watched", status="True", reason="Seen")
    assert isinstance(world.do(writer.write(PodDisruptionBudget, subject, [claim])), Told)
    (condition,) = world.ask("GET", f"{url}/b")["status"]["conditions"]
    assert (condition["type"], condition["observedGeneration"]) == ("Watched", 1)


def test_an_odd_condition_of_somebody_else_does_not_stop_ours():
    odd = b'{"status": {"conditions": [7, {"type": "Odd", "status": 3}, {"type": "Ready", "status": "True"}]}}'
    assert Subject.read(odd).conditions == (Condition(type="Ready", status="True"),)


# ---- crashes and lost answers


async def _judge(desk: Desk, writer: ConditionsWriter) -> None:
    """As a controller: from what the server says, until nothing is left to tell."""
    for _ in range(10):
        try:
            if await writer.write(WIDGET_RESOURCE, await desk._subject(), [ready(), SCALING]) == Unchanged():
                return
        except AnswerLost:
            await desk.world.clock.sleep(60)
    raise AssertionError("it never ended")


@pytest.mark.parametrize("make_fault", [CrashAfter, lambda n: LoseAnswers(n, error=lambda: AnswerLost("lost"))])
def test_a_crash_or_a_lost_answer_at_any_call_leaves_it_told_once(make_fault: Any):
    for n in itertools.count(1):
        desk = Desk()
        with desk.world:
            fault = make_fault(n)
            try:
                desk.world.do(_judge(desk, desk.new_writer(fault)))
            except Crashed:
                desk.world.run.advance_by(60)
                desk.world.do(_judge(desk, desk.new_writer()))
            assert set(desk.conditions) == {"Ready", "Scaling"}
            assert desk.conditions["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
            assert desk.writes == 1
        if fault.struck is None:
            break
    assert n > 1
