"""Changes of many topics go to the controller in requests it takes: KRaft refuses all of one that is too large."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.security.connection_spec import Security
from heliograph.model import AddPartitions, CreateTopic

MOST = 10_000  # partitions in a request, and records in an operation
POLICY_VIOLATION = 44


class Controller(Admin):
    """Answers as a KRaft controller does; keeps the names of each request, and its weight."""

    def __init__(self) -> None:
        super().__init__("B", (), Security(), "test", timeout_s=1.0)
        self.requests: list[list[str]] = []
        self.weights: list[int] = []

    def ask_controller(self, _request: Any, _response: Any, build: Any, *, newest: int, codes: Any) -> Any:
        topics = build(newest).topics
        self.requests.append([topic.name for topic in topics])
        self.weights.append(sum(self._weight(topic) for topic in topics))
        code = POLICY_VIOLATION if self.weights[-1] > MOST else 0
        results = [SimpleNamespace(name=topic.name, error_code=code, error_message="too many") for topic in topics]
        answer = SimpleNamespace(topics=results, results=results)
        assert codes(answer) == [code] * len(topics)
        return answer

    @staticmethod
    def _weight(topic: Any) -> int:
        return topic.count if hasattr(topic, "count") else 1 + topic.num_partitions + len(topic.configs)


@pytest.fixture
def controller() -> Controller:
    return Controller()


def names(requests: list[list[str]]) -> list[str]:
    return [name for request in requests for name in request]


@pytest.mark.parametrize(
    ("partitions", "configs"), [(60, ()), (1, tuple((f"config.{n}", "1") for n in range(60)))], ids=["large", "rich"]
)
def test_topics_are_created_in_requests_the_controller_takes(
    controller: Controller, partitions: int, configs: tuple[tuple[str, str], ...]
) -> None:
    topics = [CreateTopic(f"A.t{n}", partitions, 3, configs) for n in range(400)]
    assert controller.create_topics(topics) == {}
    assert names(controller.requests) == [topic.name for topic in topics]


def test_topics_grow_in_requests_the_controller_takes(controller: Controller) -> None:
    topics = [AddPartitions(f"A.t{n}", 60) for n in range(2000)]
    assert controller.add_partitions(topics) == {}
    assert names(controller.requests) == [topic.name for topic in topics]


def test_a_topic_above_the_limit_is_refused_alone(controller: Controller) -> None:
    topics = [CreateTopic("a", 10, 3, ()), CreateTopic("huge", 20_000, 3, ()), CreateTopic("z", 10, 3, ())]
    assert controller.create_topics(topics).keys() == {"huge"}
    grows = [AddPartitions("a", 10), AddPartitions("huge", 20_000), AddPartitions("z", 10)]
    assert controller.add_partitions(grows).keys() == {"huge"}
    assert controller.requests == [["a"], ["huge"], ["z"]] * 2


def test_small_topics_share_few_requests(controller: Controller) -> None:
    controller.create_topics(CreateTopic(f"A.t{n}", 1, 3, ()) for n in range(401))
    assert [len(request) for request in controller.requests] == [200, 200, 1]


def test_nothing_to_change_sends_no_request(controller: Controller) -> None:
    assert (controller.create_topics([]), controller.add_partitions([])) == ({}, {})
    assert controller.requests == []
