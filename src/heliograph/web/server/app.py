"""The REST API as a Starlette app: HTTP on one side, the table of routes and the handlers on the other.

The app applies the rules of Connect's web server, in its order: host and origin (403), path (404), method (405), caller
(401), media types (415, 406). It reads a body only when nothing else is left to refuse, within bounds of size, time and
memory. Handlers block, so each runs on a thread; after the time limit of its route the client gets an answer, and the
thread stays occupied until the handler returns. The worker that answers decides what a caller may do, so the leader
decides about a forwarded request.
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
from heliograph.web.access.authenticator import Authenticator, RequestHead
from heliograph.web.access.guard import Access
from heliograph.web.endpoints.request_bodies import texts_of
from heliograph.web.endpoints.routes import ROUTES, Endpoint
from heliograph.web.error_responses import (
    INTERNAL_ONLY,
    NO_ACTIONS,
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
from heliograph.web.server.rest_server import ABORT, CERTIFICATE, LISTENER, ON_ADMITTED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from contextlib import AbstractAsyncContextManager

    from starlette.types import ASGIApp, Receive, Scope, Send

    from heliograph.web.access.allowed_hosts import Hosts
    from heliograph.web.access.guard import RestCaller


_log = logging.getLogger(__name__)

LARGEST_BODIES_BYTES = 16 << 20
LARGEST_UNNAMED_BODIES_BYTES = 4 << 20
BODY_TIMEOUT_S = 30.0
_MOST_DIGITS = 12
_MOST_THREADS = 32
_MOST_LOCAL_THREADS = 8
_MOST_PROBE_THREADS = 2
_MOST_SCRAPE_THREADS = 2
_LARGE_BODY_BYTES = 256 << 10
_PIECE_BYTES = 64 << 10
_ACCEPTED = {JSON_TYPE, "application/*", "*/*"}
# The rest of the body is not waited for.
_CLOSING = {row.status for row in (UNAUTHORIZED, TOO_SLOW, TOO_LARGE, TOO_MANY_BODIES)}
# The C library of most Linux systems keeps freed memory, for each thread apart, until it is trimmed.
_give_memory_back = getattr(ctypes.CDLL(None), "malloc_trim", lambda _pad: 0)


def make_app(
    worker: Worker,
    authenticator: Authenticator | None = None,
    *,
    read_only: bool = False,
    has_actions: bool = False,
    routes: Iterable[Endpoint] = ROUTES,
) -> ASGIApp:
    """Return the app; without an authenticator everyone may do everything.

    `read_only` if a file has the connectors; `has_actions` if they can be restarted and stopped nevertheless.
    """
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in routes:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    dispatcher = _Dispatcher(worker, authenticator or Authenticator(), read_only=read_only, has_actions=has_actions)
    app = Starlette(
        routes=[Route(path, _Resource(dispatcher, methods)) for path, methods in by_path.items()],
        exception_handlers={404: _no_such_path},
    )
    app.router.redirect_slashes = False
    return _outermost(app, dispatcher.authenticator.hosts)


async def _no_such_path(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return _response(answer_of(NO_SUCH_PATH.error()), is_unread=has_body(request))


def _outermost(app: ASGIApp, hosts: Hosts) -> ASGIApp:
    """Refuse foreign hosts and origins before anything else. To Connect `/connectors/` is `/connectors`."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            hosts.check(scope["method"], Headers(scope=scope), _listener(scope))
        except ConnectError as refusal:
            request = Request(scope)
            await _response(answer_of(refusal), is_unread=has_body(request))(scope, receive, send)
            return
        if len(scope["path"]) > 1:
            scope = {**scope, "path": scope["path"].removesuffix("/")}
        with suppress(h11.LocalProtocolError):  # the connection was answered with 400: the body broke the protocol
            await app(scope, receive, send)

    return checked


def _listener(scope: Scope) -> ListenerAddress:
    listener: ListenerAddress = scope.get("state", {}).get(LISTENER, ListenerAddress())
    return listener


class _Resource:
    """One path with its methods, as an ASGI app."""

    def __init__(self, dispatcher: _Dispatcher, methods: dict[str, Endpoint]) -> None:
        self._dispatcher = dispatcher
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
                async with self._dispatcher.body_of(endpoint, request, caller) as body:
                    is_unread = False
                    answer = await self._answer(endpoint, request, body, caller)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  (the client gets an answer for every failure)
            answer = answer_of(error, lambda: texts_of(request.path_params, request.url.query, body))
        if answer.location is not None and self._dispatcher.authenticator.hosts.is_known(
            request.url.netloc, _listener(scope)
        ):
            answer = answer._replace(location=f"{request.url.scheme}://{request.url.netloc}{answer.location}")
        response = _response(answer, is_unread=is_unread)
        if answer.status == UNAUTHORIZED.status and self._dispatcher.authenticator.challenge is not None:
            response.headers["www-authenticate"] = self._dispatcher.authenticator.challenge
        await response(scope, receive, send)

    def _options(self, request: Request) -> RestResponse:
        self._dispatcher.enter(Access.BE_KNOWN, request)
        return RestResponse(200, ", ".join(sorted({*self._methods, "OPTIONS"})).encode(), TEXT_TYPE)

    def _admitted(self, request: Request) -> tuple[Endpoint, RestCaller]:
        """Return the endpoint and the caller; raise every refusal that does not need the body."""
        endpoint = self._methods.get(request.method)
        if endpoint is None:
            raise NO_SUCH_METHOD.error()
        caller = self._dispatcher.enter(endpoint.access, request)
        _check_media_types(endpoint, request, has_body=request.headers.get("content-length", "0") != "0")
        self._dispatcher.admit(endpoint, request, caller)
        return endpoint, caller

    async def _answer(self, endpoint: Endpoint, request: Request, body: bytes, caller: RestCaller) -> RestResponse:
        caller.check_body(body)
        _check_media_types(endpoint, request, has_body=bool(body))
        return await self._dispatcher.serve(endpoint, request, body, caller)


class _Dispatcher:
    """Runs the handler of each request on a thread, or forwards the request to the leader.

    Local requests do not wait for threads of others, and health checks and scrapes for none of these. A large body
    takes many times its size while it is handled, so there is one thread for all of them.
    """

    def __init__(self, worker: Worker, authenticator: Authenticator, *, read_only: bool, has_actions: bool) -> None:
        self._worker = worker
        self._read_only = read_only
        self._has_actions = has_actions
        self.authenticator = authenticator
        self._bodies = BodyReader()
        # A thread is occupied until its handler returns, also after its caller was answered.
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "rest")
        self._local_threads = ThreadPoolExecutor(_MOST_LOCAL_THREADS, "rest-local")
        self._probe_threads = ThreadPoolExecutor(_MOST_PROBE_THREADS, "rest-health")
        self._scrape_threads = ThreadPoolExecutor(_MOST_SCRAPE_THREADS, "rest-metrics")
        self._large_bodies_thread = ThreadPoolExecutor(1, "rest-large")

    def enter(self, access: Access, request: Request) -> RestCaller:
        """Return the caller of a request; raise the refusal of one that is not let in."""
        state = request.scope.get("state", {})
        head = RequestHead(request.method, _target(request), request.headers, state.get(CERTIFICATE))
        caller = self.authenticator.enter(access, head, self._worker.herder)
        if access is not Access.NOTHING and ON_ADMITTED in state:
            state[ON_ADMITTED]()
        return caller

    def admit(self, endpoint: Endpoint, request: Request, caller: RestCaller) -> None:
        """Raise every refusal that needs no more than the path."""
        if endpoint.access is Access.NOTHING:
            raise INTERNAL_ONLY.error()
        if self._read_only and endpoint.is_action:
            if not self._has_actions:
                raise NO_ACTIONS.error()
        elif self._read_only and endpoint.is_change:
            raise READ_ONLY.error()
        if endpoint.is_local or self._worker.herder.leader_url is None:
            caller.admit(endpoint.access, request.path_params)

    def body_of(self, endpoint: Endpoint, request: Request, caller: RestCaller) -> AbstractAsyncContextManager[bytes]:
        """Return the body, for as long as the block lasts."""
        is_named = caller.principal is not None or not self.authenticator.knows_callers
        return self._bodies.body_of(request, endpoint.largest_body_bytes, is_named=is_named)

    async def serve(self, endpoint: Endpoint, request: Request, body: bytes, caller: RestCaller) -> RestResponse:
        """Return the answer of the handler, or that of its time-out if the handler takes too long."""
        handle, threads = self._handle, self._threads_for(endpoint)
        if len(body) > _LARGE_BODY_BYTES:
            handle, threads = self._handle_large, self._large_bodies_thread
        with anyio.move_on_after(endpoint.timeout_s):
            return await asyncio.get_running_loop().run_in_executor(threads, handle, endpoint, request, body, caller)
        return endpoint.on_timeout()

    def _threads_for(self, endpoint: Endpoint) -> ThreadPoolExecutor:
        if endpoint.is_probe:
            return self._probe_threads
        if endpoint.is_scrape:
            return self._scrape_threads
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
            headers = request.headers
            return endpoint.handler(Call(caller.view(self._worker), request.path_params, query, body, headers))
        if request.query_params.get(FORWARD) == "false":
            raise REBALANCE.error()
        head = RequestHead(endpoint.method, once(_target(request)), request.headers)
        caller_headers = self.authenticator.pass_on(caller, head, body, self._worker.herder)
        sent = Forwarded(head.method, head.target, request.headers, body, caller_headers)
        return forward(leader_url, sent, endpoint.timeout_s, self.authenticator.forwarding_tls)


class BodyReader:
    """Reads the bodies of one app's requests; used on its event loop only.

    Authenticated callers have a memory budget of their own, so that others, if they are let in, cannot exhaust it.
    """

    def __init__(self) -> None:
        self._held_bytes = {True: 0, False: 0}

    @asynccontextmanager
    async def body_of(self, request: Request, largest_bytes: int, *, is_named: bool) -> AsyncIterator[bytes]:
        """Hold the whole body while the block lasts; refuse one that is too large, too slow, or one too many."""
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


def has_body(request: Request) -> bool:
    """Return whether a request has, or may have, a body."""
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def _target(request: Request) -> str:
    """Return path and query, as they were received."""
    path, query = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _check_media_types(endpoint: Endpoint, request: Request, *, has_body: bool) -> None:
    sent = request.headers.get("content-type")
    if (sent is not None or has_body) and _media_type(sent or "") != JSON_TYPE:
        raise UNSUPPORTED_MEDIA_TYPE.error()
    accepted = request.headers.get("accept", "*/*")
    if endpoint.is_scrape:
        return
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
    if answer.encoding:
        headers |= {"content-encoding": answer.encoding, "vary": "accept, accept-encoding"}
    content_type = answer.content_type if answer.body else None
    if answer.read_within_s is not None and len(answer.body) > _PIECE_BYTES:
        return _PiecewiseResponse(answer, headers)
    return Response(answer.body, answer.status, headers, media_type=content_type)


class _PiecewiseResponse(Response):
    """A large body that many clients get, sent in pieces as they read it; one that reads too slowly is disconnected.

    Sent at once, the body would be copied for each client, and kept until it is read.
    """

    def __init__(self, answer: RestResponse, headers: dict[str, str]) -> None:
        super().__init__(answer.body, answer.status, headers, media_type=answer.content_type)
        self._read_within_s = answer.read_within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        with anyio.move_on_after(self._read_within_s) as time_limit:
            for at in range(0, len(self.body), _PIECE_BYTES):
                piece = bytes(self.body[at : at + _PIECE_BYTES])
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        if time_limit.cancelled_caught and ABORT in scope.get("state", {}):
            scope["state"][ABORT]()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
