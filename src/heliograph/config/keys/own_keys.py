"""Rows of keys that only Heliograph has: sizes and time-outs of tasks, rate limit, changed topics, renaming, metrics.

Own keys of the REST server and of a worker's restarts are in `worker_keys`.
"""

from __future__ import annotations

import re

from heliograph.config.keys.action_lists import one_of_by_topic
from heliograph.config.keys.table import (
    BOOLEAN,
    CONNECTOR,
    FILE,
    INT,
    LIST,
    LONG,
    NO_STRINGS,
    SOURCE,
    STRING,
    WORKER,
    Check,
    at_least,
    define,
    one_of,
)

# --- Heliograph's own -----------------------------------------------------------------------------
TASK_BUFFER_BYTES = define(
    "heliograph.task.buffer.bytes",
    LONG,
    64 << 20,
    SOURCE,
    "Maximum bytes of batches that a task has fetched and the target has not acknowledged yet.",
    at_least(1 << 20),
    ours=True,
)
TASKS_MIN = define(
    "heliograph.tasks.min",
    INT,
    0,
    SOURCE,
    "Minimum number of tasks of a flow. If it is set, the flow starts with so many, adds tasks while its lag does not"
    " fall, up to `tasks.max` and its share of Spark's slots, and ends them after a quiet time. 0 means always as many"
    " as `tasks.max`, partitions and slots allow.",
    at_least(0),
    ours=True,
)
CONNECTIONS_PER_BROKER = define(
    "heliograph.connections.per.broker",
    INT,
    1,
    SOURCE,
    "Minimum number of data connections from a task to each broker. More than one helps over high-latency links and"
    " with busy brokers. If the round trip to a source broker takes 20 ms or more, at least two are used, unless"
    " fetch.max.bytes or max.partition.fetch.bytes is set.",
    Check(lambda value: 1 <= value <= 16, "between 1 and 16"),
    ours=True,
)
CONNECT_TIMEOUT_MS = define(
    "heliograph.connect.timeout.ms",
    LONG,
    15_000,
    SOURCE,
    "How long a starting flow waits for its clusters before it is FAILED; it is then retried.",
    at_least(1),
    ours=True,
)
LEASE_TIMEOUT_MS = define(
    "heliograph.lease.timeout.ms",
    LONG,
    10_000,
    SOURCE,
    "Time without a response from the driver after which a task ends.",
    at_least(1_000),
    ours=True,
)
UNENCRYPTED_SECRETS_ALLOWED = define(
    "heliograph.spark.unencrypted.secrets.allowed",
    BOOLEAN,
    default=False,
    scope=SOURCE,
    doc="Whether secrets may be sent to executors on other machines if Spark does not encrypt its traffic.",
    ours=True,
)
THROTTLE_BYTES_PER_SECOND = define(
    "heliograph.throttle.bytes.per.second",
    LONG,
    0,
    SOURCE,
    "Maximum bytes per second that a flow reads, divided evenly between its tasks; 0 is no limit.",
    at_least(0),
    ours=True,
)
ON_TRUNCATION = define(
    "heliograph.on.truncation",
    LIST,
    ("continue",),
    SOURCE,
    "What to do if the source deleted records before they were copied, or its log was truncated after they were copied:"
    " `continue` after the gap or at the truncation, which is logged and counted, or `fail` the partition.",
    one_of_by_topic("continue", "fail"),
    ours=True,
    is_live=True,
)
ON_RECREATED = define(
    "heliograph.on.recreated",
    LIST,
    ("fail",),
    SOURCE,
    "What to do if a source topic was deleted and created again: `fail` its partitions, or `restart` them from the"
    " beginning of the new topic.",
    one_of_by_topic("fail", "restart"),
    ours=True,
    is_live=True,
)
ON_TARGET_DELETED = define(
    "heliograph.on.target.deleted",
    LIST,
    ("recopy",),
    SOURCE,
    "What to do if a remote topic was deleted with the records that were copied to it, which is logged as an error and"
    " recorded as a loss: `recopy` what the source still has, from its start, `continue` after what was copied, or"
    " `fail` its partitions.",
    one_of_by_topic("recopy", "continue", "fail"),
    ours=True,
    is_live=True,
)
RENAME_TOPICS = define(
    "heliograph.rename.topics",
    LIST,
    NO_STRINGS,
    CONNECTOR,
    "Rules of RenameReplicationPolicy, `from=to`: names, or Java regexes with their groups as `$1` on the right.",
    ours=True,
)
RENAME_OTHERWISE = define(
    "heliograph.rename.otherwise",
    STRING,
    "default",
    CONNECTOR,
    "How RenameReplicationPolicy names the remote topic if no rule matches: `default` is `A.topic`, `identity` is"
    " `topic`.",
    one_of("default", "identity"),
    ours=True,
)

# --- metrics --------------------------------------------------------------------------------------
_ADDRESS = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[^\s/:@?#\[\]]*):(?P<port>[0-9]{1,5})/?", re.IGNORECASE)
_LARGEST_PORT = 65_535


def _wrong_addresses(texts: tuple[str, ...]) -> tuple[str, ...]:
    found = ((text, _ADDRESS.fullmatch(text)) for text in texts)
    return tuple(
        f"'{text}' is not an address; write it as http://HOST:PORT or https://HOST:PORT, such as http://:9404."
        for text, match in found
        if match is None or int(match["port"]) > _LARGEST_PORT
    )


METRICS_LISTENERS = define(
    "heliograph.metrics.listeners",
    LIST,
    NO_STRINGS,
    FILE | WORKER,
    "Addresses of a server with only `/metrics`, `/health/live` and `/health/ready`, each `http://HOST:PORT` or"
    " `https://HOST:PORT`, such as `http://0.0.0.0:9404`. Without a host, only this machine can connect. TLS, login and"
    " access rules are those of the REST server, by the same keys. Without this key, only the REST server has"
    " `/metrics`.",
    Check(
        lambda texts: not _wrong_addresses(texts),
        "addresses written as http://HOST:PORT or https://HOST:PORT, such as http://:9404",
        mistakes=_wrong_addresses,
    ),
    ours=True,
)
METRICS_DIALECT = define(
    "heliograph.metrics.dialect",
    STRING,
    "jmx-exporter",
    FILE | WORKER,
    "Names of Kafka's metrics at `/metrics`: `jmx-exporter`, as with Strimzi's rules for the Prometheus JMX exporter,"
    " or `metrics-reporter`, as with Strimzi's Metrics Reporter.",
    one_of("jmx-exporter", "metrics-reporter"),
    ours=True,
)
METRICS_PARTITIONS_MAX = define(
    "heliograph.metrics.partitions.max",
    INT,
    1_000,
    FILE | WORKER,
    "Maximum number of partitions of a flow of which `/metrics` has series. A flow with more has series of its topics,"
    " and of partitions that are not copied.",
    at_least(0),
    ours=True,
)
