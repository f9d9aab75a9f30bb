"""The requests about offsets of share groups (KIP-932) as kafka-python's classes, made from the files in `schemas`."""

from __future__ import annotations

from typing import Any

from kafka.protocol.api_message import ApiMessage

_make_class: Any = type(ApiMessage)


def _message(name: str) -> Any:
    return _make_class(name, (ApiMessage,), {}, load_json="heliograph.kafka.schemas")


DescribeShareGroupOffsetsRequest = _message("DescribeShareGroupOffsetsRequest")
DescribeShareGroupOffsetsResponse = _message("DescribeShareGroupOffsetsResponse")
AlterShareGroupOffsetsRequest = _message("AlterShareGroupOffsetsRequest")
AlterShareGroupOffsetsResponse = _message("AlterShareGroupOffsetsResponse")
