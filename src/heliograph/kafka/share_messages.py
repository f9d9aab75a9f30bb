"""The requests about offsets of share groups (KIP-932) as kafka-python's classes, made from the files in `schemas`."""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

_FILES = "heliograph.kafka.schemas"


class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=_FILES):  # type: ignore[misc]
    """Where share groups begin in each partition."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=_FILES):  # type: ignore[misc]
    """The answer."""


class AlterShareGroupOffsetsRequest(ApiMessage, load_json=_FILES):  # type: ignore[misc]
    """Set where a share group without members begins."""


class AlterShareGroupOffsetsResponse(ApiMessage, load_json=_FILES):  # type: ignore[misc]
    """The answer."""
