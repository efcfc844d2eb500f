"""External services that size a group: who is asked, how, and which answers are believed.

The controller asks `recommended` where an autoscaler has `external` instead of rules. The service is a stranger at an
address that a user chose: its name is resolved once, every address is judged (`external_addresses`) and the call goes
to the one that was judged. Nothing is followed and little is read. That it fails is expected, so it is a value, and
then nothing is scaled.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final, Protocol
from urllib.parse import quote, urlencode

import msgspec

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value, Wire
from plimsoll.kube.secret_tls import context_from
from plimsoll.objects.api.tidb import ExternalEndpoint  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.objects.codec.decode_problems import problem_of
from plimsoll.tidb.model.components import Component  # noqa: TC001 - as above
from plimsoll.web.address_guard import NO_EXCEPTIONS, AddressExceptions, find_refusal
from plimsoll.web.client import PinnedUrl, RequestFailed

if TYPE_CHECKING:
    import ssl

    from plimsoll.kube.secret_tls import Secrets
    from plimsoll.web.client import Response

TIMEOUT_S: Final = 5.0
"""For everything, from the name to the last byte."""
LARGEST_ANSWER_BYTES: Final = 64 * 1024
_KEPT_IN_PATHS: Final = "/?&=%:@!$'()*+,;~"


class ExternalQuestion(Value):
    """How many instances should the external group of a component have? `home` is the namespace of the autoscaler."""

    endpoint: ExternalEndpoint
    home: str
    namespace: str
    cluster: str
    component: Component

    @property
    def url(self) -> str:
        """Whole, with what is asked; the path may have a query of its own."""
        endpoint = self.endpoint
        scheme = "https" if endpoint.tls_secret else "http"
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        asked = urlencode({"name": self.cluster, "namespace": self.namespace, "type": self.component.value})
        path = quote(endpoint.path.partition("#")[0], safe=_KEPT_IN_PATHS)
        return f"{scheme}://{host}:{endpoint.port}{path}{'&' if '?' in path else '?'}{asked}"


class ExternalFailed(Value):
    """Nothing follows from it."""

    problem: str


class Caller(Protocol):
    """Carries questions to strangers: `PinnedHttpClient` when live, a function in memory under virtual time."""

    async def resolve(self, host: str, port: int) -> tuple[str, ...] | RequestFailed:
        """All addresses of a host; there is at least one."""
        ...

    async def get(self, pinned: PinnedUrl, *, tls: ssl.SSLContext | None) -> Response | RequestFailed:
        """Redirects are not followed, and at most `LARGEST_ANSWER_BYTES` are read."""
        ...


async def recommended(
    question: ExternalQuestion, *, caller: Caller, secrets: Secrets, exceptions: AddressExceptions = NO_EXCEPTIONS
) -> int | ExternalFailed:
    """The size that the service recommends for the external group, as it says it: `maxReplicas` is not applied."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            answer = await _asked(question, caller=caller, secrets=secrets, exceptions=exceptions)
    except TimeoutError:
        return ExternalFailed(problem=f"no answer from {question.endpoint.host} within {TIMEOUT_S:g} s")
    except PlimsollError as error:
        return ExternalFailed(problem=str(error))
    if isinstance(answer, RequestFailed):
        return ExternalFailed(problem=answer.problem)
    return _read(question, answer)


async def _asked(
    question: ExternalQuestion, *, caller: Caller, secrets: Secrets, exceptions: AddressExceptions
) -> Response | RequestFailed:
    endpoint = question.endpoint
    tls = await _tls(question, secrets)
    addresses = await caller.resolve(endpoint.host, endpoint.port)
    if isinstance(addresses, RequestFailed):
        return addresses
    # One bad address spoils the host: a name that resolves to both is not an honest mistake.
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


def _read(question: ExternalQuestion, answer: Response) -> int | ExternalFailed:
    host = question.endpoint.host
    if not answer.is_ok:
        return ExternalFailed(problem=f"{host} answers {answer.status}: {answer.excerpt}")
    if len(answer.body) > LARGEST_ANSWER_BYTES:
        return ExternalFailed(problem=f"{host} answers with more than {LARGEST_ANSWER_BYTES} bytes")
    try:
        read = msgspec.json.decode(answer.body, type=_Recommendation)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return ExternalFailed(problem=f"the answer of {host} cannot be read: {problem_of(error)}")
    asked = {"name": question.cluster, "namespace": question.namespace, "type": question.component.value}
    for field, wanted in asked.items():
        told = getattr(read, field)
        if told != wanted:
            return ExternalFailed(problem=f"{host} answers about {field} {told[:100]!r}, asked was {wanted!r}")
    return read.recommended_replicas


# ---- TLS


async def _tls(question: ExternalQuestion, secrets: Secrets) -> ssl.SSLContext | None:
    """Raises `PlimsollError`: no call is made with less than what the Secret should have given."""
    named = question.endpoint.tls_secret
    if named is None:
        return None
    namespace = named.namespace or question.home
    return context_from(await secrets.data(namespace, named.name), f"Secret {namespace}/{named.name}")
