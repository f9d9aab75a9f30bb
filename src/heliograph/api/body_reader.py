"""Reads bodies within bounds: of one body's size and time, and of the memory that all of them take at once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from heliograph.api.errors import TOO_LARGE, TOO_MANY_BODIES, TOO_SLOW

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

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
