"""Reads bodies within bounds: of one body's size and time, and of the memory that all of them take at once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from heliograph.api.errors import TOO_LARGE, TOO_MANY_BODIES, TOO_SLOW

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

LARGEST_BODY_BYTES = 16 << 20
LARGEST_BODIES_BYTES = 64 << 20
BODY_TIMEOUT_S = 30.0
_MOST_DIGITS = 12


class BodyReader:
    """Reads the bodies of one app's requests; used on its event loop alone."""

    def __init__(self) -> None:
        self._held_bytes = 0

    @asynccontextmanager
    async def body_of(self, request: Request) -> AsyncIterator[bytes]:
        """The whole body, for as long as the block lasts; refused where it is too large, too slow, or one too many."""
        length = request.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > _MOST_DIGITS or int(length) > LARGEST_BODY_BYTES):
            raise TOO_LARGE.error()
        body = bytearray()
        try:
            with anyio.move_on_after(BODY_TIMEOUT_S) as time_limit:
                async for chunk in request.stream():
                    self._held_bytes += len(chunk)
                    body += chunk
                    self._check(len(body))
            if time_limit.cancelled_caught:
                raise TOO_SLOW.error()
            yield bytes(body)
        finally:
            self._held_bytes -= len(body)

    def _check(self, body_bytes: int) -> None:
        if body_bytes > LARGEST_BODY_BYTES:
            raise TOO_LARGE.error()
        if self._held_bytes > LARGEST_BODIES_BYTES:
            raise TOO_MANY_BODIES.error()
