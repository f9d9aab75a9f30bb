"""Rows of keys that only Heliograph has: sizes and time-outs of its tasks, rate limit, changed topics, renaming.

Own keys of the REST server and of a worker's restarts are in `worker_keys`.
"""

from __future__ import annotations

from heliograph.config.keys.table import (
    BOOLEAN,
    CONNECTOR,
    INT,
    LIST,
    LONG,
    NO_STRINGS,
    SOURCE,
    STRING,
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
    "Most bytes of fetched, not yet acknowledged batches that a task holds.",
    at_least(1 << 20),
    ours=True,
)
CONNECTIONS_PER_BROKER = define(
    "heliograph.connections.per.broker",
    INT,
    1,
    SOURCE,
    "Connections a task opens to each broker for data, at the least. More than one helps over long round trips and on"
    " busy brokers. A source broker 20 ms or more away is read over at least two, unless fetch.max.bytes or"
    " max.partition.fetch.bytes is given.",
    Check(lambda value: 1 <= value <= 16, "between 1 and 16"),
    ours=True,
)
CONNECT_TIMEOUT_MS = define(
    "heliograph.connect.timeout.ms",
    LONG,
    15_000,
    SOURCE,
    "How long a flow waits at its start for a cluster to answer before it is FAILED, and tried again.",
    at_least(1),
    ours=True,
)
LEASE_TIMEOUT_MS = define(
    "heliograph.lease.timeout.ms",
    LONG,
    10_000,
    SOURCE,
    "After this long without an answer from the driver, a task ends itself.",
    at_least(1_000),
    ours=True,
)
UNENCRYPTED_SECRETS_ALLOWED = define(
    "heliograph.spark.unencrypted.secrets.allowed",
    BOOLEAN,
    default=False,
    scope=SOURCE,
    doc="Whether passwords and keys may travel to executors of another machine where Spark does not encrypt that way.",
    ours=True,
)
THROTTLE_BYTES_PER_SECOND = define(
    "heliograph.throttle.bytes.per.second",
    LONG,
    0,
    SOURCE,
    "Most bytes per second a flow reads, shared evenly by its tasks; 0 is no limit.",
    at_least(0),
    ours=True,
)
ON_TRUNCATION = define(
    "heliograph.on.truncation",
    STRING,
    "continue",
    SOURCE,
    "What to do where records are gone from the source before they were copied, or its log was cut after they were:"
    " `continue` after the gap, or at the cut, logging and counting it, or `fail` the partition.",
    one_of("continue", "fail"),
    ours=True,
)
ON_RECREATED = define(
    "heliograph.on.recreated",
    STRING,
    "fail",
    SOURCE,
    "What to do where a source topic was deleted and created again: `fail` its partitions, or `restart` them from the"
    " new topic's beginning.",
    one_of("fail", "restart"),
    ours=True,
)
RENAME_TOPICS = define(
    "heliograph.rename.topics",
    LIST,
    NO_STRINGS,
    CONNECTOR,
    "Rules of RenameReplicationPolicy, `from=to`: names, or Java regexes whose groups are `$1` on the right.",
    ours=True,
)
RENAME_OTHERWISE = define(
    "heliograph.rename.otherwise",
    STRING,
    "default",
    CONNECTOR,
    "What RenameReplicationPolicy calls the copy of a topic that no rule renames: `default` is `A.topic`, `identity` is"
    " `topic`.",
    one_of("default", "identity"),
    ours=True,
)
