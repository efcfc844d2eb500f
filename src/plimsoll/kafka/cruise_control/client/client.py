"""The client of one Cruise Control: the requests of docs/design/kafka.md 7.3 to 7.8, in Strimzi's order of parameters.

Nothing is sent twice: a second request for an execution could start a second execution. One question is asked in two
ways: a Cruise Control on Java 17 cannot show the answer of a task that failed, and then only its status is asked for.
"""

from __future__ import annotations

from base64 import b64encode
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

from plimsoll.kafka.cruise_control.client import answers
from plimsoll.kafka.model.rebalances import NoSuchTask, ServerBusy
from plimsoll.kafka.model.requests import Mode
from plimsoll.web.client import Request, Response

if TYPE_CHECKING:
    import ssl

    from plimsoll.kafka.model.rebalances import (
        ExecutorSubstate,
        RebalanceAnswer,
        RebalanceRefused,
        RebalanceSpec,
        RebalanceTaskAnswer,
    )
    from plimsoll.web.client import HttpClient, RequestFailed

CONNECT_TIMEOUT_S: Final = 5.0
TIMEOUT_S: Final = 30.0
MAX_RESPONSE_BYTES: Final = 64 * 1024 * 1024
"""A verbose answer has a line per moved partition: this is half a million of them."""
_ENDPOINTS: Final = {
    Mode.FULL: "rebalance",
    Mode.ADD_BROKERS: "add_broker",
    Mode.REMOVE_BROKERS: "remove_broker",
    Mode.REMOVE_DISKS: "remove_disks",
}

Query = list[tuple[str, str]]


class CruiseControlClient:
    """A Cruise Control at a base URL such as `https://c-cruise-control.ns.svc:9090/kafkacruisecontrol`."""

    def __init__(
        self, base: str, *, web: HttpClient, tls: ssl.SSLContext | None = None, user: str = "", password: str = ""
    ) -> None:
        self._base = base
        self._web = web
        self._tls = tls
        self._headers = _build_headers(user, password)

    async def request_rebalance(self, spec: RebalanceSpec, *, is_dry_run: bool) -> RebalanceAnswer:
        query = build_query(spec, is_dry_run=is_dry_run)
        answer = await self._send("POST", _ENDPOINTS[spec.mode], query, is_query=is_dry_run)
        return answers.read_rebalance_answer(answer, brokers=spec.brokers if _has_brokers(spec) else ())

    async def read_user_task(self, session_id: str) -> RebalanceTaskAnswer:
        if not answers.is_session_id(session_id):
            return NoSuchTask()
        query = [("json", "true"), ("user_task_ids", session_id)]
        answer = await self._send("GET", "user_tasks", [*query, ("fetch_completed_task", "true")])
        found = answers.read_task_answer(answer, session_id)
        is_error = isinstance(answer, Response) and answer.status == HTTPStatus.INTERNAL_SERVER_ERROR
        if is_error and not isinstance(found, ServerBusy):
            return answers.read_task_answer(await self._send("GET", "user_tasks", query), session_id)
        return found

    async def find_execution(self, spec: RebalanceSpec) -> RebalanceTaskAnswer:
        """The newest real run with exactly this request."""
        answer = await self._send("GET", "user_tasks", [("json", "true")])
        return answers.find_task(answer, _ENDPOINTS[spec.mode], build_query(spec, is_dry_run=False))

    async def stop_execution(self) -> RebalanceRefused | None:
        return answers.read_stop_answer(await self._send("POST", "stop_proposal_execution", [("json", "true")]))

    async def read_executor_state(self) -> ExecutorSubstate | RebalanceRefused:
        query = [("json", "true"), ("substates", "executor")]
        return answers.read_state_answer(await self._send("GET", "state", query))

    async def list_known_brokers(self) -> frozenset[int] | RebalanceRefused:
        """The brokers that Cruise Control knows with their capacity."""
        return answers.read_load_answer(await self._send("GET", "load", [("json", "true")]))

    async def _send(
        self, method: Literal["GET", "POST"], endpoint: str, query: Query, *, is_query: bool = False
    ) -> Response | RequestFailed:
        return await self._web.send(
            Request(
                method=method,
                url=f"{self._base}/{endpoint}?{_encode_query(query)}",
                tls=self._tls,
                timeout_s=TIMEOUT_S,
                connect_timeout_s=CONNECT_TIMEOUT_S,
                is_query=is_query,
                headers=self._headers,
            )
        )


def build_query(spec: RebalanceSpec, *, is_dry_run: bool) -> Query:
    """The parameters of a request, in order. A value of zero means the server's default and is left out."""
    common = [("json", "true"), ("dryrun", _write_flag(is_dry_run)), ("verbose", "true")]
    if spec.mode is Mode.REMOVE_DISKS:
        return [*common, ("brokerid_and_logdirs", ",".join(_list_log_dirs(spec)))]
    optional = [
        ("excluded_topics", spec.excluded_topics),
        ("replica_movement_strategies", ",".join(spec.replica_movement_strategies)),
        ("concurrent_partition_movements_per_broker", _write_number(spec.concurrent_partition_movements_per_broker)),
        ("concurrent_leader_movements", _write_number(spec.concurrent_leader_movements)),
        ("replication_throttle", _write_number(spec.replication_throttle)),
        ("goals", ",".join(spec.goals)),
    ]
    if _has_brokers(spec):
        last = [("brokerid", ",".join(str(broker) for broker in spec.brokers))]
    else:
        movements = _write_number(spec.concurrent_intra_broker_partition_movements)
        last = [
            ("rebalance_disk", _write_flag(spec.rebalance_disk)),
            ("concurrent_intra_broker_partition_movements", movements),
        ]
    skip = ("skip_hard_goal_check", _write_flag(spec.skip_hard_goal_check))
    return [(name, value) for name, value in (*common, skip, *optional, *last) if value]


def _has_brokers(spec: RebalanceSpec) -> bool:
    return spec.mode in {Mode.ADD_BROKERS, Mode.REMOVE_BROKERS}


def _list_log_dirs(spec: RebalanceSpec) -> list[str]:
    """The log directories of JBOD volumes, where Strimzi's images mount them."""
    return [
        f"{entry.broker}-/var/lib/kafka/data-{volume}/kafka-log{entry.broker}"
        for entry in spec.move_replicas_off_volumes
        for volume in entry.volumes
    ]


def _write_flag(flag: bool) -> str:
    return "true" if flag else "false"


def _write_number(number: int) -> str:
    return str(number) if number else ""


def _encode_query(query: Query) -> str:
    # Commas separate values, and Cruise Control reads them as they are.
    return "&".join(f"{name}={quote(value, safe=',')}" for name, value in query)


def _build_headers(user: str, password: str) -> dict[str, str]:
    if not user:
        return {}
    return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}
