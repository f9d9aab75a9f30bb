"""The key with which workers sign forwarded requests: the leader renews it, if it is needed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pytest

from heliograph.cli.inputs import MachineLookup
from heliograph.config.effective.connect_config import WorkerConfig
from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.storage.config_store import ConfigStore, SessionKeys
from heliograph.wire.records.connect_configs import SessionKeyRecord
from tests.support.config_files import DOCUMENT_001
from tests.support.connect.rest_worker import login_lines


class FakeStore:
    """The newest keys, in memory."""

    def __init__(self) -> None:
        self.session_keys: tuple[SessionKeyRecord, ...] = ()

    def put_session_key(self, key: bytes, created_ms: int) -> None:
        self.session_keys = (SessionKeyRecord(key, created_ms), *self.session_keys)


def worker(**lines: str) -> WorkerConfig:
    more = "".join(f"{key}={value}\n" for key, value in lines.items())
    return load_worker(DOCUMENT_001 + more, MachineLookup())


def keys_of(config: WorkerConfig, store: FakeStore) -> SessionKeys:
    return SessionKeys(cast("ConfigStore", store), config)


def test_nothing_is_written_where_callers_have_no_names() -> None:
    store = FakeStore()
    keys_of(worker(), store).keep_fresh()
    assert store.session_keys == ()


def test_a_key_is_made_once_and_again_when_its_time_is_over(tmp_path: Path) -> None:
    store = FakeStore()
    keys = keys_of(worker(**login_lines(tmp_path, "ann"), **{"inter.worker.key.ttl.ms": "60000"}), store)
    keys.keep_fresh()
    keys.keep_fresh()
    assert [len(record.key) for record in store.session_keys] == [32]
    first = store.session_keys[0]
    assert abs(first.created_ms - time.time() * 1000) < 60_000
    store.session_keys = (first._replace(created_ms=first.created_ms - 60_000),)
    keys.keep_fresh()
    assert len({record.key for record in store.session_keys}) == 2


@pytest.mark.parametrize(
    ("lines", "knows_callers"),
    [
        ({}, False),
        ({"listeners": "https://:8443"}, False),
        ({"listeners": "https://:8443", "ssl.client.auth": "requested"}, True),
        ({"listeners": "https://:8443", "listeners.https.ssl.client.auth": "required"}, True),
        ({"listeners": "http://:8443", "ssl.client.auth": "required"}, False),
    ],
)
def test_callers_have_names_by_certificates_where_there_is_tls(lines: dict[str, str], knows_callers: bool) -> None:
    assert worker(**lines).rest.knows_callers is knows_callers
