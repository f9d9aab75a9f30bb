"""What a new version of a file means for the flows that run: nothing, a change they adopt, or a restart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.effective.file_changes import Effect, FileChanges, compare_files
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.validate.dedicated_file import load
from heliograph.model import Flow
from tests.support.config_files import FakeLookup, minimal

AB, BA, AC = Flow("A", "B"), Flow("B", "A"), Flow("A", "C")
BOTH = "B->A.enabled=true"
PASSWORD = "A.ssl.keystore.password"


def config_of(*lines: str) -> MirrorMakerConfig:
    return load(minimal(*lines), FakeLookup({"P": "hunter3", "Q": "hunter4"}))


def changes(old: tuple[str, ...], new: tuple[str, ...]) -> FileChanges:
    return compare_files(config_of(*old), config_of(*new))


def test_the_same_file_changes_nothing() -> None:
    same = changes((BOTH,), (BOTH,))
    assert not same
    assert set(same.flows.values()) == {Effect.SAME}
    assert (same.keys, same.checkpoints, same.heartbeats, same.unapplied) == ((), frozenset(), frozenset(), ())


@pytest.mark.parametrize(
    ("line", "effect", "has_checkpoints", "has_heartbeats"),
    [
        ("A->B.topics=orders", Effect.ADOPT, True, False),  # checkpoints are of the groups that read these topics
        ("A->B.refresh.topics.interval.seconds=5", Effect.ADOPT, False, False),
        ("A->B.sync.topic.acls.enabled=false", Effect.ADOPT, False, False),
        ("A->B.heliograph.on.recreated=a=restart, fail", Effect.ADOPT, False, False),
        ("A->B.groups=billing", Effect.SAME, True, False),
        ("A->B.emit.heartbeats.interval.seconds=3", Effect.SAME, False, True),
        ("A->B.tasks.max=3", Effect.RESTART, True, True),
        ("A->B.heliograph.task.buffer.bytes=2000000", Effect.RESTART, False, False),
        ("B.offset.flush.interval.ms=5000", Effect.RESTART, True, True),
        ("B.status.storage.topic=s", Effect.SAME, False, False),  # nothing here reads it
        ("B.producer.linger.ms=5", Effect.RESTART, True, True),
        ("A.consumer.fetch.max.bytes=1000000", Effect.RESTART, True, False),  # heartbeats are written to B
        ("A->B.my.filter.key=x", Effect.RESTART, True, True),
    ],
)
def test_each_part_of_a_flow_changes_only_if_it_reads_the_key(
    line: str, effect: Effect, has_checkpoints: bool, has_heartbeats: bool
) -> None:
    for found in (changes((BOTH,), (BOTH, line)), changes((BOTH, line), (BOTH,))):
        assert found.flows[AB] is effect
        assert (AB in found.checkpoints, AB in found.heartbeats) == (has_checkpoints, has_heartbeats)
        assert [key.name for key in found.keys] == [line.partition("=")[0]]


def test_a_change_of_one_flow_leaves_the_others_as_they_are() -> None:
    found = changes((BOTH,), (BOTH, "B->A.tasks.max=2"))
    assert found.flows == {AB: Effect.SAME, BA: Effect.RESTART}
    assert found.restarted == (BA,)


def test_flows_come_and_go() -> None:
    more = ("clusters=A,B,C", "C.bootstrap.servers=c:1", "A->C.enabled=true")
    assert changes((), more).added == (AC,)
    assert changes(more, ()).removed == (AC,)
    assert changes((), more).flows[AB] is Effect.ADOPT, "cycles are found over all flows"


def test_the_policy_of_another_flow_decides_what_is_a_cycle() -> None:
    found = changes((BOTH,), (BOTH, "B->A.replication.policy.separator=-"))
    assert found.flows == {AB: Effect.ADOPT, BA: Effect.RESTART}


def test_a_value_that_is_written_at_another_place_is_the_same_value() -> None:
    found = changes(("topics=orders",), ("A->B.topics=orders",))
    assert found.flows[AB] is Effect.SAME
    assert [str(key) for key in found.keys] == ["topics was removed", "A->B.topics was added: 'orders'"]


@pytest.mark.parametrize("line", ["listeners=http://:8083", "heliograph.rest.rules.file=/r", "rest.port=1"])
def test_keys_of_the_rest_server_need_a_new_process(line: str) -> None:
    found = changes((), (line,))
    assert found.unapplied == (line.partition("=")[0],)
    assert found.flows == {AB: Effect.SAME}


def test_other_config_providers_restart_everything() -> None:
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    found = changes((BOTH,), (BOTH, "config.providers=e", f"config.providers.e.class={provider}"))
    assert set(found.flows.values()) == {Effect.RESTART}
    assert found.heartbeats == {AB, BA}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"{PASSWORD}=hunter2", f"{PASSWORD}=hunter22"),
        (f"{PASSWORD}=${{env:P}}", f"{PASSWORD}=${{env:Q}}"),
        (f"{PASSWORD}=${{env:P}}", f"{PASSWORD}=hunter22"),
        (
            "A.sasl.jaas.config=o.PlainLoginModule required username=u password=hunter2;",
            "A.sasl.jaas.config=o.PlainLoginModule required username=u password=hunter22;",
        ),
    ],
)
def test_of_a_secret_only_that_it_has_changed_is_shown(old: str, new: str) -> None:
    (key,) = changes((old,), (new,)).keys
    assert str(key) == f"{old.partition('=')[0]} has changed"
    assert "hunter" not in repr(key)
    (added,) = changes((), (new,)).keys
    assert str(added) == f"{new.partition('=')[0]} was added"


def test_a_secret_inside_of_another_value_is_hidden() -> None:
    (key,) = changes(("A->B.my.url=https://u:hunter2@h",), ("A->B.my.url=https://u:hunter3@h",)).keys
    assert str(key) == "A->B.my.url has changed"
    (moved,) = changes(("A->B.my.url=https://u:hunter2@h",), ("A->B.my.url=https://u:hunter2@i",)).keys
    assert "hunter2" not in str(moved)
    assert "'https://[hidden]@i'" in str(moved)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("A.bootstrap.servers", "u:hunter2@a:1"),
        ("A->B.my.key", "SharedAccessSignature sr=x&sig=hunter2"),
        ("A->B.my.key", "SharedAccessSignature sig=hunter2"),
    ],
)
def test_a_secret_in_the_value_of_a_key_that_is_none_is_hidden_however_it_changes(key: str, value: str) -> None:
    line, other = f"{key}={value}", f"{key}=b:1"
    for old, new in ((other, line), (line, other), (line, line.replace("hunter2", "hunter3"))):
        (changed,) = changes((old,), (new,)).keys
        assert "hunter" not in repr(changed)
        assert str(changed).startswith(f"{key} has changed")


def test_a_long_value_is_cut() -> None:
    (key,) = changes((), ("A->B.topics=" + "a," * 5000 + "b",)).keys
    assert len(str(key)) < 300


LINES = st.lists(
    st.sampled_from(
        [
            "A->B.topics=a",
            "topics=b",
            "A->B.tasks.max=2",
            "tasks.max=3",
            "B->A.enabled=true",
            "A.client.id=x",
            "B.producer.acks=all",
            "listeners=http://:1",
            "A->B.groups=g",
        ]
    ),
    unique_by=lambda line: line.partition("=")[0],
)


@given(LINES, LINES)
def test_a_change_and_its_reversal_have_the_same_effect(old: list[str], new: list[str]) -> None:
    there, back = changes(tuple(old), tuple(new)), changes(tuple(new), tuple(old))
    assert dict(there.flows) == dict(back.flows)
    assert (there.added, there.removed) == (back.removed, back.added)
    assert (there.checkpoints, there.heartbeats) == (back.checkpoints, back.heartbeats)
    assert sorted(key.name for key in there.keys) == sorted(key.name for key in back.keys)
    assert bool(there) == (set(old) != set(new))
