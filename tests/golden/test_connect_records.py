"""Records of Connect's config and status topics, in the bytes Java Connect 4.3.1 writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.wire.records.connect_configs import (
    CommitRecord,
    ConfigRecord,
    ConnectorConfigRecord,
    LoggerRecord,
    RestartRecord,
    SessionKeyRecord,
    TargetStateRecord,
    TaskConfigRecord,
    TaskCountRecord,
    decode_config,
    encode_config,
)
from heliograph.wire.records.connect_status import (
    ConnectorStatusRecord,
    Status,
    StatusRecord,
    TaskStatusRecord,
    TopicStatusRecord,
    decode_status,
    encode_status,
)

CONFIGS: list[tuple[ConfigRecord, str, str | None]] = [
    (ConnectorConfigRecord("c-1", {"a": "b"}), "connector-c-1", '{"properties":{"a":"b"}}'),
    (ConnectorConfigRecord("c", None), "connector-c", None),
    (TaskConfigRecord("c-1", 12, {"a": "b"}), "task-c-1-12", '{"properties":{"a":"b"}}'),
    (CommitRecord("c", 2), "commit-c", '{"tasks":2}'),
    (TargetStateRecord("c", "STOPPED"), "target-state-c", '{"state":"PAUSED","state.v2":"STOPPED"}'),
    (TargetStateRecord("c", "PAUSED"), "target-state-c", '{"state":"PAUSED","state.v2":"PAUSED"}'),
    (TargetStateRecord("c", "STARTED"), "target-state-c", '{"state":"STARTED","state.v2":"STARTED"}'),
    (TargetStateRecord("c", None), "target-state-c", None),
    (RestartRecord("c", True, False), "restart-connector-c", '{"include-tasks":true,"only-failed":false}'),
    (TaskCountRecord("c", 2), "tasks-fencing-c", '{"task-count":2}'),
    (
        SessionKeyRecord(b"key", 1_700_000_000_000),
        "session-key",
        '{"key":"a2V5","algorithm":"HmacSHA256","creation-timestamp":1700000000000}',
    ),
    (LoggerRecord("org.apache", "DEBUG"), "logger-cluster-org.apache", '{"level":"DEBUG"}'),
]
RUNNING = Status("RUNNING", "A->B", 3)
STATUSES: list[tuple[StatusRecord, str, str | None]] = [
    (
        ConnectorStatusRecord("c", RUNNING),
        "status-connector-c",
        '{"state":"RUNNING","trace":null,"worker_id":"A->B","generation":3,"version":null}',
    ),
    (
        TaskStatusRecord("c-1", 0, Status("FAILED", "h:8083", 1, "java.lang: \n\tat", "4.3.1")),
        "status-task-c-1-0",
        '{"state":"FAILED","trace":"java.lang: \\n\\tat","worker_id":"h:8083","generation":1,"version":"4.3.1"}',
    ),
    (ConnectorStatusRecord("c", None), "status-connector-c", None),
    (TaskStatusRecord("c", 7, None), "status-task-c-7", None),
    (
        TopicStatusRecord("c", "t1", 0, 5),
        "status-topic-t1:connector-c",
        '{"topic":{"name":"t1","connector":"c","task":0,"discoverTimestamp":5}}',
    ),
    (TopicStatusRecord("c", "t1"), "status-topic-t1:connector-c", None),
]


def as_bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@pytest.mark.parametrize(("record", "key", "value"), CONFIGS)
def test_a_config_record_has_connects_bytes(record: ConfigRecord, key: str, value: str | None) -> None:
    assert encode_config(record) == (key.encode(), as_bytes(value))
    assert decode_config(key.encode(), as_bytes(value)) == record


@pytest.mark.parametrize(("record", "key", "value"), STATUSES)
def test_a_status_record_has_connects_bytes(record: StatusRecord, key: str, value: str | None) -> None:
    assert encode_status(record) == (key.encode(), as_bytes(value))
    assert decode_status(key.encode(), as_bytes(value)) == record


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("session-key", '{"key":"x","algorithm":"HmacSHA256","creation-timestamp":1}'),
        ("session-key", '{"key":"a2V5","algorithm":"HmacSHA256"}'),
        ("session-key-2", '{"key":"a2V5","algorithm":"HmacSHA256","creation-timestamp":1}'),
        ("session-key", None),
        ("something-else", "{}"),
        ("connector-c", "not json"),
        ("connector-c", '{"properties":[]}'),
        ("connector-c", "[]"),
        ("task-c-x", '{"properties":{}}'),
        ("task-c-1", None),
        ("commit-c", '{"tasks":"2"}'),
        ("commit-c", None),
        ("target-state-c", '{"state":"ASLEEP"}'),
        ("restart-connector-c", None),
        ("tasks-fencing-c", '{"task-count":null}'),
        ("logger-cluster-x", "{}"),
    ],
)
def test_config_records_of_other_kinds_and_damaged_ones_are_passed_over(key: str, value: str | None) -> None:
    assert decode_config(key.encode(), as_bytes(value)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("status-connector-c", "{}"),
        ("status-connector-c", '{"state":"RUNNING","worker_id":"w","generation":"x"}'),
        ("status-task-c", '{"state":"RUNNING","worker_id":"w","generation":1}'),
        ("status-task-c-x", None),
        ("status-topic-t", None),
        ("status-topic-t:connector-c", '{"topic":{}}'),
        ("status-topic-t:connector-c", "{}"),
        ("else", None),
    ],
)
def test_status_records_of_other_kinds_and_damaged_ones_are_passed_over(key: str, value: str | None) -> None:
    assert decode_status(key.encode(), as_bytes(value)) is None


def test_an_old_workers_target_state_counts_where_the_new_one_is_missing_or_unknown() -> None:
    for value in ('{"state":"PAUSED"}', '{"state":"PAUSED","state.v2":"DREAMING"}'):
        assert decode_config(b"target-state-c", value.encode()) == TargetStateRecord("c", "PAUSED")


def test_values_that_are_no_strings_become_strings() -> None:
    value = b'{"properties":{"a":1,"b":true,"c":null}}'
    assert decode_config(b"connector-c", value) == ConnectorConfigRecord("c", {"a": "1", "b": "true"})


def test_a_status_without_a_version_is_an_older_workers() -> None:
    value = b'{"state":"RUNNING","trace":null,"worker_id":"w","generation":1}'
    assert decode_status(b"status-connector-c", value) == ConnectorStatusRecord("c", Status("RUNNING", "w", 1))


@given(key=st.binary(), value=st.none() | st.binary())
def test_no_bytes_at_all_make_a_reader_stumble(key: bytes, value: bytes | None) -> None:
    for prefix in (b"", b"connector-", b"task-", b"status-task-", b"status-topic-"):
        decode_config(prefix + key, value)
        decode_status(prefix + key, value)


@given(
    name=st.text(min_size=1),
    config=st.dictionaries(st.text(), st.text()),
    task=st.integers(min_value=0, max_value=10_000),
)
def test_every_connector_comes_back_as_it_was_written(name: str, config: dict[str, str], task: int) -> None:
    for record in (ConnectorConfigRecord(name, config), TaskConfigRecord(name, task, config)):
        assert decode_config(*encode_config(record)) == record
    status = TaskStatusRecord(name, task, Status("RUNNING", name, task, name, None))
    assert decode_status(*encode_status(status)) == status
