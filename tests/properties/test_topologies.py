"""Flows over random topologies of two to four clusters: topics spread, settle, and never come home."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import example, given
from hypothesis import strategies as st

from heliograph.config.resolve.settings import Settings
from heliograph.mirror.topics.topic_rules import TopicRules
from heliograph.mirror.topics.topology import Topology
from heliograph.model import Flow

CLUSTERS = ("A", "B", "C", "D")
Place = tuple[str, str]

flows = st.sets(
    st.tuples(st.sampled_from(CLUSTERS), st.sampled_from(CLUSTERS)).filter(lambda pair: pair[0] != pair[1]),
    min_size=1,
    max_size=12,
).map(lambda pairs: [Flow(*pair) for pair in sorted(pairs)])
# Names that look like copies, too.
topics = st.sets(
    st.sampled_from(["orders", "pay", "heartbeats", "x.y", "A.orders", "B.C.pay", "eu-pay", "pay-raw", "a.heartbeats"]),
    min_size=1,
    max_size=4,
)
owners = st.dictionaries(st.sampled_from(CLUSTERS), topics, min_size=1)
separators = st.sampled_from([".", "_", "-", "::"])
MAPS = ("orders=eu-orders", "(.*)=eu-$1", "orders=all-orders, pay=B-pay", "(pay|orders)=$1-copy, (.*)=c-$1")


def spread(all_rules: Mapping[Flow, TopicRules], start: Mapping[str, set[str]]) -> dict[Place, set[Place]]:
    """Run all flows until nothing is new; gives for each topic on a cluster what it was directly copied from."""
    made_from: dict[Place, set[Place]] = {(cluster, topic): set() for cluster in start for topic in start[cluster]}
    for _ in range(20):
        before = {place: len(sources) for place, sources in made_from.items()}
        for flow, rules in all_rules.items():
            held = [topic for cluster, topic in made_from if cluster == flow.source]
            for topic in rules.chosen(held):
                made_from.setdefault((flow.target, rules.remote_topic(topic)), set()).add((flow.source, topic))
        if before == {place: len(sources) for place, sources in made_from.items()}:
            return made_from
    raise AssertionError(f"names still grow: {sorted(made_from)[:20]}")


def ancestors(made_from: Mapping[Place, set[Place]], place: Place) -> set[Place]:
    found: set[Place] = set()
    waiting = [place]
    while waiting:
        for source in made_from[waiting.pop()] - found:
            found.add(source)
            waiting.append(source)
    return found


def assert_nothing_comes_home(made_from: Mapping[Place, set[Place]]) -> None:
    for cluster, topic in made_from:
        assert cluster not in {origin for origin, _ in ancestors(made_from, (cluster, topic))}, (cluster, topic)


def rules_of(settings: Mapping[Flow, Settings]) -> dict[Flow, TopicRules]:
    topology = Topology.of(settings)
    return {flow: TopicRules.of(values, topology) for flow, values in settings.items()}


def flow_settings(flow: Flow, values: Mapping[str, str]) -> Settings:
    return Settings({"source.cluster.alias": flow.source, "target.cluster.alias": flow.target, **values})


@given(flows, owners, separators)
@example([Flow("A", "B"), Flow("B", "A")], {"A": {"orders"}, "B": {"orders"}}, ".")
def test_no_cycle_in_any_topology(pairs: list[Flow], start: dict[str, set[str]], separator: str) -> None:
    settings = {flow: flow_settings(flow, {"replication.policy.separator": separator}) for flow in pairs}
    made_from = spread(rules_of(settings), start)
    assert_nothing_comes_home(made_from)
    for cluster, topic in made_from:
        hops = len(ancestors(made_from, (cluster, topic)))
        assert hops <= len(CLUSTERS) - 1
        assert hops == 0 or topic.count(separator) >= hops


@given(st.data())
def test_active_active_has_each_topic_once_and_once_from_the_other_side(data: st.DataObject) -> None:
    own = {cluster: data.draw(st.sets(st.sampled_from(["t", "u", "v"]))) for cluster in "AB"}
    settings = {flow: flow_settings(flow, {}) for flow in (Flow("A", "B"), Flow("B", "A"))}
    expected = {(cluster, topic) for cluster in "AB" for topic in own[cluster]}
    expected |= {("B", f"A.{topic}") for topic in own["A"]} | {("A", f"B.{topic}") for topic in own["B"]}
    assert set(spread(rules_of(settings), own)) == expected


@given(flows, owners, st.data())
def test_no_cycle_where_every_flow_has_a_map_of_its_own(
    pairs: list[Flow], start: dict[str, set[str]], data: st.DataObject
) -> None:
    settings = {
        flow: flow_settings(
            flow,
            {
                "replication.policy.class": "RenameReplicationPolicy",
                "heliograph.rename.topics": data.draw(st.sampled_from(MAPS), label=str(flow)),
            },
        )
        for flow in pairs
    }
    assert_nothing_comes_home(spread(rules_of(settings), start))


@given(flows, owners)
def test_heartbeats_do_not_circle_where_names_are_kept(pairs: list[Flow], start: dict[str, set[str]]) -> None:
    values = {"replication.policy.class": "IdentityReplicationPolicy", "topics": "nothing"}
    settings = {flow: flow_settings(flow, values) for flow in pairs}
    assert_nothing_comes_home(spread(rules_of(settings), start))


@given(flows, owners)
def test_names_that_are_kept_settle_where_flows_go_one_way(pairs: list[Flow], start: dict[str, set[str]]) -> None:
    one_way = [flow for flow in pairs if flow.source < flow.target]
    values = {"replication.policy.class": "IdentityReplicationPolicy"}
    settings = {flow: flow_settings(flow, values) for flow in one_way}
    assert_nothing_comes_home(spread(rules_of(settings), start))
