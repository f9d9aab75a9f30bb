"""Rows of the table: keys of the Connect worker that are known but not acted on, each group with the reason.

Java MM2 is a Connect cluster per flow; Heliograph is one process per file. What workers tell each other falls away.
"""

from __future__ import annotations

from heliograph.config.table import CONSUMER, FILE, HIGH, LOW, MEDIUM, NO_STRINGS, WORKER, define, define_all
from heliograph.config.types import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    ignored,
    one_of,
)

# --- progress -------------------------------------------------------------------------------------
define_all(
    WORKER,
    ignored("a commit of progress is tried until it succeeds or its task fails"),
    ("offset.flush.timeout.ms", LONG, 5_000, LOW, "", "Longest wait for a commit of progress."),
)

# --- between workers ------------------------------------------------------------------------------
_ONE_PROCESS = ignored("one process runs all flows of a file; there are no workers to agree with each other")
define(
    "connect.protocol",
    STRING,
    "sessioned",
    WORKER,
    "How workers share out the work.",
    one_of("eager", "compatible", "sessioned"),
    since="2.3",
    support=_ONE_PROCESS,
)
define_all(
    WORKER,
    _ONE_PROCESS,
    ("rebalance.timeout.ms", INT, 60_000, HIGH, "", "Longest time workers may take to join."),
    ("scheduled.rebalance.max.delay.ms", INT, 300_000, LOW, "2.3", "How long a lost worker's tasks wait for it."),
    ("worker.sync.timeout.ms", INT, 3_000, MEDIUM, "", "Longest wait to catch up with the other workers."),
    ("worker.unsync.backoff.ms", INT, 300_000, MEDIUM, "", "Pause after failing to catch up."),
    ("inter.worker.key.generation.algorithm", STRING, "HmacSHA256", LOW, "2.4", "How keys between workers are made."),
    ("inter.worker.key.size", INT, None, LOW, "2.4", "Size of keys between workers."),
    ("inter.worker.signature.algorithm", STRING, "HmacSHA256", LOW, "2.4", "How requests between workers are signed."),
    ("inter.worker.verification.algorithms", LIST, ("HmacSHA256",), LOW, "2.4", "Signatures a worker accepts."),
)
define_all(
    WORKER | CONSUMER,
    _ONE_PROCESS,
    ("session.timeout.ms", INT, 10_000, HIGH, "", "When a silent member of a group is given up."),
    ("heartbeat.interval.ms", INT, 3_000, HIGH, "", "How often a member of a group reports."),
)

# --- REST -----------------------------------------------------------------------------------------
_NO_REST = ignored("the REST server has its listeners and adds nothing to its answers")
define_all(
    FILE | WORKER,
    _NO_REST,
    ("access.control.allow.methods", STRING, "", LOW, "", "Methods that pages of other origins may call."),
    ("response.http.headers.config", STRING, "", LOW, "2.6", "Headers that REST adds to its answers."),
)
define_all(
    WORKER,
    _NO_REST,
    ("admin.listeners", LIST, NO_STRINGS, LOW, "", "Addresses of REST's endpoints for administrators."),
)
define(
    "dedicated.mode.enable.internal.rest",
    BOOLEAN,
    False,
    FILE,
    "Lets several nodes of Java MM2 talk to each other (KIP-710).",
    importance=HIGH,
    since="3.5",
    support=_ONE_PROCESS,
)

# --- what Connect offers to any connector ---------------------------------------------------------
_NO_PLUGINS = ignored("Java plugins cannot be loaded")
define_all(
    WORKER,
    _NO_PLUGINS,
    ("plugin.path", LIST, NO_STRINGS, LOW, "", "Folders of Java plugins."),
    ("plugin.discovery", STRING, "hybrid_warn", LOW, "3.6", "How Java plugins are found."),
)
define_all(
    WORKER,
    ignored("client keys behind a flow are always read"),
    ("connector.client.config.override.policy", STRING, "All", MEDIUM, "2.3", "Which client keys a connector may set."),
)
define_all(
    WORKER,
    ignored("a task that is told to stop commits what is acknowledged and is waited for"),
    ("task.shutdown.graceful.timeout.ms", LONG, 5_000, LOW, "", "How long a task may take to stop."),
)
define_all(
    WORKER,
    ignored("MM2 creates its topics itself, without Connect"),
    ("topic.creation.enable", BOOLEAN, True, LOW, "2.6", "Whether connectors may have topics created."),
)
