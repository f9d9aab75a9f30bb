"""A request that only the leading worker can answer, passed on to it as it came, and its answer passed back.

A forwarded request says `forward=false`: a worker that is asked so and does not lead either refuses, so no request can
go in circles while the lead changes hands.
"""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from heliograph.api.exchange import JSON_TYPE, Answer
from heliograph.worker.connect_errors import CANNOT_FORWARD

if TYPE_CHECKING:
    from collections.abc import Mapping

FORWARD = "forward"
_PASSED_HEADERS = ("accept", "authorization", "content-type")


class Forwarded(NamedTuple):
    """The request as it came; `target` is its path with the query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


def forward(leader_url: str, request: Forwarded, timeout_s: float) -> Answer:
    """The leader's answer to the request."""
    place = urlsplit(leader_url)
    headers = {name: request.headers[name] for name in _PASSED_HEADERS if name in request.headers}
    connection = http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=timeout_s)
    try:
        connection.request(request.method, _once(request.target), request.body or None, headers)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise CANNOT_FORWARD.error(reason=f"{leader_url} does not answer ({error})") from error
    finally:
        connection.close()
    location = response.getheader("location")
    content_type = response.getheader("content-type") or JSON_TYPE
    return Answer(response.status, body, content_type, urlsplit(location).path if location else None)


def _once(target: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}{FORWARD}=false"
