"""Connections to all brokers of a cluster, by kafka-python, for an asyncio program.

kafka-python runs its sockets in one thread per client. Requests are given to that thread and answers come back to the
loop, so that requests to several brokers run at the same time and the loop never waits. Requests are Kafka's own
messages: kafka-python's higher functions hide the messages of errors, and ask brokers one after the other.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from plimsoll.kafka.brokers.ports import WRONG_PASSWORD, KafkaRefused, KafkaUnavailable
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from plimsoll.kafka.brokers.connection_settings import ConnectionSettings

T = TypeVar("T")

_RETRY_S: Final = 0.05
_BACKOFF_MAX_MS: Final = 1000
"""A broker that is back is seen within this time."""
_CONNECTION_ATTEMPTS: Final = 2
"""To one broker: the first may be a connection that the broker closed long ago."""
_BROKERS_TO_ASK: Final = 3
_MARGIN_S: Final = 5.0
_LEAST_MS: Final = 100.0
_LONGEST_PROBLEM: Final = 1000
_MEASURED_TIME: Final = re.compile(r" after \d+(\.\d+)? ?ms\b")
_STOP_MS: Final = 2000
_IN_FLIGHT: Final = 10_000
"""kafka-python refuses further requests to a broker instead of letting them wait."""
_KAFKAS_NAMES: Final = {
    -1: "UNKNOWN_SERVER_ERROR",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    39: "INVALID_REPLICA_ASSIGNMENT",
}
"""The errors that kafka-python names otherwise."""
_LARGEST_ANSWER_BYTES: Final = 1 << 30


class _Client(NamedTuple):
    """kafka-python's loop and its connections."""

    net: Any
    manager: Any


class Connection:
    """The connections to one cluster. It connects with the first request."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._client: _Client | None = None
        self._node: int | None = None
        """The broker that answers requests to any broker."""
        self._opening: asyncio.Task[_Client] | None = None

    async def send(self, request: Callable[[], Any], convert: Callable[[Any], T], *, broker: int | None = None) -> T:
        """Send a request to a broker, or to any, and convert the answer in the thread of the sockets.

        `request` builds the message anew for each attempt, because kafka-python writes the version of the protocol
        into it. Raises `KafkaUnavailable` and `KafkaRefused`.
        """
        client = await self._connect()
        from kafka.errors import KafkaError  # noqa: PLC0415 - heavy

        async def exchange() -> T:
            return convert(await self._exchange(client, request, broker))

        try:
            # The exchange has its own limit; this one is for a thread of the library that died or hangs.
            async with asyncio.timeout(self._settings.request_timeout_s + _MARGIN_S):
                return await _run_in(client, exchange)
        except (KafkaError, OSError, ValueError, RuntimeError) as error:
            found = _make_error(error, self._settings, where="the cluster" if broker is None else f"broker {broker}")
            if broker is None or (isinstance(found, KafkaRefused) and found.code == WRONG_PASSWORD):
                # The brokers may be elsewhere now, or the password changed: the next request begins anew.
                await self._drop(client)
            raise found from None

    async def close(self) -> None:
        """Close all connections and end the thread."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._client is not None:
            await self._drop(self._client)

    async def _drop(self, client: _Client) -> None:
        """Close a client, unless another request did so already."""
        if self._client is client:
            self._client = self._node = None
            await asyncio.to_thread(_close, client)

    async def _connect(self) -> _Client:
        """The client. Requests that come while it connects share the attempt and its failure."""
        if self._client is not None:
            return self._client
        if self._opening is None:
            self._opening = asyncio.create_task(self._open_once())
            self._opening.add_done_callback(_retrieve)
        return await asyncio.shield(self._opening)

    async def _open_once(self) -> _Client:
        try:
            self._client = await asyncio.to_thread(self._open)
        finally:
            self._opening = None
        return self._client

    def _open(self) -> _Client:
        """Connect, in a thread that may wait."""
        from kafka.errors import KafkaError  # noqa: PLC0415 - heavy

        # The library logs every attempt, and requests with their content. Whatever matters comes back as an error.
        logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
        client = _make_client(self._settings)
        try:
            _await_server(self._settings, client.manager, until=time.monotonic() + self._settings.connect_timeout_s)
            client.manager.bootstrap(timeout_ms=self._settings.connect_timeout_s * 1000)
        except KafkaError as error:
            _close(client)
            raise _make_error(error, self._settings, where=", ".join(self._settings.bootstrap)) from None
        except BaseException:  # The error is passed on; the socket thread must not stay behind it.
            _close(client)
            raise
        return client

    async def _exchange(self, client: _Client, request: Callable[[], Any], broker: int | None) -> Any:
        """Send until an answer comes, the time is over, or the one broker refuses connections. In the socket thread."""
        from kafka import errors  # noqa: PLC0415 - heavy

        manager = client.manager
        until = time.monotonic() + self._settings.request_timeout_s
        failures = 0
        silent: set[int | None] = set()
        while True:
            node = broker if broker is not None else self._choose_node(manager, silent)
            left_ms = max(1.0, (until - time.monotonic()) * 1000)
            if broker is None and not silent:
                left_ms /= _BROKERS_TO_ASK  # A broker that hangs must leave time to ask another.
            try:
                return await manager.send(request(), node_id=node, request_timeout_ms=left_ms)
            except errors.UnknownBrokerIdError:
                # The broker registered after the last look at the cluster, or it is gone.
                failures += 1
                if failures >= _CONNECTION_ATTEMPTS:
                    raise
                await manager.cluster.refresh_metadata()
            except (errors.RequestTimedOutError, errors.KafkaTimeoutError):
                silent.add(node)
                if broker is not None or time.monotonic() + _RETRY_S >= until:
                    raise
            except errors.KafkaConnectionError:
                failures += 1
                if broker is not None and failures >= _CONNECTION_ATTEMPTS:
                    raise
                if time.monotonic() + _RETRY_S >= until:
                    raise
            except errors.NodeNotReadyError:
                if time.monotonic() + _RETRY_S >= until:
                    raise
            self._node = None
            await client.net.sleep(_RETRY_S)

    def _choose_node(self, manager: Any, silent: set[int | None]) -> int | None:
        """The broker of the last request, while it answers: its view of the cluster only goes forward.

        Brokers follow the metadata log at their own pace. With another broker for each request, a read could miss what
        the read before it saw.
        """
        if self._node is None or self._node in silent or manager.cluster.broker_metadata(self._node) is None:
            chosen = manager.least_loaded_node()
            if chosen in silent:
                others = {node.node_id for node in manager.cluster.brokers()} - silent
                chosen = min(others, key=manager.connection_delay, default=chosen)
            self._node = chosen
        return self._node


def _retrieve(task: asyncio.Task[_Client]) -> None:
    """Look at the failure of an attempt: all that waited for it may be gone."""
    if not task.cancelled():
        task.exception()


def get_error_name(code: int) -> str:
    """Kafka's own name of an error code, such as NO_REASSIGNMENT_IN_PROGRESS."""
    from kafka.errors import for_code  # noqa: PLC0415 - heavy

    name = _KAFKAS_NAMES.get(code) or getattr(for_code(code), "message", "")
    return name if isinstance(name, str) and name and name != "UNKNOWN" else f"ERROR_{code}"


def raise_refusal(code: int, message: str | None) -> None:
    """Raise the error of a whole answer, if it has one."""
    from kafka.errors import RetriableError, for_code  # noqa: PLC0415 - heavy

    if code == 0:
        return
    name = get_error_name(code)
    problem = f"{name}: {message}" if message else name
    if issubclass(for_code(code), RetriableError):
        raise KafkaUnavailable(problem)
    raise KafkaRefused(problem, code=name)


async def _run_in(client: _Client, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine of kafka-python's own loop, and wait for it in ours."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def settle(setter: Callable[[Any], None], value: Any) -> None:
        if not result.done():
            setter(value)

    def deliver(setter: Callable[[Any], None], value: Any) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, setter, value)

    waiting = client.manager.call_soon(work)
    waiting.add_callback(lambda value: deliver(result.set_result, value))
    waiting.add_errback(lambda error: deliver(result.set_exception, _as_exception(error)))
    return await result


def _as_exception(error: BaseException) -> Exception:
    """The library ends its coroutines with GeneratorExit when it closes."""
    return error if isinstance(error, Exception) else KafkaUnavailable("the connection was closed")


def _make_client(settings: ConnectionSettings) -> _Client:
    from kafka.net.manager import KafkaConnectionManager  # noqa: PLC0415 - heavy
    from kafka.net.selector import NetworkSelector  # noqa: PLC0415 - heavy

    options: dict[str, Any] = {
        "bootstrap_servers": list(settings.bootstrap),
        "client_id": settings.client_id,
        "request_timeout_ms": settings.request_timeout_s * 1000,
        "socket_connection_setup_timeout_ms": settings.connect_timeout_s * 1000,
        "socket_connection_setup_timeout_max_ms": settings.connect_timeout_s * 1000,
        "reconnect_backoff_max_ms": _BACKOFF_MAX_MS,
        "max_in_flight_requests_per_connection": _IN_FLIGHT,
        "receive_message_max_bytes": _LARGEST_ANSWER_BYTES,
        "security_protocol": settings.security_protocol,
        "ssl_context": settings.ssl_context,
        "ssl_check_hostname": settings.ssl_check_hostname,
        "ssl_cafile": settings.ssl_cafile or None,
        "ssl_certfile": settings.ssl_certfile or None,
        "ssl_keyfile": settings.ssl_keyfile or None,
        "ssl_password": str(settings.ssl_password) or None,
        "sasl_mechanism": settings.sasl_mechanism or None,
        "sasl_plain_username": settings.sasl_username or None,
        "sasl_plain_password": settings.sasl_password or None,
        "sasl_kerberos_service_name": settings.sasl_kerberos_service_name,
    }
    net = NetworkSelector(client_id=settings.client_id)
    manager = KafkaConnectionManager(net, **options)
    net.start()
    return _Client(net, manager)


def _close(client: _Client) -> None:
    client.manager.call_soon(client.manager.close)
    client.net.stop(timeout_ms=_STOP_MS)
    client.net.close()


def _await_server(settings: ConnectionSettings, manager: Any, *, until: float) -> None:
    """Wait until a bootstrap server lets us in. The library would only log why none does."""
    while True:
        problems = []
        for number, server in enumerate(settings.bootstrap):
            problem = _try_server(settings, manager, number, until=until)
            if problem is None:
                return
            problems.append(f"{server}: {_hide_secrets(problem, settings)}")
        if time.monotonic() + _RETRY_S >= until:
            raise KafkaUnavailable(f"no broker answers: {'; '.join(problems)[:_LONGEST_PROBLEM]}")
        time.sleep(_RETRY_S)


def _try_server(settings: ConnectionSettings, manager: Any, number: int, *, until: float) -> str | None:
    """Why a bootstrap server does not let us in; None if it does. What a second attempt cannot mend raises."""
    from kafka import errors  # noqa: PLC0415 - heavy

    from plimsoll.kafka.brokers.tls_diagnosis import find_certificate_problem  # noqa: PLC0415 - heavy

    server, node = settings.bootstrap[number], f"bootstrap-{number}"
    held: list[Any] = []

    async def connect() -> None:
        manager.reset_backoff(node)
        left_ms = max(_LEAST_MS, (until - time.monotonic()) * 1000)
        held.append(manager.get_connection(node, timeout_ms=left_ms, refresh_metadata_on_err=False))
        await held[0]
        held[0].close()

    try:
        manager.run(connect)
    except (errors.SaslAuthenticationFailedError, errors.UnsupportedSaslMechanismError):
        raise
    except (errors.KafkaError, OSError, ValueError) as error:
        # A broker closes the connection with its refusal, and the library may see the end of it first.
        has_versions = bool(held) and held[0].broker_version_data is not None
        if settings.sasl_mechanism and has_versions and isinstance(error, errors.KafkaConnectionError):
            raise errors.SaslAuthenticationFailedError("the broker closed the connection") from None
        if settings.uses_tls:
            refusal = find_certificate_problem(server, settings, now=RealClock().now())
            if refusal is not None:
                raise refusal from None
        return str(error)
    return None


def _is_unavailable(error: BaseException) -> bool:
    from kafka import errors  # noqa: PLC0415 - heavy

    if isinstance(error, errors.SaslAuthenticationFailedError):
        return False
    return isinstance(error, (OSError, errors.RetriableError, errors.UnknownBrokerIdError))


def _make_error(error: BaseException, settings: ConnectionSettings, *, where: str) -> Exception:
    """The error of the port for one of the library, without secrets."""
    from kafka import errors  # noqa: PLC0415 - heavy

    problem = _hide_secrets(str(error) or type(error).__name__, settings)
    if isinstance(error, errors.UnknownBrokerIdError):
        return KafkaUnavailable(f"{where} is not registered, or fenced")
    if _is_unavailable(error):
        return KafkaUnavailable(f"{where} did not answer: {problem}")
    code = getattr(error, "message", "")
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        mechanism = f"the mechanism {settings.sasl_mechanism} is not enabled there"
        return KafkaRefused(f"{where} refused the login of user {settings.sasl_username}: {mechanism}", code=code)
    if isinstance(error, errors.SaslAuthenticationFailedError):
        login = f"the login of user {settings.sasl_username} with {settings.sasl_mechanism}"
        return KafkaRefused(f"{where} refused {login}, the user or the password is wrong: {problem}", code=code)
    return KafkaRefused(f"{where} refused the request: {problem}", code=code if isinstance(code, str) else "")


def _hide_secrets(text: str, settings: ConnectionSettings) -> str:
    """The text of the library without secrets, and without times that differ every time: reports are not repeated."""
    text = _MEASURED_TIME.sub("", text)
    for secret in settings.list_secrets():
        text = text.replace(secret, "***")
    return text
