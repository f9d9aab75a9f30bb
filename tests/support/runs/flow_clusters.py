"""A flow of a file between two real clusters, whose tasks are threads of the test's process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from heliograph.cli.inputs import MachineLookup
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.spark.spark_engine import SparkEngine
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import admin_of, read
from tests.support.runs.thread_engine import ThreadEngine


class Clusters:
    """A flow between the two, with as many files as a test needs."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster, alias: str) -> None:
        self.source, self.target, self.alias = source, target, alias

    def file(self, topics: str, *lines: str) -> MirrorMakerConfig:
        base = (
            f"clusters = {self.alias}, target",
            f"{self.alias}.bootstrap.servers = {self.source.bootstrap}",
            f"target.bootstrap.servers = {self.target.bootstrap}",
            f"{self.alias}->target.enabled = true",
            f"{self.alias}->target.topics = {topics}",
            "heartbeats.replication.enabled = false",
            "sync.topic.configs.enabled = false",
            "sync.topic.acls.enabled = false",
        )
        return load("\n".join((*base, *lines)), MachineLookup())

    @contextmanager
    def running(self, config: MirrorMakerConfig, engine: ThreadEngine) -> Iterator[SourceFlow]:
        flow = SourceFlow(config, config.flows[0], cast("SparkEngine", engine), flow_count=1)
        flow.start()
        try:
            yield flow
        finally:
            flow.stop()
            assert flow.join(180)

    def is_copied(self, topic: str) -> bool:
        remote = f"{self.alias}.{topic}"
        admin = admin_of(self.target)
        is_there = remote in admin.view([remote]).partition_counts
        admin.close()
        return is_there and read(self.target, remote, 2) == read(self.source, topic, 2)
