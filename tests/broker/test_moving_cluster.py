"""Brokers that die, stop answering and come back: the copy waits, retries, and neither loses nor repeats."""

from __future__ import annotations

import signal

import pytest

from heliograph.embedded.cluster import EmbeddedCluster, find_cluster
from tests.clients import make_topic, read, write
from tests.copying import Copy, HandLease, wait_for

pytestmark = pytest.mark.broker

RECORDS = 60_000


def numbered(start: int, count: int) -> list[dict[str, object]]:
    return [{"value": f"{n}".encode(), "partition": n % 3} for n in range(start, start + count)]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_target_broker_goes_away_in_mid_copy(
    source: EmbeddedCluster, three_brokers: EmbeddedCluster, topic: str, alias: str, how: signal.Signals
) -> None:
    make_topic(source, topic, 3)
    write(source, topic, numbered(0, RECORDS), **{"batch.size": 1500})
    copy = Copy(source, three_brokers, alias, topic, partitions=3)
    copied = [0]
    lease = HandLease(lambda report: copied.__setitem__(0, sum(row.records for row in report.partitions)))
    join = copy.background(lease)
    wait_for(lambda: any(map(len, read(three_brokers, copy.remote, 3).values())))
    known = find_cluster(three_brokers.name)
    assert known is not None
    victim = known.broker_process(2)
    victim.send_signal(how)
    write(source, topic, numbered(RECORDS, 3000))
    if how is signal.SIGKILL:
        victim.wait(10)
        known.start_broker(2)
    else:
        wait_for(lambda: lease.reports and any(row.trouble for row in lease.reports[-1].partitions), 90)
        victim.send_signal(signal.SIGCONT)
    wait_for(lambda: copied[0] >= RECORDS + 3000, 120)
    lease.stop_reason = "test"
    join()
    assert read(three_brokers, copy.remote, 3) == read(source, topic, 3)
