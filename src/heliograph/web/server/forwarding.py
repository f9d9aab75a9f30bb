"""Forwards a request that only the leader can answer, as it was received, and returns the leader's response.

A forwarded request has `forward=false`: a worker that receives one and does not lead either refuses it, so that no
request is forwarded in circles while the leader changes.

Any member of the workers' group can be the leader, so its response is untrusted data: JSON of a bounded length, within
the time limit of the endpoint, from a valid address.
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
    """The request to send: `target` is its path with the query, `caller` the headers that identify the caller."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    caller: Mapping[str, str]


def forward(leader_url: str, request: Forwarded, timeout_s: float, tls: ssl.SSLContext | None) -> RestResponse:
    """Return the leader's response to the request."""
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
    if response.length:  # bytes that its Content-Length promised
        raise http.client.IncompleteRead(bytes(body), response.length)
    return bytes(body)


def _connection(leader_url: str, timeout_s: float, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    place = urlsplit(leader_url)
    host, port = place.hostname or "", place.port
    if place.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=tls)
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


def once(target: str) -> str:
    """Return the target of a request that must not be forwarded any further."""
    return f"{target}{'&' if '?' in target else '?'}{FORWARD}=false"
