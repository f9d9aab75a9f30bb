"""JSON as Connect's converter writes it, byte for byte: Connect finds keys by their bytes."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

# Characters that Java's JSON writer writes in other bytes than Python's; an escaped backslash is matched and kept.
_WRITTEN_OTHERWISE = re.compile(r"\\\\|\\u00[0-9a-f]{2}|[\U00010000-\U0010ffff]")
_TASK = re.compile(r"(.+)-([0-9]{1,9})", re.DOTALL)


def dump_json(value: Any) -> bytes:
    """Encode without blanks, in UTF-8, with Java's escapes, and members in the given order."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _WRITTEN_OTHERWISE.sub(_as_in_java, text).encode()


def _as_in_java(found: re.Match[str]) -> str:
    """Write escapes in capitals, and characters beyond 16 bits as two escapes."""
    shown = found[0]
    if shown.startswith("\\u"):
        return "\\u" + shown[2:].upper()
    if len(shown) > 1:
        return shown
    return "".join(f"\\u{unit:04X}" for unit in struct.unpack(">2H", shown.encode("utf-16-be")))


def split_task(text: str) -> tuple[str, int] | None:
    """Split `orders-eu-3` into `orders-eu` and 3; None if there is no number after the last dash."""
    found = _TASK.fullmatch(text)
    return None if found is None else (found[1], int(found[2]))


def load_json(data: bytes | None) -> Any:
    """Decode untrusted bytes; raise ValueError if they are not JSON, or JSON that could not be written again."""
    try:
        value = json.loads(data or b"")
        if b"\\u" in (data or b""):
            json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return value


def load_object(data: bytes | None) -> dict[str, Any] | None:
    """Decode a JSON object; None if the bytes are anything else."""
    try:
        value = load_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
