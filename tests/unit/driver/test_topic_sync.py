"""New topics that we may not see, or that get no leader: they are reported, and the others are copied."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import pytest

from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.topic_sync import TopicSync
from heliograph.kafka.admin.admin import Admin, ClusterView
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED, BrokerRefusal
from heliograph.kafka.security.connection_spec import Security
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.model import AddPartitions, Address, ConfigEntry, CreateTopic, Flow, TopicPartition
from tests.support.config_files import FakeLookup, minimal

TOPICS = [f"t{n}" for n in range(50)]
REMOTE = [f"A.{topic}" for topic in TOPICS]


class Cluster(Admin):
    """Topics of a cluster; some are hidden, and some partitions have no leader for a time, or for ever."""

    def __init__(self, alias: str, topics: dict[str, int]) -> None:
        super().__init__(alias, (), Security(), "test", timeout_s=0.0)
        self.topics = dict(topics)
        self.hidden: set[str] = set()
        self.unusable: frozenset[str] = frozenset()
        self.leaderless: set[TopicPartition] = set()
        self.asked: list[set[str]] = []
        self.before_view: Callable[[], None] = lambda: None

    def view(self, topics: Iterable[str] | None = None) -> ClusterView:
        self.before_view()
        asked = set(self.topics if topics is None else topics)
        self.asked.append(asked)
        shown = {topic: count for topic, count in self.topics.items() if topic in asked - self.hidden}
        tps = [TopicPartition(topic, n) for topic, count in shown.items() for n in range(count)]
        leaders = {tp: -1 if tp in self.leaderless else 1 for tp in tps}
        errors = dict.fromkeys(asked & self.hidden, TOPIC_AUTHORIZATION_FAILED)
        return ClusterView({1: Address("b", 1)}, 1, shown, leaders, errors, self.unusable)

    def described_configs(
        self,
        topics: Iterable[str],
        needs: str = "",  # noqa: ARG002  (as Admin has it)
    ) -> tuple[dict[str, tuple[ConfigEntry, ...]], dict[str, BrokerRefusal]]:
        return dict.fromkeys(topics, ()), {}

    def create_topics(self, topics: Iterable[CreateTopic]) -> dict[str, BrokerRefusal]:
        self.topics |= {topic.name: topic.partition_count for topic in topics}
        return {}

    def add_partitions(self, topics: Iterable[AddPartitions]) -> dict[str, BrokerRefusal]:
        self.topics |= {topic.name: topic.partition_count for topic in topics}
        return {}


@pytest.fixture
def source() -> Cluster:
    return Cluster("A", dict.fromkeys(TOPICS, 2))


@pytest.fixture
def target() -> Cluster:
    return Cluster("B", {})


@pytest.fixture
def sync(source: Cluster, target: Cluster) -> TopicSync:
    config, flow = load(minimal("A->B.topics=t.*"), FakeLookup()), Flow("A", "B")
    return TopicSync(config.settings(flow), topic_rules(config, flow), source, target)


def partitions(*left_out: TopicPartition) -> list[TopicPartition]:
    return [tp for topic in TOPICS for n in range(2) if (tp := TopicPartition(topic, n)) not in left_out]


def test_a_topic_that_may_be_made_and_not_seen_keeps_no_other_from_being_copied(
    sync: TopicSync, target: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    target.hidden = {"A.t7"}
    for _round in range(2):
        replicated = sync.sync()
        assert sorted(replicated.partitions) == sorted(partitions(TopicPartition("t7", 0), TopicPartition("t7", 1)))
        assert replicated.issues == (
            "The topics A.t7 on 'B' cannot be used yet: the principal needs DESCRIBE on the topic",
        )
    assert not [reported for reported in caplog.messages if "A.t7 " in reported]
    target.hidden = set()
    again = sync.sync()
    assert (sorted(again.partitions), again.issues) == (sorted(partitions()), ())


def test_a_topic_without_a_leader_keeps_no_other_from_being_copied(sync: TopicSync, target: Cluster) -> None:
    target.leaderless = {TopicPartition("A.t7", 1)}
    replicated = sync.sync()
    assert sorted(replicated.partitions) == sorted(partitions(TopicPartition("t7", 0), TopicPartition("t7", 1)))
    assert replicated.issues == ("The topics A.t7 on 'B' cannot be used yet: partition 1 has no leader",)


def test_a_topic_that_grows_without_a_leader_is_copied_as_far_as_it_was(sync: TopicSync, target: Cluster) -> None:
    target.topics = dict.fromkeys(REMOTE, 1)
    target.leaderless = {TopicPartition("A.t7", 1)}
    replicated = sync.sync()
    assert sorted(replicated.partitions) == sorted(partitions(TopicPartition("t7", 1)))
    assert replicated.issues == ("The topics A.t7 on 'B' cannot be used yet: partition 1 has no leader",)


@pytest.mark.parametrize("hides", ["source", "target"])
def test_a_topic_that_is_hidden_while_it_is_replicated_stays_replicated(
    sync: TopicSync, source: Cluster, target: Cluster, hides: str
) -> None:
    before = sync.sync()
    if hides == "source":
        source.hidden = {"t7"}
    else:
        target.hidden = {"A.t7"}
    hidden = sync.sync(before)
    assert sorted(hidden.partitions) == sorted(partitions())
    assert hidden.remote_topics == before.remote_topics
    again = sync.sync(hidden)
    assert sorted(again.partitions) == sorted(partitions())
    source.hidden = set()
    del source.topics["t7"]
    gone = sync.sync(again)
    assert sorted(gone.partitions) == sorted(partitions(TopicPartition("t7", 0), TopicPartition("t7", 1)))


def test_partitions_that_the_target_lacks_are_named_with_the_reason(sync: TopicSync, target: Cluster) -> None:
    target.topics = dict.fromkeys(REMOTE, 1)
    target.leaderless = {TopicPartition("A.t7", 1)}
    assert sync.sync().lacking == {
        TopicPartition("t7", 1): "the target has no partition 1 of A.t7: partition 1 has no leader"
    }
    target.leaderless = set()
    assert sync.sync().lacking == {}


def test_only_topics_that_lack_a_leader_are_asked_for_again(target: Cluster) -> None:
    def elect() -> None:
        if len(target.asked) == 3:
            target.leaderless = set()

    target.timeout_s = 3600.0
    target.topics = dict.fromkeys(REMOTE, 2)
    target.hidden = {"A.t8"}
    target.leaderless, target.before_view = {TopicPartition("A.t7", 1)}, elect
    assert target.wait_for_leaders(dict.fromkeys(REMOTE, 2)).keys() == {"A.t8"}
    assert target.asked == [set(REMOTE), {"A.t7"}, {"A.t7"}, {"A.t7"}]


class Listing(Admin):
    """A cluster that answers with any names."""

    def __init__(self, names: list[str]) -> None:
        super().__init__("A", (), Security(), "test", timeout_s=0.0)
        self.names = names

    def ask_any(self, *_request: object, **_versions: object) -> SimpleNamespace:
        partition = SimpleNamespace(partition_index=0, leader_id=1)
        topics = [SimpleNamespace(name=name, partitions=[partition], error_code=0) for name in self.names]
        return SimpleNamespace(topics=topics, brokers=[], controller_id=1)


def test_names_that_kafka_does_not_allow_are_left_out_of_what_a_cluster_lists() -> None:
    bad = ["t" * 250, "t t", "t\n", "..", "", "t/é"]
    view = Listing(["t1", *bad]).view()
    assert view.partition_counts == {"t1": 1}
    assert view.leaders == {TopicPartition("t1", 0): 1}
    assert view.unusable == set(bad)


def test_names_that_are_left_out_are_reported_and_the_others_are_copied(sync: TopicSync, source: Cluster) -> None:
    source.unusable = frozenset({"t\n"})
    for _round in range(2):
        replicated = sync.sync()
        assert sorted(replicated.partitions) == sorted(partitions())
        assert replicated.issues == ("'A' lists topics with invalid names; they are left out: 't\\n'",)
