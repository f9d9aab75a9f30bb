"""The check of brokers' responses: it cannot be switched off by a change of kafka-python."""

from __future__ import annotations

import runpy
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsResponse

from heliograph.kafka.net import response_decoder
from heliograph.kafka.net.response_decoder import (
    MAX_FETCH_RESPONSE_BYTES,
    MAX_RESPONSE_BYTES,
    SelfCheckedResponse,
    check_guard,
    decode_response,
    max_response_bytes,
)

CLEAR = "cannot be checked along the message schemas of the installed kafka-python"


class Unchecked:
    """A class without a schema that would decode anything."""

    @staticmethod
    def decode(body: memoryview, *, version: int) -> bytes:
        return bytes([version]) + body


class SelfChecked(SelfCheckedResponse):
    """A class that says that it checks the bytes itself."""

    decode = Unchecked.decode


def test_the_installed_kafka_python_has_the_schemas() -> None:
    check_guard()


def test_the_module_is_not_imported_if_kafka_python_keeps_its_schemas_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(ApiVersionsResponse, "_json")  # which `json` reads
    with pytest.raises(ImportError, match=CLEAR):
        runpy.run_path(response_decoder.__file__)


@pytest.mark.parametrize("schema", [None, {}, {"fields": []}, {"fields": [], "flexibleVersions": "none"}])
def test_a_schema_of_another_form_is_refused(schema: Any) -> None:
    with pytest.raises(ImportError, match=CLEAR):
        check_guard(SimpleNamespace(json=schema))


@pytest.mark.parametrize("key", ["fields", "flexibleVersions"])
def test_a_schema_whose_members_have_other_names_is_refused(key: str) -> None:
    renamed = {f"{key}2" if name == key else name: value for name, value in ApiVersionsResponse.json.items()}
    with pytest.raises(ImportError, match=CLEAR):
        check_guard(SimpleNamespace(json=renamed))


def test_a_class_without_a_schema_is_never_decoded() -> None:
    with pytest.raises(AttributeError):
        decode_response(Unchecked, memoryview(b"ab"), 1)


def test_only_a_class_that_checks_itself_is_decoded_without_a_schema_and_may_be_long() -> None:
    assert decode_response(SelfChecked, memoryview(b"ab"), 1) == b"\1ab"
    assert max_response_bytes(SelfChecked) == MAX_FETCH_RESPONSE_BYTES
    assert max_response_bytes(ApiVersionsResponse) == max_response_bytes(Unchecked) == MAX_RESPONSE_BYTES
