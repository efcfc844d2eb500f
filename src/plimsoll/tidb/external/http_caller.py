"""Calls to external services over sockets: `external.Caller` for the live controller.

The URL that is opened holds the address that was judged, so no resolver is asked a second time; the host goes into the
`Host` header and is what a certificate must be for. No proxy, no cookies, no redirects, no compressed bodies.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from plimsoll import __version__
from plimsoll.tidb.external.recommender import LARGEST_ANSWER_BYTES
from plimsoll.web.client import RequestFailed, read_whole, reason_of

if TYPE_CHECKING:
    import ssl

    from plimsoll.tidb.external.recommender import Place
    from plimsoll.web.client import Response


class HttpCaller:
    """A connection for every call: they are rare, and each has its own trust."""

    async def resolve(self, host: str, port: int) -> tuple[str, ...] | RequestFailed:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return RequestFailed(problem=f"{host} cannot be resolved: {reason}")
        addresses = tuple(dict.fromkeys(str(place[0]) for *_, place in found))
        return addresses or RequestFailed(problem=f"{host} has no address")

    async def get(self, place: Place, *, tls: ssl.SSLContext | None) -> Response | RequestFailed:
        named = URL(place.url, encoded=True)
        try:
            async with aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"plimsoll/{__version__}", "Accept": "application/json"},
                skip_auto_headers=("Accept-Encoding",),
                auto_decompress=False,
            ) as session:
                return await _exchange(session, place, named, tls=tls)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return RequestFailed(problem=f"cannot reach {place.host}: {reason_of(error)}")


async def _exchange(
    session: aiohttp.ClientSession, place: Place, named: URL, *, tls: ssl.SSLContext | None
) -> Response | RequestFailed:
    opened = session.get(
        named.with_host(place.address),
        headers={"Host": named.raw_authority},
        allow_redirects=False,
        ssl=tls or True,
        server_hostname=place.host if tls else None,
    )
    async with opened as response:
        return await read_whole(response, whose=place.host, limit=LARGEST_ANSWER_BYTES)
