"""The REST API as a Starlette app: HTTP on one side, the table of routes and the handlers on the other.

Around the handlers the rules of Connect's web server hold, in its order: path (404), method (405), caller (401), media
types (415, 406). A body is read only when its caller is known. Handlers block, so each runs on a thread; one that takes
longer than its row allows is answered for and left to itself. What a caller may do is decided by the worker that
answers, so a request that is passed on is judged by the leader.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from heliograph.api.body_reader import BodyReader
from heliograph.api.door import Arrival, Door
from heliograph.api.errors import (
    NO_SUCH_METHOD,
    NO_SUCH_PATH,
    NOT_ACCEPTABLE,
    READ_ONLY,
    TOO_LARGE,
    TOO_MANY_BODIES,
    TOO_SLOW,
    UNAUTHORIZED,
    UNSUPPORTED_MEDIA_TYPE,
    answer_of,
)
from heliograph.api.exchange import JSON_TYPE, TEXT_TYPE, Answer, Call, Worker
from heliograph.api.forwarding import FORWARD, Forwarded, forward, once
from heliograph.api.guard import Access
from heliograph.api.protocol import CERTIFICATE
from heliograph.api.routes import ROUTES, Endpoint
from heliograph.worker.connect_errors import REBALANCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from heliograph.api.guard import Caller

_log = logging.getLogger(__name__)
_MOST_THREADS = 32
_MOST_LOCAL_THREADS = 8
_ACCEPTED = {JSON_TYPE, "application/*", "*/*"}
# Told before the body was read: the rest of it is not waited for.
_CLOSING = {row.status for row in (UNAUTHORIZED, TOO_SLOW, TOO_LARGE, TOO_MANY_BODIES)}


def make_app(
    worker: Worker, door: Door | None = None, *, read_only: bool = False, routes: Iterable[Endpoint] = ROUTES
) -> ASGIApp:
    """The app; without a door everyone may do everything; `read_only` where a file defines the connectors."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in routes:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    desk = _Desk(worker, door or Door(), read_only=read_only)
    app = Starlette(
        routes=[Route(path, _Resource(desk, methods)) for path, methods in by_path.items()],
        exception_handlers={404: _no_such_path},
    )
    app.router.redirect_slashes = False
    return _without_trailing_slash(app)


async def _no_such_path(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return _response(request, answer_of(NO_SUCH_PATH.error()))


def _without_trailing_slash(app: ASGIApp) -> ASGIApp:
    """To Connect `/connectors/` is `/connectors`."""

    async def trimmed(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(scope["path"]) > 1:
            scope = {**scope, "path": scope["path"].removesuffix("/")}
        await app(scope, receive, send)

    return trimmed


class _Resource:
    """One path with its methods, as an ASGI app."""

    def __init__(self, desk: _Desk, methods: dict[str, Endpoint]) -> None:
        self._desk = desk
        self._methods = {**methods, "HEAD": methods["GET"]} if "GET" in methods else methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  (whatever fails, the client gets an answer)
            answer = answer_of(error)
        response = _response(request, answer)
        if answer.status == UNAUTHORIZED.status and self._desk.door.challenge is not None:
            response.headers["www-authenticate"] = self._desk.door.challenge
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Answer:
        if request.method == "OPTIONS":
            self._desk.enter(Access.BE_KNOWN, request)
            allowed = ", ".join(sorted({*self._methods, "OPTIONS"}))
            return Answer(200, allowed.encode(), TEXT_TYPE)
        endpoint = self._methods.get(request.method)
        if endpoint is None:
            raise NO_SUCH_METHOD.error()
        caller = self._desk.enter(endpoint.access, request)
        async with self._desk.bodies.body_of(request) as body:
            caller.check_body(body)
            _check_media_types(request, body)
            return await self._desk.serve(endpoint, request, body, caller)


class _Desk:
    """Has each request done on a thread, here or at the leader. Local ones do not wait for the others' threads."""

    def __init__(self, worker: Worker, door: Door, *, read_only: bool) -> None:
        self._worker = worker
        self._read_only = read_only
        self.door = door
        self.bodies = BodyReader()
        self._threads = anyio.CapacityLimiter(_MOST_THREADS)
        self._local_threads = anyio.CapacityLimiter(_MOST_LOCAL_THREADS)

    def enter(self, access: Access, request: Request) -> Caller:
        """Who calls; raises the refusal of who is not let in."""
        certificate = request.scope.get("state", {}).get(CERTIFICATE)
        arrival = Arrival(request.method, _target(request), request.headers, certificate)
        return self.door.enter(access, arrival, self._worker.herder)

    async def serve(self, endpoint: Endpoint, request: Request, body: bytes, caller: Caller) -> Answer:
        """The answer, or after the endpoint's time the one it has for that; the thread is then left to itself."""
        if self._read_only and endpoint.is_change:
            raise READ_ONLY.error()
        threads = self._local_threads if endpoint.is_local else self._threads
        with anyio.move_on_after(endpoint.timeout_s):
            return await anyio.to_thread.run_sync(
                self._handle, endpoint, request, body, caller, abandon_on_cancel=True, limiter=threads
            )
        return endpoint.on_timeout()

    def _handle(self, endpoint: Endpoint, request: Request, body: bytes, caller: Caller) -> Answer:
        leader_url = None if endpoint.is_local else self._worker.herder.leader_url
        if leader_url is None:
            caller.admit(endpoint.access, request.path_params)
            if endpoint.is_change and caller.principal is not None:
                _log.info(
                    "REST, %s: %s %s", caller.principal, request.method, request.scope["raw_path"].decode("latin-1")
                )
            query = {name: request.query_params.getlist(name) for name in request.query_params}
            return endpoint.handler(Call(caller.view(self._worker), request.path_params, query, body))
        if request.query_params.get(FORWARD) == "false":
            raise REBALANCE.error()
        arrival = Arrival(endpoint.method, once(_target(request)), request.headers)
        told = self.door.pass_on(caller, arrival, body, self._worker.herder)
        sent = Forwarded(arrival.method, arrival.target, request.headers, body, told)
        return forward(leader_url, sent, endpoint.timeout_s, self.door.forwarding_tls)


def _target(request: Request) -> str:
    """Path and query, as they came."""
    path, query = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _check_media_types(request: Request, body: bytes) -> None:
    sent = request.headers.get("content-type")
    if (sent is not None or body) and _media_type(sent or "") != JSON_TYPE:
        raise UNSUPPORTED_MEDIA_TYPE.error()
    accepted = request.headers.get("accept", "*/*")
    if not any(_media_type(part) in _ACCEPTED for part in accepted.split(",")):
        raise NOT_ACCEPTABLE.error()


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def _response(request: Request, answer: Answer) -> Response:
    headers = {"connection": "close"} if answer.status in _CLOSING else {}
    if answer.content_type == TEXT_TYPE:
        headers["allow"] = answer.body.decode().replace(" ", "")
    if answer.location is not None:
        headers["location"] = f"{request.url.scheme}://{request.url.netloc}{answer.location}"
    content_type = answer.content_type if answer.body else None
    return Response(answer.body, answer.status, headers, media_type=content_type)
