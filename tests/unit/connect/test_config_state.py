"""What a worker makes of its config topic's records, in the order they come."""

from __future__ import annotations

from heliograph.connect.storage.config_store import ConfigChanges, ConfigState, StoredConnector
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
)

CREATED = ConnectorConfigRecord("c", {"a": "1"})


def after(*records: ConfigRecord) -> tuple[ConfigState, ConfigChanges]:
    state, changes = ConfigState(), ConfigChanges()
    for record in records:
        state.take(record, changes)
    return state, changes


def test_a_connector_is_wanted_started_until_somebody_says_otherwise() -> None:
    assert after(CREATED)[0].connectors == {"c": StoredConnector({"a": "1"}, "STARTED")}
    assert after(CREATED, TargetStateRecord("c", "PAUSED"))[0].connectors["c"].target_state == "PAUSED"


def test_of_session_keys_the_last_two_count() -> None:
    keys = [SessionKeyRecord(bytes([number]), number) for number in range(3)]
    assert after(*keys)[0].session_keys == (keys[2], keys[1])
    assert "\\x02" not in repr(keys[2])


def test_a_target_state_may_come_before_its_connector() -> None:
    assert after(TargetStateRecord("c", "STOPPED"), CREATED)[0].connectors["c"].target_state == "STOPPED"


def test_tasks_count_only_with_their_commit_and_all_at_once() -> None:
    first, second = TaskConfigRecord("c", 0, {"t": "0"}), TaskConfigRecord("c", 1, {"t": "1"})
    assert after(CREATED, first, second)[0].connectors["c"].task_configs == ()
    state, changes = after(CREATED, first, second, CommitRecord("c", 2))
    assert state.connectors["c"].task_configs == ({"t": "0"}, {"t": "1"})
    assert changes.tasks == {"c"}


def test_an_incomplete_set_keeps_the_old_tasks_and_is_marked_inconsistent() -> None:
    old = [TaskConfigRecord("c", 0, {"t": "old"}), CommitRecord("c", 1)]
    state, _changes = after(CREATED, *old, TaskConfigRecord("c", 1, {"t": "new"}), CommitRecord("c", 2))
    assert state.connectors["c"].task_configs == ({"t": "old"},)
    assert state.connectors["c"].is_consistent is False
    for record in (TaskConfigRecord("c", 0, {"t": "new"}), CommitRecord("c", 2)):
        state.take(record, ConfigChanges())
    assert state.connectors["c"] == StoredConnector({"a": "1"}, "STARTED", ({"t": "new"}, {"t": "new"}), True)


def test_fewer_tasks_than_before_leave_the_others_out() -> None:
    records = [TaskConfigRecord("c", n, {"t": str(n)}) for n in range(3)]
    state, _changes = after(CREATED, *records, CommitRecord("c", 1))
    assert state.connectors["c"].task_configs == ({"t": "0"},)


def test_no_tasks_at_all_are_a_complete_set() -> None:
    state, _changes = after(CREATED, TaskConfigRecord("c", 0, {}), CommitRecord("c", 1), CommitRecord("c", 0))
    assert state.connectors["c"].task_configs == ()
    assert state.connectors["c"].is_consistent


def test_a_deleted_connector_takes_its_tasks_along_and_may_come_back() -> None:
    lived = [CREATED, TaskConfigRecord("c", 0, {}), CommitRecord("c", 1), TargetStateRecord("c", "PAUSED")]
    gone = [ConnectorConfigRecord("c", None), TargetStateRecord("c", None)]
    assert after(*lived, *gone)[0].connectors == {}
    assert after(*lived, *gone, CREATED)[0].connectors == {"c": StoredConnector({"a": "1"})}


def test_leftovers_of_a_connector_that_compaction_has_removed_are_nothing() -> None:
    state, _changes = after(TaskConfigRecord("c", 0, {"t": "0"}), CommitRecord("c", 1), CREATED)
    assert state.connectors == {"c": StoredConnector({"a": "1"})}


def test_what_somebody_asked_for_is_handed_on() -> None:
    restart, level = RestartRecord("c", True, False), LoggerRecord("root", "DEBUG")
    state, changes = after(CREATED, restart, level, TaskCountRecord("c", 4), TargetStateRecord("c", "PAUSED"))
    assert (changes.log_levels, changes.restarts) == ([level], [restart])
    assert (changes.configs, changes.target_states) == ({"c"}, {"c"})
    assert state.connectors["c"].fenced_tasks == 4
    state.take(TaskCountRecord("c", None), changes)
    assert state.connectors["c"].fenced_tasks is None
