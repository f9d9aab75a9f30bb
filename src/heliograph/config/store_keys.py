"""Rows of the table: the topics in which a Connect worker keeps its connectors and their states."""

from __future__ import annotations

from heliograph.config.table import HIGH, WORKER, define
from heliograph.config.types import INT, REPLICATION_FACTOR_CHECK, SHORT, STRING, at_least, ignored

_ONLY_WORKERS = ignored("only `heliograph worker` keeps connectors; a dedicated-mode file is one itself")

CONFIG_STORAGE_TOPIC = define(
    "config.storage.topic",
    STRING,
    "",
    WORKER,
    "Topic of connectors, of one partition; Java MM2 names it `mm2-configs.A.internal`.",
    importance=HIGH,
    support=_ONLY_WORKERS,
)
CONFIG_STORAGE_REPLICATION_FACTOR = define(
    "config.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the topic of connectors.",
    REPLICATION_FACTOR_CHECK,
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_TOPIC = define(
    "status.storage.topic",
    STRING,
    "",
    WORKER,
    "Topic of states; Java MM2 names it `mm2-status.A.internal`.",
    importance=HIGH,
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_PARTITIONS = define(
    "status.storage.partitions",
    INT,
    5,
    WORKER,
    "Partitions of the topic of states.",
    at_least(1),
    support=_ONLY_WORKERS,
)
STATUS_STORAGE_REPLICATION_FACTOR = define(
    "status.storage.replication.factor",
    SHORT,
    3,
    WORKER,
    "Replication factor of the topic of states.",
    REPLICATION_FACTOR_CHECK,
    support=_ONLY_WORKERS,
)
