"""JSON as Connect's converter writes it, byte for byte: Connect finds keys again by their bytes."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

# What Java's JSON writer shows in other bytes than Python's; an escaped backslash only keeps its place.
_SHOWN_OTHERWISE = re.compile(r"\\\\|\\u00[0-9a-f]{2}|[\U00010000-\U0010ffff]")


_TASK = re.compile(r"(.+)-([0-9]{1,9})", re.DOTALL)


def dump_json(value: Any) -> bytes:
    """Without blanks, in UTF-8, with Java's escapes; members in the order given."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _SHOWN_OTHERWISE.sub(_as_in_java, text).encode()


def _as_in_java(found: re.Match[str]) -> str:
    """Escapes in capitals, and characters beyond 16 bits as two of them."""
    shown = found[0]
    if shown.startswith("\\u"):
        return "\\u" + shown[2:].upper()
    if len(shown) > 1:
        return shown
    return "".join(f"\\u{unit:04X}" for unit in struct.unpack(">2H", shown.encode("utf-16-be")))


def split_task(text: str) -> tuple[str, int] | None:
    """`orders-eu-3` is the third task of `orders-eu`; None where no number stands behind the last dash."""
    found = _TASK.fullmatch(text)
    return None if found is None else (found[1], int(found[2]))


def load_json(data: bytes | None) -> Any:
    """The value that bytes of anybody spell; ValueError where they are no JSON, or none that could be written again."""
    try:
        value = json.loads(data or b"")
        if b"\\u" in (data or b""):
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def load_object(data: bytes | None) -> dict[str, Any] | None:
    """A JSON object, or None where the bytes are something else."""
    try:
        value = load_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
