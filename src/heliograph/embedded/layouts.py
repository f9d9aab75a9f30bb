"""The table of differences between the versions of Kafka that the embedded cluster starts.

A version belongs to the last row that is not newer than it; rows are sorted. Everything else about a cluster (ports,
folders, processes) is the same for all versions. The only other table with versions is that of `kafka_tools`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from heliograph.errors import EmbeddedError

SUPPORTED = "1.1.x, 2.x and 3.x (with ZooKeeper), 4.x"
_FIRST_UNKNOWN = (5, 0)
# reload4j is log4j 1 under the same names, without its known vulnerabilities; brokers before 4.0 call log4j 1 directly.
_RELOAD4J = ("org.slf4j", "slf4j-reload4j", "1.7.36")
_LOG4J2 = ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
_LOG4J1_CONFIG = """\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={log}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_LOG4J2_CONFIG = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
"""
_LOG4J1_TOOL_CONFIG = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.Target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_LOG4J2_TOOL_CONFIG = """\
rootLogger.level = WARN
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = [%d] %p %m (%c)%n
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """The artifacts, log configuration and start line of the versions from `since` on."""

    since: tuple[int, int]
    scala: str
    uses_zookeeper: bool
    has_mirror_maker_2: bool
    started_line: str  # the broker's last log line at its start, in the pattern of our log configs
    log_binding: tuple[str, str, str]
    log_config: str
    tool_log_config: str
    log_option: str
    overrides: tuple[tuple[str, str, str], ...] = ()  # artifacts in another version than Kafka depends on


# 3.4.13 and 3.4.14, which Kafka 2.0 to 2.3 depend on, do not find their own host on Java 14 and newer.
_ZOOKEEPER = ("org.apache.zookeeper", "zookeeper", "3.4.10")
_LOG4J1_OPTION = "-Dlog4j.configuration=file:"
_OLD_START = "started (kafka.server.KafkaServer)"
_LOG4J2_OPTION = "-Dlog4j2.configurationFile="
_NEW_START = "Kafka Server started"
_LOG4J1 = (_RELOAD4J, _LOG4J1_CONFIG, _LOG4J1_TOOL_CONFIG, _LOG4J1_OPTION)
_LAYOUTS = (
    Layout((1, 1), "2.12", True, False, _OLD_START, *_LOG4J1, (_ZOOKEEPER,)),
    Layout((2, 4), "2.13", True, True, _OLD_START, *_LOG4J1),
    Layout((4, 0), "2.13", False, True, _NEW_START, _LOG4J2, _LOG4J2_CONFIG, _LOG4J2_TOOL_CONFIG, _LOG4J2_OPTION),
)


def branch_of(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version such as 2.8.2; raises for text that is no version."""
    numbers = re.fullmatch(r"(\d+)\.(\d+)\.\d+", version)
    if numbers is None:
        raise EmbeddedError(f"'{version}' is no version of Apache Kafka; give one like 2.8.2 or 4.3.1.")
    return int(numbers[1]), int(numbers[2])


def layout_of(version: str) -> Layout:
    """Return the layout of a version such as 2.8.2; raises if it is no version, or not supported."""
    branch = branch_of(version)
    fitting = [layout for layout in _LAYOUTS if layout.since <= branch < _FIRST_UNKNOWN]
    if not fitting:
        raise EmbeddedError(f"Kafka {version} cannot be started here; these can: {SUPPORTED}.")
    return fitting[-1]
