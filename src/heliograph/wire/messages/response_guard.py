"""Walks the bytes of a response along Kafka's own schema of it, before a generated decoder makes objects of them.

Any program may listen at a broker's address, and kafka-python's decoders trust the bytes they read: a number
without an end, millions of elements of one byte each, tags that are copied one by one, or a null that the protocol does
not allow would cost minutes, gigabytes, or an error in a place that does not expect one. The walk makes no objects and
costs less than the decoding.

Invariants, whatever the bytes are:
A. `check` ends, in time that grows with the number of bytes, or raises MalformedResponseError.
B. In a response that passes, every field lies inside the bytes, nothing is null that must not be, there are at most
   `MAX_STRUCTURES` structures, and copying the tags takes at most `MAX_TAG_COPIES_BYTES`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from heliograph.wire.messages.fetch_response import MalformedResponseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Step = Callable[["_Walk"], None]
    Fields = Sequence[Mapping[str, Any]]


MAX_STRUCTURES: Final = 2_000_000  # a Metadata response has one for each topic and partition
MAX_TAG_COPIES_BYTES: Final = 1 << 28  # the decoder copies the rest of the response for each structure with tags
_MAX_VARINT_BYTES = 5
_FIXED_BYTES = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16,
    "bitfield": 4,
}  # fmt: skip
_INT16, _INT32 = struct.Struct(">h"), struct.Struct(">i")
_NULL_STRUCTURE = 0xFF


class ResponseGuard:
    """The walk for one kind of response in one version; `schema` is Kafka's JSON of the message."""

    def __init__(self, schema: Mapping[str, Any], version: int) -> None:
        compiler = _Compiler(version, _covers(schema["flexibleVersions"], version), schema.get("commonStructs", ()))
        self._steps, _least = compiler.structure(schema["fields"])

    def check(self, view: memoryview) -> None:
        """Raise MalformedResponseError unless the bytes are a response of this kind."""
        walk = _Walk(view)
        try:
            walk.run(self._steps)
        except (struct.error, IndexError):
            raise MalformedResponseError("the broker's response ends too early.") from None


class _Walk:
    """A cursor over a response, with counts of what it has passed."""

    __slots__ = ("at", "end", "structures", "tag_copies_bytes", "view")

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.end = len(view)
        self.at = self.structures = self.tag_copies_bytes = 0

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            step(self)

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > self.end:
            raise MalformedResponseError("a field of the broker's response is longer than the response.")

    def number(self, layout: struct.Struct) -> int:
        (value,) = layout.unpack_from(self.view, self.at)
        self.at += layout.size
        return int(value)

    def varint(self) -> int:
        value = 0
        for k in range(_MAX_VARINT_BYTES):
            byte = self.view[self.at]
            self.at += 1
            value |= (byte & 0x7F) << 7 * k
            if byte < 0x80:
                return value
        raise MalformedResponseError("a number in the broker's response does not end.")


def _covers(versions: str | None, version: int) -> bool:
    """Return whether a range such as `3+`, `0-4` or `7` includes a version."""
    if versions is None or versions == "none":
        return False
    first, dash, last = versions.removesuffix("+").partition("-")
    if versions.endswith("+"):
        return version >= int(first)
    return int(first) <= version <= int(last if dash else first)


class _Compiler:
    """Compiles a schema's fields into steps; each method also returns the least number of bytes that they take."""

    def __init__(self, version: int, is_flexible: bool, common: Fields) -> None:
        self._version = version
        self._is_flexible = is_flexible
        self._common = {entry["name"]: entry["fields"] for entry in common}

    def structure(self, fields: Fields) -> tuple[list[Step], int]:
        """Compile fields one after the other, then the tags."""
        steps: list[Step] = []
        tagged: dict[int, list[Step]] = {}
        fixed = least = 0
        for field in fields:
            if not _covers(field["versions"], self._version):
                continue
            if _covers(field.get("taggedVersions"), self._version):
                tagged[field["tag"]] = [self._field(field)[0]]
                continue
            size = _FIXED_BYTES.get(field["type"])
            if size is not None:
                fixed, least = fixed + size, least + size
                continue
            step, at_least = self._field(field)
            steps += [_skipping(fixed), step] if fixed else [step]
            fixed, least = 0, least + at_least
        steps += [_skipping(fixed)] if fixed else []
        if self._is_flexible:
            steps.append(_tags(tagged))
            least += 1
        return steps, least

    def _field(self, field: Mapping[str, Any]) -> tuple[Step, int]:
        kind = field["type"]
        is_nullable = _covers(field.get("nullableVersions"), self._version)
        if kind.startswith("[]"):
            return self._array(kind.removeprefix("[]"), field.get("fields"), is_nullable=is_nullable)
        if kind in _FIXED_BYTES:
            return _skipping(_FIXED_BYTES[kind]), _FIXED_BYTES[kind]
        if kind in ("string", "bytes", "records"):
            return self._text(kind, is_nullable=is_nullable)
        steps, least = self.structure(field.get("fields") or self._common[kind])
        return (_perhaps(steps), 1) if is_nullable else (lambda walk: walk.run(steps), least)

    def _text(self, kind: str, *, is_nullable: bool) -> tuple[Step, int]:
        length = self._length(_INT16 if kind == "string" else _INT32)

        def step(walk: _Walk) -> None:
            size = length(walk)
            if size >= 0:
                walk.skip(size)
            elif not is_nullable:
                raise _null()

        return step, 1 if self._is_flexible else (2 if kind == "string" else 4)

    def _array(self, kind: str, fields: Fields | None, *, is_nullable: bool) -> tuple[Step, int]:
        length, least = self._length(_INT32), 1 if self._is_flexible else 4
        size = _FIXED_BYTES.get(kind)
        if size is not None:
            return _values(length, size, is_nullable=is_nullable), least
        if kind in ("string", "bytes"):
            step, element_least = self._text(kind, is_nullable=False)
            return _elements(length, [step], element_least, is_nullable=is_nullable), least
        steps, element_least = self.structure(fields or self._common[kind])
        return _elements(length, steps, element_least, is_nullable=is_nullable), least

    def _length(self, layout: struct.Struct) -> Callable[[_Walk], int]:
        return (lambda walk: walk.varint() - 1) if self._is_flexible else (lambda walk: walk.number(layout))


def _null() -> MalformedResponseError:
    return MalformedResponseError("a field of the broker's response is null that must not be.")


def _skipping(size: int) -> Step:
    return lambda walk: walk.skip(size)


def _perhaps(steps: Sequence[Step]) -> Step:
    def step(walk: _Walk) -> None:
        mark = walk.view[walk.at]
        walk.at += 1
        if mark != _NULL_STRUCTURE:
            walk.run(steps)

    return step


def _values(length: Callable[[_Walk], int], size: int, *, is_nullable: bool) -> Step:
    def step(walk: _Walk) -> None:
        count = length(walk)
        if count >= 0:
            walk.skip(count * size)
        elif not is_nullable or count < -1:
            raise _null()

    return step


def _elements(length: Callable[[_Walk], int], steps: Sequence[Step], least_bytes: int, *, is_nullable: bool) -> Step:
    def step(walk: _Walk) -> None:
        count = length(walk)
        if count < 0 and (not is_nullable or count < -1):
            raise _null()
        walk.structures += max(0, count)
        if count * least_bytes > walk.end - walk.at or walk.structures > MAX_STRUCTURES:
            raise MalformedResponseError("an array in the broker's response has more elements than fit.")
        for _ in range(count):
            for inner in steps:
                inner(walk)

    return step


def _tags(tagged: Mapping[int, Sequence[Step]]) -> Step:
    def step(walk: _Walk) -> None:
        if walk.view[walk.at] == 0:  # nearly always
            walk.at += 1
            return
        walk.tag_copies_bytes += walk.end - walk.at
        if walk.tag_copies_bytes > MAX_TAG_COPIES_BYTES:
            raise MalformedResponseError("the broker's response has too many tags.")
        for _ in range(walk.varint()):
            tag, size = walk.varint(), walk.varint()
            begin = walk.at
            walk.skip(size)
            if tag in tagged:
                walk.at = begin
                walk.run(tagged[tag])
                if walk.at != begin + size:
                    raise MalformedResponseError("a tag of the broker's response has another length than it states.")

    return step
