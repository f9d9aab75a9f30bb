"""A request that only the leading worker can answer, passed on to it as it came, and its answer passed back.

A forwarded request says `forward=false`: a worker that is asked so and does not lead either refuses, so no request can
go in circles while the lead changes hands.

Any member of the workers' group can be the leader, so its answer is taken as data: JSON of a bounded length that comes
in the time of the endpoint, from an address that can be one.
"""

from __future__ import annotations

import http.client
import time
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from heliograph.connect.contract.refusals import CANNOT_FORWARD
from heliograph.web.exchange import JSON_TYPE, RestResponse

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


FORWARD = "forward"
_PASSED_HEADERS = ("accept", "content-type")
_MOST_ANSWER_BYTES = 256 << 20  # all connectors with their configs
_READ_BYTES = 64 << 10


class Forwarded(NamedTuple):
    """The request to send: `target` is its path with the query, `caller` the headers that say who asks."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    caller: Mapping[str, str]


def forward(leader_url: str, request: Forwarded, timeout_s: float, tls: ssl.SSLContext | None) -> RestResponse:
    """The leader's answer to the request."""
    headers = {name: request.headers[name] for name in _PASSED_HEADERS if name in request.headers}
    deadline = time.monotonic() + timeout_s
    try:
        with closing(_connection(leader_url, timeout_s, tls)) as connection:
            connection.request(request.method, request.target, request.body or None, {**headers, **request.caller})
            response = connection.getresponse()
            body = _body_of(response, deadline)
            location = response.getheader("location")
            return RestResponse(response.status, body, JSON_TYPE, urlsplit(location).path if location else None)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise CANNOT_FORWARD.error(reason=f"{leader_url} does not answer ({error})") from error


def _body_of(response: http.client.HTTPResponse, deadline: float) -> bytes:
    body = bytearray()
    while part := response.read1(_READ_BYTES):
        body += part
        if len(body) > _MOST_ANSWER_BYTES:
            raise ValueError(f"its answer is longer than {_MOST_ANSWER_BYTES} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError("timed out")
    if response.length:  # of what it said to be its length
        raise http.client.IncompleteRead(bytes(body), response.length)
    return bytes(body)


def _connection(leader_url: str, timeout_s: float, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    place = urlsplit(leader_url)
    host, port = place.hostname or "", place.port
    if place.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=tls)
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


def once(target: str) -> str:
    """The target of a request that must not be passed on any further."""
    return f"{target}{'&' if '?' in target else '?'}{FORWARD}=false"
