"""Rows of the table: consumer, producer and admin keys that are known but not acted on, each group with the reason.

A file may set them for Java MM2's sake; a user who set one is told once why nothing follows from it here.
"""

from __future__ import annotations

from heliograph.config.table import (
    ADMIN,
    CONNECTOR,
    CONSUMER,
    HIGH,
    LOW,
    MEDIUM,
    NO_STRINGS,
    PRODUCER,
    ROLES,
    WORKER,
    define_all,
)
from heliograph.config.types import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    STRING,
    ignored,
    rejected,
)

_CLIENTS = "org.apache.kafka.clients"
_JMX = ("org.apache.kafka.common.metrics.JmxReporter",)


# --- every client ---------------------------------------------------------------------------------
define_all(
    ROLES | WORKER,
    ignored("requests carry client ids of Heliograph's own, which begin with 'heliograph-'"),
    ("client.id", STRING, "", MEDIUM, "", "Name a client gives to brokers, for quotas and logs."),
)
define_all(
    ROLES | WORKER,
    ignored("Heliograph's own connections pace themselves, and are opened again when they are lost"),
    ("client.dns.lookup", STRING, "use_all_dns_ips", MEDIUM, "2.1", "Which addresses of a host name are tried."),
    ("connections.max.idle.ms", LONG, 540_000, MEDIUM, "", "When an idle connection is closed."),
    ("metadata.max.age.ms", LONG, 300_000, LOW, "", "When leaders are asked for again without a reason."),
    ("metadata.recovery.strategy", STRING, "rebootstrap", LOW, "3.8", "What to do when no known broker answers."),
    ("metadata.recovery.rebootstrap.trigger.ms", LONG, 300_000, LOW, "4.0", "How long to wait before that."),
    ("receive.buffer.bytes", INT, 65_536, MEDIUM, "", "The operating system's buffer for what is received."),
    ("send.buffer.bytes", INT, 131_072, MEDIUM, "", "The operating system's buffer for what is sent."),
    ("reconnect.backoff.ms", LONG, 50, LOW, "", "First pause before a connection is opened again."),
    ("reconnect.backoff.max.ms", LONG, 1_000, LOW, "", "Longest pause before a connection is opened again."),
    ("retry.backoff.ms", LONG, 100, LOW, "", "First pause before a request is sent again."),
    ("retry.backoff.max.ms", LONG, 1_000, LOW, "3.7", "Longest pause before a request is sent again."),
    ("socket.connection.setup.timeout.ms", LONG, 10_000, MEDIUM, "2.7", "First limit for opening a connection."),
    ("socket.connection.setup.timeout.max.ms", LONG, 30_000, MEDIUM, "2.7", "Longest limit for opening a connection."),
)
define_all(
    CONSUMER | ADMIN,
    ignored("`admin.timeout.ms` limits a step of an administrator, `request.timeout.ms` a request"),
    ("default.api.timeout.ms", INT, 60_000, MEDIUM, "2.0", "Longest time one call of a client may take."),
)
define_all(
    PRODUCER | ADMIN,
    ignored("a failed request is sent again until it succeeds or cannot any more"),
    ("retries", INT, 2_147_483_647, HIGH, "", "How often a failed request is sent again."),
)
_OWN_METRICS = ignored("Java's metrics are not there")
define_all(
    ROLES | WORKER | CONNECTOR,
    _OWN_METRICS,
    ("metric.reporters", LIST, _JMX, LOW, "", "Java classes that report metrics."),
)
define_all(
    ROLES | WORKER,
    _OWN_METRICS,
    ("metrics.num.samples", INT, 2, LOW, "", "Samples a metric keeps."),
    ("metrics.sample.window.ms", LONG, 30_000, LOW, "", "Length of a metric's sample."),
    ("metrics.recording.level", STRING, "INFO", LOW, "", "How fine metrics are."),
    ("enable.metrics.push", BOOLEAN, True, LOW, "3.7", "Whether a client sends metrics to brokers that ask (KIP-714)."),
)
define_all(
    CONSUMER | PRODUCER,
    rejected("interceptors are Java classes that may change records; Heliograph copies them as they are. Remove it."),
    ("interceptor.classes", LIST, NO_STRINGS, LOW, "", "Java classes that see, and may change, every record."),
)

# --- the source's consumer ------------------------------------------------------------------------
define_all(
    CONSUMER,
    ignored("Heliograph reads partitions itself, without a consumer group, and keeps progress on the target"),
    ("allow.auto.create.topics", BOOLEAN, True, MEDIUM, "2.3", "Whether reading a missing topic creates it."),
    ("auto.commit.interval.ms", INT, 5_000, LOW, "", "How often a group's offsets are committed."),
    ("enable.auto.commit", BOOLEAN, True, MEDIUM, "", "Whether a group's offsets are committed by themselves."),
    ("exclude.internal.topics", BOOLEAN, True, MEDIUM, "", "Whether a pattern subscription leaves out Kafka's topics."),
    ("group.instance.id", STRING, "", MEDIUM, "2.3", "Lasting name of a member of a group."),
    ("group.protocol", STRING, "classic", HIGH, "3.7", "Protocol of consumer groups: classic or consumer."),
    ("group.remote.assignor", STRING, "", MEDIUM, "3.7", "How brokers assign partitions to a group's members."),
    ("max.poll.interval.ms", INT, 300_000, MEDIUM, "", "When a member that does not ask is given up."),
    ("max.poll.records", INT, 500, MEDIUM, "", "Most records one poll returns."),
    (
        "partition.assignment.strategy",
        LIST,
        (f"{_CLIENTS}.consumer.RangeAssignor", f"{_CLIENTS}.consumer.CooperativeStickyAssignor"),
        MEDIUM,
        "",
        "How members assign partitions among themselves.",
    ),
    ("share.acknowledgement.mode", STRING, "implicit", MEDIUM, "4.1", "How a share group's records are acknowledged."),
    ("share.acquire.mode", STRING, "BATCH_OPTIMIZED", MEDIUM, "", "How a share group's records are acquired."),
)
define_all(
    CONSUMER,
    ignored("checksums are always checked; damage must not be copied"),
    ("check.crcs", BOOLEAN, True, LOW, "", "Whether the checksum of every batch is checked."),
)
define_all(
    CONSUMER,
    ignored("records are copied as bytes"),
    ("key.deserializer", CLASS, "", HIGH, "", "Java class that reads keys."),
    ("value.deserializer", CLASS, "", HIGH, "", "Java class that reads values."),
)

# --- the target's producer ------------------------------------------------------------------------
define_all(
    PRODUCER,
    ignored("the producer is always idempotent and waits for all in-sync replicas"),
    ("acks", STRING, "all", LOW, "", "How many replicas confirm a batch."),
    ("enable.idempotence", BOOLEAN, True, LOW, "", "Whether the target recognises a batch that is sent twice."),
)
define_all(
    PRODUCER,
    ignored("batches are copied as the source has them; small neighbours are merged"),
    ("batch.size", INT, 16_384, MEDIUM, "", "Bytes of a batch."),
    ("linger.ms", LONG, 5, MEDIUM, "", "How long a batch waits for more records."),
    ("compression.type", STRING, "none", HIGH, "", "How batches are compressed."),
    ("compression.gzip.level", INT, -1, MEDIUM, "3.8", "How hard gzip works."),
    ("compression.lz4.level", INT, 9, MEDIUM, "3.8", "How hard lz4 works."),
    ("compression.zstd.level", INT, 3, MEDIUM, "3.8", "How hard zstd works."),
)
define_all(
    PRODUCER,
    ignored("`heliograph.task.buffer.bytes` bounds what is under way, and a batch is sent until it is written"),
    ("buffer.memory", LONG, 33_554_432, HIGH, "", "Bytes of records that wait to be sent."),
    ("delivery.timeout.ms", INT, 120_000, MEDIUM, "2.1", "When a batch that was not written is given up."),
    ("max.block.ms", LONG, 60_000, MEDIUM, "", "How long a producer waits for memory or metadata."),
    ("metadata.max.idle.ms", LONG, 300_000, LOW, "2.5", "When an unused topic's metadata is forgotten."),
)
define_all(
    PRODUCER,
    ignored("a record keeps the partition number it has on the source"),
    ("partitioner.class", CLASS, "", MEDIUM, "", "Java class that chooses a record's partition."),
    ("partitioner.ignore.keys", BOOLEAN, False, MEDIUM, "3.3", "Whether keys do not decide the partition."),
    ("partitioner.adaptive.partitioning.enable", BOOLEAN, True, LOW, "3.3", "Whether faster brokers get more."),
    ("partitioner.availability.timeout.ms", LONG, 0, LOW, "3.3", "When a slow broker's partitions are avoided."),
)
define_all(
    PRODUCER,
    ignored("records are copied as bytes"),
    ("key.serializer", CLASS, "", HIGH, "", "Java class that writes keys."),
    ("value.serializer", CLASS, "", HIGH, "", "Java class that writes values."),
)
define_all(
    PRODUCER,
    ignored("with exactly-once, transactional ids are made from `group.id` as Connect makes them"),
    ("transactional.id", STRING, "", LOW, "", "Name of a producer's transactions."),
    ("transaction.two.phase.commit.enable", BOOLEAN, False, LOW, "", "Whether transactions wait for a second party."),
)

# --- the admin client -----------------------------------------------------------------------------
define_all(
    ADMIN,
    ignored("requests go to brokers, never to controllers"),
    ("bootstrap.controllers", LIST, NO_STRINGS, HIGH, "3.7", "Controllers to ask in place of brokers."),
)
