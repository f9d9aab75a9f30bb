"""`heliograph demo`: the main job in a minute, on two real clusters of its own, with proof at the end.

The story is the active-passive lab's: products are sent to `es-src`, replicated to `es-tgt` as `es-src.products`,
read on both sides. Everything it starts it stops, and everything it writes it deletes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from heliograph.cli.kafka import fetch_progress
from heliograph.embedded.cluster import EmbeddedCluster, find_cluster, forget_cluster, start_cluster
from heliograph.errors import EmbeddedError, HeliographError

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE, TARGET, TOPIC, PARTITIONS, PRODUCTS = "es-src", "es-tgt", "products", 3, 100
_NAMES = ("Carrots", "Banana", "Salad", "Avocado", "Tomato")


class SeenRecord(NamedTuple):
    """Everything of a record that must arrive unchanged."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


@click.command()
def demo() -> None:
    """Start two clusters, replicate 100 products, prove that both sides are equal, clean up."""
    began = time.monotonic()
    with ExitStack() as cleanup, tempfile.TemporaryDirectory(prefix="heliograph-demo-") as folder:
        source = _start(SOURCE, Path(folder), cleanup.callback)
        target = _start(TARGET, Path(folder), cleanup.callback)
        _step(f"Sending {PRODUCTS} products to '{TOPIC}' on {SOURCE}")
        _send_products(source.bootstrap)
        file = Path(folder) / "es-src-to-es-tgt.properties"
        file.write_text(_properties(source, target))
        _step("Replicating with this file, as connect-mirror-maker.sh would read it:")
        click.echo("".join(f"    {line}\n" for line in file.read_text().splitlines()))
        _replicate(file)
        _step("Reading both sides")
        _prove(_read(source.bootstrap, TOPIC), _read(target.bootstrap, f"{SOURCE}.{TOPIC}"))
        _step("Stopping the clusters")
    click.echo(f"""
Done in {time.monotonic() - began:.0f} s. Where to go next:
    heliograph kafka start A --port 9092        a cluster to play with, and another: B --port 9192
    heliograph run mm2.properties               replicate until Ctrl-C, with your MM2 file
    heliograph run mm2.properties --once        copy what is there now, then exit: for migrations
    README.md, ARCHITECTURE.md, docs/guides/    how it works and how to run it""")


def _step(words: str) -> None:
    click.secho(f"==> {words}", bold=True)


def _start(name: str, folder: Path, on_exit: Callable[..., object]) -> EmbeddedCluster:
    _step(f"Starting the Kafka cluster {name}")
    demo_name = f"demo-{name}"
    left = find_cluster(demo_name)
    if left is not None and left.running:
        raise EmbeddedError(f"Another demo is running: stop it with 'heliograph kafka stop {demo_name}'.")
    with fetch_progress() as on_progress:
        cluster = start_cluster(demo_name, data=folder / name, on_progress=on_progress)
    on_exit(forget_cluster, demo_name)
    on_exit(cluster.stop)
    click.echo(f"    {cluster.bootstrap}, Apache Kafka {cluster.version}")
    return cluster


def _product(number: int) -> dict[str, object]:
    chance = random.Random(number)  # noqa: S311  (temperatures, not secrets)
    known = number < len(_NAMES)
    return {
        "product_id": f"P{number + 1:02d}" if known else f"T{number - len(_NAMES) + 1}",
        "description": _NAMES[number] if known else f"Product {number - len(_NAMES) + 1}",
        "target_temperature": round(chance.uniform(1, 7), 2),
        "target_humidity_level": 0.4,
        "content_type": chance.choice((1, 2)),
    }


def _send_products(bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({TOPIC: {"num_partitions": PARTITIONS, "replication_factor": 1}}, wait_for_metadata=True)
    admin.close()
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(PRODUCTS):
        product = _product(number)
        key = str(product["product_id"])
        if number < len(_NAMES):
            click.echo(f"    {json.dumps(product)}")
        headers = [("content-type", b"application/json"), ("lab", b"active-passive")]
        producer.send(TOPIC, key=key.encode(), value=json.dumps(product).encode(), headers=headers)
    producer.flush()
    producer.close()
    click.echo(f"    ... and {PRODUCTS - len(_NAMES)} more")


def _properties(source: EmbeddedCluster, target: EmbeddedCluster) -> str:
    return f"""\
clusters = {SOURCE}, {TARGET}
{SOURCE}.bootstrap.servers = {source.bootstrap}
{TARGET}.bootstrap.servers = {target.bootstrap}
{SOURCE}->{TARGET}.enabled = true
{SOURCE}->{TARGET}.topics = {TOPIC}
replication.factor = 1
offset.storage.replication.factor = 1
"""


def _replicate(file: Path) -> None:
    if subprocess.run([sys.executable, "-m", "heliograph", "run", str(file), "--once"], check=False).returncode:
        raise HeliographError("The replication failed; see the lines above.")


def _read(bootstrap: str, topic: str) -> list[SeenRecord]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(partitions)
    seen: list[SeenRecord] = []
    while any(consumer.position(tp) < ends[tp] for tp in partitions):
        for records in consumer.poll(timeout_ms=1000).values():
            seen += [SeenRecord(r.partition, r.key, r.value, tuple(r.headers), r.timestamp) for r in records]
    consumer.close()
    return sorted(seen, key=lambda record: (record.partition, record.timestamp_ms, record.key or b""))


def _prove(source: list[SeenRecord], target: list[SeenRecord]) -> None:
    if len(source) != PRODUCTS or len(target) != PRODUCTS:
        raise HeliographError(
            f"{len(source)} records on {SOURCE}, {len(target)} on {TARGET}: expected {PRODUCTS} each."
        )
    for name in SeenRecord._fields:
        if [getattr(record, name) for record in source] != [getattr(record, name) for record in target]:
            raise HeliographError(f"The {name} of some record differs between {SOURCE} and {TARGET}.")
        click.echo(f"    {name:13} equal in all {PRODUCTS} records")
