"""The same records with gaps, copied by Java MM2 and by us: where groups go on after each translation."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.model import TopicPartition
from tests.broker.test_offset_syncs import known_from, syncs_on, write_transactions
from tests.interop.gateway import Java
from tests.interop.translating import java_copying, java_translations, judge, pairs_of
from tests.support.clusters.clients import make_topic
from tests.support.runs.copying import Copy

pytestmark = pytest.mark.broker


@pytest.mark.slow
def test_our_translation_beside_javas(
    java: Java, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic)
    tp = TopicPartition(topic, 0)
    ours, javas = f"{alias}-he", f"{alias}-java"
    write_transactions(source, topic, f"{alias}-first", 1, seed=1)
    with java_copying(tmp_path, source, target, javas, tp):
        write_transactions(source, topic, alias, 80, seed=11)

    syncs = syncs_on(source, ours)
    copy = Copy(source, target, ours, topic)
    copy.once(syncs=syncs)

    pairs = pairs_of(source, target, tp, copy.remote)
    positions = random.Random(1).sample(range(pairs.upstream[-1] + 2), 300)
    known = known_from(source, syncs)
    our_verdict = judge(pairs, {position: known.translate(tp, position) for position in positions})
    translated = java_translations(java, source, target, javas, tp, positions)
    java_verdict = judge(pairs_of(source, target, tp, f"{javas}.{topic}"), translated)
    print(f"Heliograph: {our_verdict}\nJava MM2:   {java_verdict}")
    assert (our_verdict.exact, our_verdict.passed_over) == (300, 0)
    assert java_verdict.passed_over == 0
    assert java_verdict.read_again > 0, "Java has become exact: the comparison can go"
