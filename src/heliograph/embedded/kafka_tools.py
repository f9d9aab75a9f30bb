"""Builds the commands that run Kafka's own command-line tools, by the names of their scripts, on an embedded cluster.

The table has the classes of each tool, newest first, and the option for its servers. The jars decide which class
exists, so that no version numbers are needed for that.
"""

from __future__ import annotations

import difflib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.embedded.jars import broker_jars, connect_jars, ensure_jars
from heliograph.embedded.java import java_command
from heliograph.embedded.kafka_cluster import TOOLS_LOG_CONFIG
from heliograph.embedded.layouts import branch_of, layout_of
from heliograph.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from heliograph.embedded.kafka_cluster import EmbeddedCluster


BOOTSTRAP = "--bootstrap-server"
_BROKERS, _ZOOKEEPER = "--broker-list", "--zookeeper"
_GIVEN = (BOOTSTRAP, _BROKERS, _ZOOKEEPER, "--bootstrap-controller", "--bootstrap-controllers", "--authorizer")
_NO_SERVER = ("--help", "-h", "--version")
_JVM = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
_NEW, _OLD = "org.apache.kafka.tools", "kafka.admin"


@dataclass(frozen=True, slots=True)
class Tool:
    """One script: its classes, its option for servers, and the version `since` which the option has this name.

    `server` is None if a tool reads files only. `is_after` says that the option belongs after a subcommand.
    """

    classes: tuple[str, ...]
    server: str | None = BOOTSTRAP
    since: tuple[int, int] = (0, 0)
    before: str | None = None
    is_after: bool = False

    def server_option(self, version: str) -> str | None:
        """Return the option for servers of that version; None if it has none that we could set."""
        return self.server if branch_of(version) >= self.since else self.before


TOOLS = {
    "kafka-acls": Tool((f"{_NEW}.AclCommand", f"{_OLD}.AclCommand"), since=(2, 1)),
    "kafka-broker-api-versions": Tool((f"{_NEW}.BrokerApiVersionsCommand", f"{_OLD}.BrokerApiVersionsCommand")),
    "kafka-client-metrics": Tool((f"{_NEW}.ClientMetricsCommand",)),
    "kafka-cluster": Tool((f"{_NEW}.ClusterTool", "kafka.tools.ClusterTool"), is_after=True),
    "kafka-configs": Tool((f"{_OLD}.ConfigCommand",), since=(2, 3), before=_ZOOKEEPER),
    "kafka-console-consumer": Tool((f"{_NEW}.consumer.ConsoleConsumer", "kafka.tools.ConsoleConsumer")),
    "kafka-console-producer": Tool(
        (f"{_NEW}.ConsoleProducer", "kafka.tools.ConsoleProducer"), since=(2, 5), before=_BROKERS
    ),
    "kafka-console-share-consumer": Tool((f"{_NEW}.consumer.ConsoleShareConsumer",)),
    "kafka-consumer-groups": Tool((f"{_NEW}.consumer.group.ConsumerGroupCommand", f"{_OLD}.ConsumerGroupCommand")),
    "kafka-consumer-perf-test": Tool(
        (f"{_NEW}.ConsumerPerformance", "kafka.tools.ConsumerPerformance"), since=(2, 5), before=_BROKERS
    ),
    "kafka-delegation-tokens": Tool((f"{_NEW}.DelegationTokenCommand", f"{_OLD}.DelegationTokenCommand")),
    "kafka-delete-records": Tool((f"{_NEW}.DeleteRecordsCommand", f"{_OLD}.DeleteRecordsCommand")),
    "kafka-dump-log": Tool((f"{_NEW}.DumpLogSegments", "kafka.tools.DumpLogSegments"), server=None),
    "kafka-features": Tool((f"{_NEW}.FeatureCommand", f"{_OLD}.FeatureCommand")),
    "kafka-get-offsets": Tool((f"{_NEW}.GetOffsetShell", "kafka.tools.GetOffsetShell"), since=(3, 0), before=_BROKERS),
    "kafka-groups": Tool((f"{_NEW}.GroupsCommand",)),
    "kafka-leader-election": Tool((f"{_NEW}.LeaderElectionCommand", f"{_OLD}.LeaderElectionCommand")),
    "kafka-log-dirs": Tool((f"{_NEW}.LogDirsCommand", f"{_OLD}.LogDirsCommand")),
    "kafka-metadata-quorum": Tool((f"{_NEW}.MetadataQuorumCommand", f"{_OLD}.MetadataQuorumCommand")),
    "kafka-producer-perf-test": Tool((f"{_NEW}.ProducerPerformance",), since=(4, 2)),
    "kafka-reassign-partitions": Tool(
        (f"{_NEW}.reassign.ReassignPartitionsCommand", f"{_OLD}.ReassignPartitionsCommand"),
        since=(2, 5),
        before=_ZOOKEEPER,
    ),
    "kafka-replica-verification": Tool(
        (f"{_NEW}.ReplicaVerificationTool", "kafka.tools.ReplicaVerificationTool"), _BROKERS
    ),
    "kafka-share-consumer-perf-test": Tool((f"{_NEW}.ShareConsumerPerformance",)),
    "kafka-share-groups": Tool((f"{_NEW}.consumer.group.ShareGroupCommand",)),
    "kafka-storage": Tool(("kafka.tools.StorageTool",), server=None),
    "kafka-streams-application-reset": Tool((f"{_NEW}.StreamsResetter", "kafka.tools.StreamsResetter")),
    "kafka-streams-groups": Tool((f"{_NEW}.streams.StreamsGroupCommand",)),
    "kafka-topics": Tool((f"{_NEW}.TopicCommand", f"{_OLD}.TopicCommand"), since=(2, 2), before=_ZOOKEEPER),
    "kafka-transactions": Tool((f"{_NEW}.TransactionsCommand",)),
    "kafka-verifiable-consumer": Tool((f"{_NEW}.VerifiableConsumer",), since=(2, 5), before=_BROKERS),
    "kafka-verifiable-producer": Tool((f"{_NEW}.VerifiableProducer",), since=(2, 5), before=_BROKERS),
}


def tool_command(
    cluster: EmbeddedCluster,
    name: str,
    arguments: Sequence[str],
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[str]:
    """Return the command that runs a tool on a cluster; raises EmbeddedError for a tool that this version lacks."""
    name = name.removesuffix(".sh")
    tool = TOOLS.get(name)
    if tool is None:
        near = difflib.get_close_matches(name, TOOLS, n=1) or difflib.get_close_matches(f"kafka-{name}", TOOLS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"these are known: {', '.join(TOOLS)}."
        raise EmbeddedError(f"There is no tool '{name}' of Kafka; {hint}")
    command_arguments = _with_servers(cluster, tool, arguments)
    layout = layout_of(cluster.version)
    jars = connect_jars(cluster.version) if layout.has_mirror_maker_2 else broker_jars(cluster.version)
    libs = ensure_jars(jars, on_progress)
    program = next((each for each in tool.classes if _has_class(libs, each)), None)
    if program is None:
        raise EmbeddedError(f"Kafka {cluster.version} has no tool '{name}'.")
    log_config = Path(cluster.folder) / TOOLS_LOG_CONFIG
    log_config.write_text(layout.tool_log_config)
    return [java_command(), *_JVM, f"{layout.log_option}{log_config}", "-cp", f"{libs}/*", program, *command_arguments]


def _with_servers(cluster: EmbeddedCluster, tool: Tool, arguments: Sequence[str]) -> list[str]:
    given = list(arguments)
    option = tool.server_option(cluster.version)
    if option is None or any(each.partition("=")[0] in (*_GIVEN, *_NO_SERVER) for each in given):
        return given
    if not cluster.running:
        raise EmbeddedError(
            f"The cluster '{cluster.name}' is not running; start it with: heliograph kafka start {cluster.name}"
        )
    zookeeper = cluster.zookeeper if option == _ZOOKEEPER else None
    servers = [option, cluster.bootstrap if zookeeper is None else zookeeper.address]
    return [*given, *servers] if tool.is_after else [*servers, *given]


def _has_class(libs: Path, name: str) -> bool:
    file = f"{name.replace('.', '/')}.class"
    for jar in libs.glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as content:
            if file in content.NameToInfo:
                return True
    return False
