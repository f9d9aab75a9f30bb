"""The REST API as a Starlette app: HTTP on one side, the table of routes and the handlers on the other.

Around the handlers the rules of Connect's web server hold, in its order: host and origin (403), path (404), method
(405), caller (401), media types (415, 406). A body is read only when nothing else is left to refuse. Handlers block, so
each runs on a thread; one that takes longer than its row allows is answered for, and keeps its thread until it ends.
What a caller may do is decided by the worker that answers, so a request that is passed on is judged by the leader.


Reads bodies within bounds: of one body's size and time, and of the memory that all of them take at once.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import h11
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from heliograph.config.secrets.known_secrets import PUBLIC_RECORD
from heliograph.connect.contract.refusals import REBALANCE
from heliograph.errors import ConnectError
from heliograph.web.access.allowed_hosts import ListenerAddress
from heliograph.web.access.authenticator import Arrival, Authenticator
from heliograph.web.access.guard import Access
from heliograph.web.endpoints.request_bodies import texts_of
from heliograph.web.endpoints.routes import ROUTES, Endpoint
from heliograph.web.error_responses import (
    INTERNAL_ONLY,
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
from heliograph.web.exchange import JSON_TYPE, TEXT_TYPE, Call, RestResponse, Worker
from heliograph.web.server.forwarding import FORWARD, Forwarded, forward, once
from heliograph.web.server.rest_server import CERTIFICATE, LET_IN, PLACE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from contextlib import AbstractAsyncContextManager

    from starlette.types import ASGIApp, Receive, Scope, Send

    from heliograph.web.access.allowed_hosts import Hosts
    from heliograph.web.access.guard import RestCaller


LARGEST_BODIES_BYTES = 16 << 20
LARGEST_UNNAMED_BODIES_BYTES = 4 << 20
BODY_TIMEOUT_S = 30.0
_MOST_DIGITS = 12


def has_body(request: Request) -> bool:
    """Whether a body comes, or may come, with a request."""
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


class BodyReader:
    """Reads the bodies of one app's requests; used on its event loop alone.

    Callers with names have a budget of their own, so that those without, where both are let in, cannot take it.
    """

    def __init__(self) -> None:
        self._held_bytes = {True: 0, False: 0}

    @asynccontextmanager
    async def body_of(self, request: Request, largest_bytes: int, *, is_named: bool) -> AsyncIterator[bytes]:
        """The whole body, for as long as the block lasts; refused where it is too large, too slow, or one too many."""
        length = request.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > _MOST_DIGITS or int(length) > largest_bytes):
            raise TOO_LARGE.error()
        most_bytes = LARGEST_BODIES_BYTES if is_named else LARGEST_UNNAMED_BODIES_BYTES
        body = bytearray()
        try:
            with anyio.move_on_after(BODY_TIMEOUT_S) as time_limit:
                async for chunk in request.stream():
                    self._held_bytes[is_named] += len(chunk)
                    body += chunk
                    if len(body) > largest_bytes:
                        raise TOO_LARGE.error()
                    if self._held_bytes[is_named] > most_bytes:
                        raise TOO_MANY_BODIES.error()
            if time_limit.cancelled_caught:
                raise TOO_SLOW.error()
            yield bytes(body)
        finally:
            self._held_bytes[is_named] -= len(body)


_log = logging.getLogger(__name__)
_MOST_THREADS = 32
_MOST_LOCAL_THREADS = 8
_MOST_PROBE_THREADS = 2
_LARGE_BODY_BYTES = 256 << 10
# The C library of most Linux systems keeps memory that was freed, of each thread apart, unless it is asked.
_give_memory_back = getattr(ctypes.CDLL(None), "malloc_trim", lambda _pad: 0)
_ACCEPTED = {JSON_TYPE, "application/*", "*/*"}
# The rest of the body is not waited for.
_CLOSING = {row.status for row in (UNAUTHORIZED, TOO_SLOW, TOO_LARGE, TOO_MANY_BODIES)}


def make_app(
    worker: Worker, door: Authenticator | None = None, *, read_only: bool = False, routes: Iterable[Endpoint] = ROUTES
) -> ASGIApp:
    """The app; without a door everyone may do everything; `read_only` where a file defines the connectors."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in routes:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    desk = _Desk(worker, door or Authenticator(), read_only=read_only)
    app = Starlette(
        routes=[Route(path, _Resource(desk, methods)) for path, methods in by_path.items()],
        exception_handlers={404: _no_such_path},
    )
    app.router.redirect_slashes = False
    return _outermost(app, desk.door.hosts)


async def _no_such_path(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return _response(answer_of(NO_SUCH_PATH.error()), is_unread=has_body(request))


def _outermost(app: ASGIApp, hosts: Hosts) -> ASGIApp:
    """Refuses foreign hosts and origins before anything else. To Connect `/connectors/` is `/connectors`."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            hosts.check(scope["method"], Headers(scope=scope), _place(scope))
        except ConnectError as refusal:
            request = Request(scope)
            await _response(answer_of(refusal), is_unread=has_body(request))(scope, receive, send)
            return
        if len(scope["path"]) > 1:
            scope = {**scope, "path": scope["path"].removesuffix("/")}
        with suppress(h11.LocalProtocolError):  # the connection was answered with 400: the body broke the protocol
            await app(scope, receive, send)

    return checked


def _place(scope: Scope) -> ListenerAddress:
    place: ListenerAddress = scope.get("state", {}).get(PLACE, ListenerAddress())
    return place


class _Resource:
    """One path with its methods, as an ASGI app."""

    def __init__(self, desk: _Desk, methods: dict[str, Endpoint]) -> None:
        self._desk = desk
        self._methods = {**methods, "HEAD": methods["GET"]} if "GET" in methods else methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        is_unread = has_body(request)
        body = b""
        try:
            if request.method == "OPTIONS":
                answer = self._options(request)
            else:
                endpoint, caller = self._admitted(request)
                async with self._desk.body_of(endpoint, request, caller) as body:
                    is_unread = False
                    answer = await self._answer(endpoint, request, body, caller)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  (whatever fails, the client gets an answer)
            answer = answer_of(error, lambda: texts_of(request.path_params, request.url.query, body))
        if answer.location is not None and self._desk.door.hosts.is_known(request.url.netloc, _place(scope)):
            answer = answer._replace(location=f"{request.url.scheme}://{request.url.netloc}{answer.location}")
        response = _response(answer, is_unread=is_unread)
        if answer.status == UNAUTHORIZED.status and self._desk.door.challenge is not None:
            response.headers["www-authenticate"] = self._desk.door.challenge
        await response(scope, receive, send)

    def _options(self, request: Request) -> RestResponse:
        self._desk.enter(Access.BE_KNOWN, request)
        return RestResponse(200, ", ".join(sorted({*self._methods, "OPTIONS"})).encode(), TEXT_TYPE)

    def _admitted(self, request: Request) -> tuple[Endpoint, RestCaller]:
        """What is asked for and who asks; raises whatever is to be refused without the body."""
        endpoint = self._methods.get(request.method)
        if endpoint is None:
            raise NO_SUCH_METHOD.error()
        caller = self._desk.enter(endpoint.access, request)
        _check_media_types(request, has_body=request.headers.get("content-length", "0") != "0")
        self._desk.admit(endpoint, request, caller)
        return endpoint, caller

    async def _answer(self, endpoint: Endpoint, request: Request, body: bytes, caller: RestCaller) -> RestResponse:
        caller.check_body(body)
        _check_media_types(request, has_body=bool(body))
        return await self._desk.serve(endpoint, request, body, caller)


class _Desk:
    """Has each request done on a thread, here or at the leader.

    Local ones do not wait for the others' threads, nor the question whether the worker is healthy for any. A large body
    takes many times its size while it is handled, so there is one thread for all of them.
    """

    def __init__(self, worker: Worker, door: Authenticator, *, read_only: bool) -> None:
        self._worker = worker
        self._read_only = read_only
        self.door = door
        self._bodies = BodyReader()
        # A thread is taken until it ends, also when its caller was answered before.
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "rest")
        self._local_threads = ThreadPoolExecutor(_MOST_LOCAL_THREADS, "rest-local")
        self._probe_threads = ThreadPoolExecutor(_MOST_PROBE_THREADS, "rest-health")
        self._large_bodies_thread = ThreadPoolExecutor(1, "rest-large")

    def enter(self, access: Access, request: Request) -> RestCaller:
        """Who calls; raises the refusal of who is not let in."""
        state = request.scope.get("state", {})
        arrival = Arrival(request.method, _target(request), request.headers, state.get(CERTIFICATE))
        caller = self.door.enter(access, arrival, self._worker.herder)
        if access is not Access.NOTHING and LET_IN in state:
            state[LET_IN]()
        return caller

    def admit(self, endpoint: Endpoint, request: Request, caller: RestCaller) -> None:
        """Raise the refusal of a call that needs no body for it."""
        if endpoint.access is Access.NOTHING:
            raise INTERNAL_ONLY.error()
        if self._read_only and endpoint.is_change:
            raise READ_ONLY.error()
        if endpoint.is_local or self._worker.herder.leader_url is None:
            caller.admit(endpoint.access, request.path_params)

    def body_of(self, endpoint: Endpoint, request: Request, caller: RestCaller) -> AbstractAsyncContextManager[bytes]:
        """The body, for as long as the block lasts."""
        is_named = caller.principal is not None or not self.door.knows_callers
        return self._bodies.body_of(request, endpoint.largest_body_bytes, is_named=is_named)

    async def serve(self, endpoint: Endpoint, request: Request, body: bytes, caller: RestCaller) -> RestResponse:
        """The answer, or after the endpoint's time the one it has for that; the thread is then left to itself."""
        handle, threads = self._handle, self._threads_for(endpoint)
        if len(body) > _LARGE_BODY_BYTES:
            handle, threads = self._handle_large, self._large_bodies_thread
        with anyio.move_on_after(endpoint.timeout_s):
            return await asyncio.get_running_loop().run_in_executor(threads, handle, endpoint, request, body, caller)
        return endpoint.on_timeout()

    def _threads_for(self, endpoint: Endpoint) -> ThreadPoolExecutor:
        if endpoint.is_probe:
            return self._probe_threads
        return self._local_threads if endpoint.is_local else self._threads

    def _handle_large(self, endpoint: Endpoint, request: Request, body: bytes, caller: RestCaller) -> RestResponse:
        try:
            return self._handle(endpoint, request, body, caller)
        finally:
            _give_memory_back(0)

    def _handle(self, endpoint: Endpoint, request: Request, body: bytes, caller: RestCaller) -> RestResponse:
        leader_url = None if endpoint.is_local else self._worker.herder.leader_url
        if leader_url is None:
            caller.admit(endpoint.access, request.path_params)
            if endpoint.is_change and caller.principal is not None:
                path = request.scope["raw_path"].decode("latin-1")
                _log.info("REST, %s: %s %s", caller.principal, request.method, path, extra={PUBLIC_RECORD: True})
            query = {name: request.query_params.getlist(name) for name in request.query_params}
            return endpoint.handler(Call(caller.view(self._worker), request.path_params, query, body))
        if request.query_params.get(FORWARD) == "false":
            raise REBALANCE.error()
        arrival = Arrival(endpoint.method, once(_target(request)), request.headers)
        reported = self.door.pass_on(caller, arrival, body, self._worker.herder)
        sent = Forwarded(arrival.method, arrival.target, request.headers, body, reported)
        return forward(leader_url, sent, endpoint.timeout_s, self.door.forwarding_tls)


def _target(request: Request) -> str:
    """Path and query, as they came."""
    path, query = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _check_media_types(request: Request, *, has_body: bool) -> None:
    sent = request.headers.get("content-type")
    if (sent is not None or has_body) and _media_type(sent or "") != JSON_TYPE:
        raise UNSUPPORTED_MEDIA_TYPE.error()
    accepted = request.headers.get("accept", "*/*")
    if not any(_media_type(part) in _ACCEPTED for part in accepted.split(",")):
        raise NOT_ACCEPTABLE.error()


def _media_type(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def _response(answer: RestResponse, *, is_unread: bool) -> Response:
    headers = {"connection": "close"} if is_unread or answer.status in _CLOSING else {}
    if answer.content_type == TEXT_TYPE:
        headers["allow"] = answer.body.decode().replace(" ", "")
    if answer.location is not None:
        headers["location"] = answer.location
    content_type = answer.content_type if answer.body else None
    return Response(answer.body, answer.status, headers, media_type=content_type)
