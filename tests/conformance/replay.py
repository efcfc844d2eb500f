"""Replays one recorded file against a fresh server and says, request by request, what differs.

    outcomes = replay("delete")         # {"delete-001": Outcome(...), …}

Requests go in their order, each after the set-up steps that belong before it; what our server answered is learnt, so
that later requests name our uids and resourceVersions. A difference never stops the replay.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.local.apiserver.bootstrap.objects import build_namespace_contents
from plimsoll.runtime.virtual_run import VirtualRun
from tests.conformance import setups
from tests.conformance.comparison import differences
from tests.conformance.exchanges import ClientRequests, Reply
from tests.conformance.recordings import RecordedExchange, by_id, golden
from tests.conformance.servers import ADMIN_TOKEN, CERTIFICATE, RECORDED_DAY, embedded_server
from tests.conformance.setups.steps import (
    CONTROLLERS,
    AdvanceTime,
    Compact,
    FillUp,
    IssueToken,
    Send,
    StatusAsRecorded,
    Step,
)
from tests.conformance.substitutions import Substitutions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_AGENT = "golden/1.0"


class Outcome(NamedTuple):
    """What became of one recorded request; equal if there are no differences."""

    recorded: RecordedExchange
    reply: Reply
    differences: Sequence[str]


@cache
def replay(group: str) -> dict[str, Outcome]:
    with VirtualRun(start=RECORDED_DAY) as run:
        replaying = Replay(run)
        return {recorded.id: replaying.answer(recorded) for recorded in golden(group)}


class Replay:
    """One server and the requests it received so far. No controller runs: set-ups write what the recorded ones did."""

    def __init__(self, run: VirtualRun) -> None:
        self.run = run
        self.server = run.run_until(embedded_server(run.clock))
        headers = {"User-Agent": _AGENT, "Accept": "application/json", "Authorization": f"Bearer {ADMIN_TOKEN}"}
        self.client = ClientRequests(run, self.server.transport, headers=headers)
        self.ours = Substitutions()
        self._tokens: dict[str, str] = {}

    def answer(self, recorded: RecordedExchange) -> Outcome:
        for step in self.steps_before(recorded):
            self.take(step)
        self._let_time_pass(recorded)
        task = self.client.start(
            recorded.method,
            self.ours.path(recorded.path),
            query=self.ours.query(recorded.query),
            headers=self._headers(recorded),
            body=self._body(recorded),
        )
        for step in setups.DURING.get(recorded.id, ()):
            self.run.advance_by(0.1)
            self.take(step)
        reply = self.run.run_until(task)
        self.ours.learn(recorded.response, reply.body if reply.events is None else reply.events)
        return Outcome(recorded, reply, differences(recorded, reply, self.ours))

    def steps_before(self, recorded: RecordedExchange) -> Sequence[Step]:
        return setups.BEFORE.get(recorded.id, ())

    def _let_time_pass(self, recorded: RecordedExchange) -> None:
        """Up to the moment of the recording: entries of managedFields stand in the order of their times."""
        times = [moment for moment in _written_at(recorded.response) if moment.date() == RECORDED_DAY.date()]
        if times and max(times) > self.run.clock.now():
            self.run.advance_to(max(times))

    def _headers(self, recorded: RecordedExchange) -> dict[str, str | None]:
        authorization: dict[str, str | None] = {}
        if recorded.auth.startswith("none"):
            authorization["Authorization"] = None
        elif recorded.auth.startswith("Bearer"):
            authorization["Authorization"] = "Bearer unknown"
        elif recorded.auth.startswith("serviceaccount"):
            authorization["Authorization"] = f"Bearer {self._tokens[recorded.auth.split()[1]]}"
        return {**recorded.headers, **authorization, **setups.HEADERS_AS_SENT.get(recorded.id, {})}

    def _body(self, recorded: RecordedExchange) -> Any:
        long = setups.LONG_BODIES.get(recorded.id)
        return long if long is not None else self.ours.body(recorded.body)

    # ---- what was not recorded

    def take(self, step: Step) -> None:
        match step:
            case Send():
                self._send(step)
            case StatusAsRecorded():
                self._write_status(step)
            case IssueToken():
                self._issue(step)
            case FillUp():
                self._fill_up(step)
            case Compact():
                self.server.store.compact(self.server.store.revision)
            case AdvanceTime():
                self.run.advance_by(step.seconds)

    def _send(self, step: Send) -> Reply:
        reply = self.client.send(
            step.method,
            self.ours.path(step.path),
            query=step.query,
            headers={"User-Agent": step.agent or None, "Content-Type": step.content_type},
            body=self.ours.body(self._with_owners(step.body)),
        )
        self._learn(step.stands_for, reply)
        if step.path == "/api/v1/namespaces" and reply.status == 201:
            self._fill_namespace(step.body["metadata"]["name"])
        return reply

    def _fill_namespace(self, name: str) -> None:
        """What the controllers of a real cluster put into a new namespace."""
        headers = {"User-Agent": CONTROLLERS, "Content-Type": "application/json"}
        for contents in build_namespace_contents(name, ca_certificate=CERTIFICATE):
            path = f"/api/v1/namespaces/{name}/{contents['kind'].lower()}s"
            self.client.send("POST", path, headers=headers, body=contents)

    def _learn(self, stands_for: dict[str, str], reply: Reply) -> None:
        metadata = reply.body.get("metadata", {}) if isinstance(reply.body, dict) else {}
        for key, value in stands_for.items():
            if key in metadata:
                self.ours.put(key, value, metadata[key])

    def _with_owners(self, body: Any) -> Any:
        """`<uid of /path>` stands for the uid of the object that is there now."""
        if isinstance(body, dict):
            return {name: self._with_owners(value) for name, value in body.items()}
        if isinstance(body, list):
            return [self._with_owners(value) for value in body]
        if isinstance(body, str) and body.startswith("<uid of "):
            owner = self.client.send("GET", body.removeprefix("<uid of ").removesuffix(">"))
            return owner.body.get("metadata", {}).get("uid", "") if isinstance(owner.body, dict) else ""
        return body

    def _write_status(self, step: StatusAsRecorded) -> None:
        recorded = by_id(step.id)
        path = self.ours.path(recorded.path).removesuffix("/status")
        status = _status_of(recorded, without=step.without)
        if recorded.response["kind"] == "Table":
            path, status = f"{path}/{recorded.response['rows'][0]['cells'][0]}", setups.STATUS_BEHIND_TABLES[step.id]
        current = self.client.send("GET", path).body
        if not isinstance(current, dict) or "metadata" not in current:
            return
        reply = self.client.send(
            "PUT",
            f"{path}/status",
            headers={"User-Agent": CONTROLLERS, "Content-Type": "application/json"},
            body={**current, "status": status},
        )
        self._learn(step.stands_for, reply)

    def _issue(self, step: IssueToken) -> None:
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        path = f"/api/v1/namespaces/{step.namespace}/serviceaccounts/{step.name}/token"
        reply = self.client.send("POST", path, headers={"Content-Type": "application/json"}, body=body)
        token = (reply.body or {}).get("status", {}).get("token", "")
        self._tokens[f"{step.namespace}/{step.name}"] = token
        self.ours.put_token(f"<jwt of {step.namespace}/{step.name}>", token)

    def _fill_up(self, step: FillUp) -> None:
        there = len((self.client.send("GET", step.listed).body or {}).get("items", ()))
        for number in range(there, step.total):
            body = {**step.template, "metadata": {"name": f"zz-{number}"}}
            self.client.send("POST", step.posted, headers={"Content-Type": "application/json"}, body=body)


def _written_at(value: Any, *, key: str = "") -> Iterator[datetime]:
    """The moments at which an answer says that something was written."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _written_at(item, key=name)
    elif isinstance(value, list):
        for item in value:
            yield from _written_at(item, key=key)
    elif key in {"creationTimestamp", "time"} and isinstance(value, str):
        yield datetime.fromisoformat(value)


def _status_of(recorded: RecordedExchange, *, without: Sequence[str]) -> dict[str, Any]:
    status = dict(recorded.response.get("status") or {})
    if without:
        status["conditions"] = [condition for condition in status["conditions"] if condition["type"] not in without]
    return status


def shown(outcome: Outcome) -> str:
    """For a failing test: the request, what was expected and what came."""
    recorded, _, found = outcome
    request = f"{recorded.method} {recorded.path} {recorded.query or ''}"
    return "\n".join((f"{recorded.id}: {recorded.title}", request, json.dumps(recorded.body)[:400], *found))
