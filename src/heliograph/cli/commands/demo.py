"""`heliograph demo`: disaster recovery in a minute, on two real clusters of its own, with proof at the end.

The story is the active-passive lab's: products are sent to `es-src` and replicated to `es-tgt` as `es-src.products`; a
consumer group reads some of them; the source is lost; the group continues from its position on the target. The
demo stops what it starts and deletes what it writes.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
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

from heliograph.cli.output import fetch_progress
from heliograph.client.mirror_client import translate_offsets
from heliograph.embedded.kafka_cluster import EmbeddedCluster, find_cluster, forget_cluster, start_cluster
from heliograph.errors import EmbeddedError, HeliographError

if TYPE_CHECKING:
    from collections.abc import Callable


SOURCE, TARGET, TOPIC, PRODUCTS = "es-src", "es-tgt", "products", 100
REMOTE = f"{SOURCE}.{TOPIC}"
GROUP, READ_AT_SOURCE = "product-readers", 20
_NAMES = ("Carrots", "Banana", "Salad", "Avocado", "Tomato")
_TIMEOUT_S = 60.0


class SeenRecord(NamedTuple):
    """Everything of a record that must arrive unchanged."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


@click.command()
def demo() -> None:
    """Replicate 100 records, stop the source cluster, continue on the target: no record is lost or read twice."""
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
        running = _replicate(file, cleanup.callback)
        _wait(running, "the copy", lambda: _end_offset(target.bootstrap, REMOTE) == PRODUCTS)
        _prove_equal(_read_all(source.bootstrap, TOPIC), _read_all(target.bootstrap, REMOTE))
        _step(f"The group '{GROUP}' reads {READ_AT_SOURCE} products on {SOURCE}")
        first = _read_as_group(source.bootstrap, TOPIC, READ_AT_SOURCE)
        _wait(running, "the checkpoint", lambda: _is_checkpointed(target.bootstrap))
        _command("groups", str(file))
        _step(f"Stopping {SOURCE}")
        source.stop()
        _command("failover", str(file), "--group", GROUP)
        _step(f"The group continues on {TARGET}")
        rest = _read_as_group(target.bootstrap, REMOTE, PRODUCTS - READ_AT_SOURCE)
        _prove_continued(first, rest)
        _step("Stopping")
        running.send_signal(signal.SIGTERM)
        running.wait(_TIMEOUT_S)
    click.echo(f"""
Done in {time.monotonic() - began:.0f} s. Next steps:
{_activation()}    heliograph kafka start A --port 9092        start a cluster; a second one: B --port 9192
    heliograph validate mm2.properties          check your MM2 file; plan shows what it would do
    heliograph run mm2.properties               replicate until Ctrl-C
    heliograph groups mm2.properties            show consumer group offsets on both clusters
    README.md, ARCHITECTURE.md, docs/guides/    how it works and how to run it""")


def _activation() -> str:
    """Return the line that activates our virtual environment, if it is not active in the shell."""
    folder, found = Path(sys.prefix) / "bin", shutil.which("heliograph")
    if sys.prefix == sys.base_prefix or (found is not None and Path(found).parent == folder):
        return ""
    script = folder / "activate"
    shown = script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script
    return f"    {f'. {shown}':43} put heliograph on the PATH\n"


def _step(title: str) -> None:
    click.secho(f"==> {title}", bold=True)


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
    admin.create_topics({TOPIC: {"num_partitions": 1, "replication_factor": 1}}, wait_for_metadata=True)
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
refresh.groups.interval.seconds = 1
emit.checkpoints.interval.seconds = 1
"""


def _replicate(file: Path, on_exit: Callable[..., object]) -> subprocess.Popen[bytes]:
    """`heliograph run FILE` as a process of its own; its output goes to a log, which is shown if it fails."""
    with file.with_suffix(".log").open("wb") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "heliograph", "run", str(file)], stdout=log, stderr=subprocess.STDOUT
        )
    on_exit(running.wait, 30)
    on_exit(running.terminate)
    running.log = file.with_suffix(".log")  # type: ignore[attr-defined]
    return running


def _wait(running: subprocess.Popen[bytes], what: str, is_there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_there():
        if running.poll() is not None or time.monotonic() > deadline:
            click.echo(running.log.read_text())  # type: ignore[attr-defined]
            raise HeliographError(f"{what} did not come; see the lines above.")
        time.sleep(0.2)


def _command(*arguments: str) -> None:
    """A command of ours, as a user types it."""
    _step(" ".join(["heliograph", *arguments[:1], "es-src-to-es-tgt.properties", *arguments[2:]]))
    done = subprocess.run([sys.executable, "-m", "heliograph", *arguments], capture_output=True, text=True, check=False)
    click.echo("".join(f"    {line}\n" for line in (done.stdout + done.stderr).splitlines()), nl=False)
    if done.returncode:
        raise HeliographError(f"heliograph {arguments[0]} ended with {done.returncode}.")


def _end_offset(bootstrap: str, topic: str) -> int:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    partition = TopicPartition(topic, 0)
    end = consumer.end_offsets([partition])[partition] if topic in consumer.topics() else 0
    consumer.close()
    return int(end)


def _is_checkpointed(bootstrap: str) -> bool:
    offsets = translate_offsets({"bootstrap.servers": bootstrap}, SOURCE, GROUP, timeout_s=10)
    return [place.offset for place in offsets.values()] == [READ_AT_SOURCE]


def _read_all(bootstrap: str, topic: str) -> list[SeenRecord]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning()
    end = consumer.end_offsets([partition])[partition]
    seen: list[SeenRecord] = []
    while consumer.position(partition) < end:
        for records in consumer.poll(timeout_ms=1000).values():
            seen += [SeenRecord(r.key, r.value, tuple(r.headers), r.timestamp) for r in records]
    consumer.close()
    return seen


def _prove_equal(source: list[SeenRecord], target: list[SeenRecord]) -> None:
    if len(source) != PRODUCTS or len(target) != PRODUCTS:
        raise HeliographError(
            f"{len(source)} records on {SOURCE}, {len(target)} on {TARGET}: expected {PRODUCTS} each."
        )
    for name in SeenRecord._fields:
        if [getattr(record, name) for record in source] != [getattr(record, name) for record in target]:
            raise HeliographError(f"The {name} of some record differs between {SOURCE} and {TARGET}.")
        click.echo(f"    {name:13} equal in all {PRODUCTS} records, in the same order")


def _read_as_group(bootstrap: str, topic: str, count: int) -> list[bytes]:
    """Read so many records as a member of the group, commit, and leave; their keys."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=count,
    )
    keys: list[bytes] = []
    deadline = time.monotonic() + _TIMEOUT_S
    while len(keys) < count and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=1000, max_records=count - len(keys)).values():
            for record in records:
                if not keys:
                    click.echo(f"    first: {topic} offset {record.offset}, key {record.key.decode()}")
                keys.append(record.key)
    consumer.commit()
    consumer.close()
    click.echo(f"    {count} read, the last: key {keys[count - 1].decode()}")
    return keys


def _prove_continued(first: list[bytes], rest: list[bytes]) -> None:
    wanted = [str(_product(number)["product_id"]).encode() for number in range(PRODUCTS)]
    if first + rest != wanted:
        raise HeliographError("The group did not read each product once and in order.")
    click.echo(
        f"    {READ_AT_SOURCE} products read on {SOURCE}, {len(rest)} on {TARGET}, beginning with product"
        f" {READ_AT_SOURCE + 1}: none lost, none read twice"
    )
