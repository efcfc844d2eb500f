"""External services that size a group: the request, the address check and the validation of the answer.

The service is untrusted and at an address that a user chose. Its name is resolved once, every address is checked
(`web.address_guard`), and the call goes to a checked address. Redirects are not followed, and little is read. Failures
are expected, so they are values, and then nothing is scaled.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final, Protocol
from urllib.parse import quote, urlencode

import msgspec

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value, Wire
from plimsoll.kube.secret_tls import build_tls_context
from plimsoll.objects.api.tidb import ExternalEndpoint  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.objects.codec.decode_problems import describe_problem
from plimsoll.tidb.model.components import Component  # noqa: TC001 - as above
from plimsoll.web.address_guard import NO_EXCEPTIONS, AddressExceptions, find_refusal
from plimsoll.web.client import PinnedUrl, RequestFailed

if TYPE_CHECKING:
    import ssl

    from plimsoll.kube.secret_tls import SecretReader
    from plimsoll.web.client import Response

TIMEOUT_S: Final = 5.0
"""For everything, from name resolution to the last byte."""
LARGEST_ANSWER_BYTES: Final = 64 * 1024
_KEPT_IN_PATHS: Final = "/?&=%:@!$'()*+,;~"


class RecommendationRequest(Value):
    """A request for the size of a component's external group."""

    endpoint: ExternalEndpoint
    autoscaler_namespace: str
    namespace: str
    cluster: str
    component: Component

    @property
    def url(self) -> str:
        """The whole URL with its query; the path may have a query of its own."""
        endpoint = self.endpoint
        scheme = "https" if endpoint.tls_secret else "http"
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        expected = urlencode({"name": self.cluster, "namespace": self.namespace, "type": self.component.value})
        path = quote(endpoint.path.partition("#")[0], safe=_KEPT_IN_PATHS)
        return f"{scheme}://{host}:{endpoint.port}{path}{'&' if '?' in path else '?'}{expected}"


class RecommendationFailed(Value):
    """There is no recommendation. Nothing follows from it."""

    problem: str


class Caller(Protocol):
    """Calls external services: over sockets when live, in memory under virtual time."""

    async def resolve(self, host: str, port: int) -> tuple[str, ...] | RequestFailed:
        """All addresses of a host, at least one."""
        ...

    async def get(self, target: PinnedUrl, *, tls: ssl.SSLContext | None) -> Response | RequestFailed:
        """Redirects are not followed, and at most `LARGEST_ANSWER_BYTES` are read."""
        ...


async def request_recommendation(
    question: RecommendationRequest,
    *,
    caller: Caller,
    secrets: SecretReader,
    exceptions: AddressExceptions = NO_EXCEPTIONS,
) -> int | RecommendationFailed:
    """The recommended size of the external group, as the service gives it: `maxReplicas` is not applied."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            answer = await _call(question, caller=caller, secrets=secrets, exceptions=exceptions)
    except TimeoutError:
        return RecommendationFailed(problem=f"no answer from {question.endpoint.host} within {TIMEOUT_S:g} s")
    except PlimsollError as error:
        return RecommendationFailed(problem=str(error))
    if isinstance(answer, RequestFailed):
        return RecommendationFailed(problem=answer.problem)
    return _read(question, answer)


async def _call(
    question: RecommendationRequest, *, caller: Caller, secrets: SecretReader, exceptions: AddressExceptions
) -> Response | RequestFailed:
    endpoint = question.endpoint
    tls = await _build_tls_context(question, secrets)
    addresses = await caller.resolve(endpoint.host, endpoint.port)
    if isinstance(addresses, RequestFailed):
        return addresses
    # One forbidden address disqualifies the host: a name that resolves to both kinds is not an accident.
    for address in addresses:
        refused = find_refusal(endpoint.host, address, exceptions)
        if refused:
            return RequestFailed(problem=f"{endpoint.host} is not called: {refused}")
    return await caller.get(PinnedUrl(url=question.url, host=endpoint.host, address=addresses[0]), tls=tls)


# ---- the answer


class _Recommendation(Wire):
    name: str
    namespace: str
    type: str
    recommended_replicas: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]


def _read(question: RecommendationRequest, answer: Response) -> int | RecommendationFailed:
    host = question.endpoint.host
    if not answer.is_ok:
        return RecommendationFailed(problem=f"{host} answers {answer.status}: {answer.excerpt}")
    if len(answer.body) > LARGEST_ANSWER_BYTES:
        return RecommendationFailed(problem=f"{host} answers with more than {LARGEST_ANSWER_BYTES} bytes")
    try:
        read = msgspec.json.decode(answer.body, type=_Recommendation)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return RecommendationFailed(problem=f"the answer of {host} cannot be read: {describe_problem(error)}")
    expected = {"name": question.cluster, "namespace": question.namespace, "type": question.component.value}
    for field, wanted in expected.items():
        answered = getattr(read, field)
        if answered != wanted:
            return RecommendationFailed(problem=f"{host} answers about {field} {answered[:100]!r}, expected {wanted!r}")
    return read.recommended_replicas


# ---- TLS


async def _build_tls_context(question: RecommendationRequest, secrets: SecretReader) -> ssl.SSLContext | None:
    """The TLS context. Raises `PlimsollError`: no call is made with less security than the Secret should give."""
    named = question.endpoint.tls_secret
    if named is None:
        return None
    namespace = named.namespace or question.autoscaler_namespace
    return build_tls_context(await secrets.read(namespace, named.name), f"Secret {namespace}/{named.name}")
