"""Taking over the producers of earlier instances: none is left out, and errors say what prevents it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kafka.protocol.admin import ListTransactionsRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import InitProducerIdRequest

from heliograph.errors import ClusterError
from heliograph.kafka.admin.admin import Admin
from heliograph.kafka.admin.producer_fencing import fence_producers
from heliograph.kafka.security.connection_spec import Security
from tests.support.brokers.scripted_broker import ScriptedCluster, Seen

LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
INVALID_TIMEOUT, CONCURRENT, ID_DENIED = 50, 51, 53


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    with ScriptedCluster(2, topics={}) as scripted:
        scripted.transactional_ids = ["flow-0", "flow-7", "flow-x", "another-1"]
        yield scripted


@pytest.fixture
def admin(cluster: ScriptedCluster) -> Iterator[Callable[[float], Admin]]:
    made = []

    def make(timeout_s: float) -> Admin:
        made.append(Admin("B", cluster.bootstrap, Security(), "test", timeout_s=timeout_s))
        return made[-1]

    yield make
    for each in made:
        each.close()


def fenced(cluster: ScriptedCluster) -> list[str]:
    return [request.transactional_id for request in cluster.requests(InitProducerIdRequest)]


def test_every_id_of_the_flow_is_taken_over_and_no_other(
    cluster: ScriptedCluster, admin: Callable[[float], Admin]
) -> None:
    assert fence_producers(admin(60), "flow-") == ("flow-0", "flow-7")
    assert fenced(cluster) == ["flow-0", "flow-7"]


def test_a_broker_that_still_loads_its_coordinators_is_waited_for(
    cluster: ScriptedCluster, admin: Callable[[float], Admin]
) -> None:
    cluster.script(ListTransactionsRequest, LOADING, LOADING)
    fence_producers(admin(60), "flow-")
    assert fenced(cluster) == ["flow-0", "flow-7"]


def test_ids_that_moved_while_a_broker_was_waited_for_are_found(
    cluster: ScriptedCluster, admin: Callable[[float], Admin]
) -> None:
    """The first broker tells that it has none; the second is loading; then the ids are the first one's."""

    def moved(seen: Seen) -> object:
        cluster.coordinator = 1
        return cluster.ordinary(seen, LOADING)

    cluster.coordinator = 2
    cluster.script(ListTransactionsRequest, None, moved)
    fence_producers(admin(60), "flow-")
    assert fenced(cluster) == ["flow-0", "flow-7"]


def test_a_broker_that_never_tells_its_ids_lets_nothing_begin(
    cluster: ScriptedCluster, admin: Callable[[float], Admin]
) -> None:
    cluster.script(ListTransactionsRequest, *[LOADING] * 1000)
    with pytest.raises(ClusterError, match="does not list its transactional ids: COORDINATOR_LOAD_IN_PROGRESS"):
        fence_producers(admin(1.5), "flow-")
    assert fenced(cluster) == []


def test_a_target_that_lists_no_ids_has_the_first_ones_taken_over(
    cluster: ScriptedCluster, admin: Callable[[float], Admin]
) -> None:
    cluster.newest[ListTransactionsRequest] = -1
    assert fence_producers(admin(60), "flow-") == tuple(f"flow-{n}" for n in range(16))
    assert len(fenced(cluster)) == 16


def test_a_coordinator_that_is_not_in_the_metadata_is_asked_all_the_same(
    cluster: ScriptedCluster, admin: Callable[[float], Admin]
) -> None:
    """It came back a moment ago; an id whose coordinator is not found must not count as taken over."""
    client = admin(60)
    view = client.view([])
    client.view = lambda _topics=None: view._replace(brokers={1: view.brokers[1]})  # type: ignore[method-assign]

    def moved(seen: Seen) -> object:
        answer = cluster.ordinary(seen)
        cluster.coordinator = 2
        return answer

    cluster.script(ListTransactionsRequest, moved)
    fence_producers(client, "flow-")
    assert [seen.node_id for seen in cluster.seen_of(InitProducerIdRequest)] == [2, 2]


@pytest.mark.parametrize("code", [CONCURRENT, LOADING, NOT_COORDINATOR])
def test_what_passes_is_waited_for(cluster: ScriptedCluster, admin: Callable[[float], Admin], code: int) -> None:
    cluster.script(InitProducerIdRequest, code, code)
    cluster.script(FindCoordinatorRequest, NOT_AVAILABLE)
    fence_producers(admin(60), "flow-")
    assert fenced(cluster) == ["flow-0", "flow-0", "flow-0", "flow-7"]


@pytest.mark.parametrize(
    ("request_class", "code", "words"),
    [
        (InitProducerIdRequest, ID_DENIED, "needs WRITE and DESCRIBE on it"),
        (InitProducerIdRequest, INVALID_TIMEOUT, "transaction.max.timeout.ms must be at least 60000"),
        (InitProducerIdRequest, CONCURRENT, "every partition it wrote to has a leader"),
        (FindCoordinatorRequest, NOT_AVAILABLE, "the partitions of __transaction_state have leaders"),
        (FindCoordinatorRequest, ID_DENIED, "needs WRITE and DESCRIBE on it"),
    ],
)
def test_each_refusal_says_what_it_needs(
    cluster: ScriptedCluster, admin: Callable[[float], Admin], request_class: type, code: int, words: str
) -> None:
    cluster.script(request_class, *[code] * 1000)
    with pytest.raises(ClusterError) as caught:
        fence_producers(admin(1.5), "flow-")
    assert "take over the transactional id flow-0" in str(caught.value)
    assert words in str(caught.value)
    assert ("needs WRITE" in str(caught.value)) == (code == ID_DENIED)
