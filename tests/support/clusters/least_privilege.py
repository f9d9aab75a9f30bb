"""Flows between two clusters with an authorizer, under the ACLs that `heliograph acls` prints: all, or all but one.

Each flow has aliases, topics and users of its own, so that many can be tried beside each other.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from heliograph.cli.inputs import MachineLookup
from heliograph.cli.main import cli
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.validate.dedicated_file import load
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.loops.checkpoint_sync import CheckpointSync
from heliograph.driver.loops.heartbeats import HeartbeatSource
from heliograph.driver.steps.issues import StepIssues
from heliograph.driver.steps.step_runner import ControlLoop, Work
from heliograph.kafka.admin.admin import Admin, alter_topic_configs
from heliograph.kafka.admin.consumer_groups import GroupAdmin
from heliograph.model import (
    AclBinding,
    AddPartitions,
    AlterConfigs,
    CommittedOffset,
    ConfigChange,
    Flow,
    TopicPartition,
)
from tests.support.clusters.clients import make_topic, write
from tests.support.clusters.guarded import Guarded, jaas
from tests.support.runs.copying import wait_for
from tests.support.runs.thread_engine import thread_engine

RECORDS = 20
OTHERS = b"not ours"
ROLES = ("admin", "consumer", "producer")


class Grant(NamedTuple):
    """One ACL as printed."""

    cluster: str
    principal: str
    acl: tuple[tuple[str, Any], ...]

    @property
    def fields(self) -> dict[str, Any]:
        return dict(self.acl)

    def __str__(self) -> str:
        fields = self.fields
        return f"{fields['operation']} on {fields['resource_type']} {fields['resource_name']} of {self.cluster}"


class GuardedFlow:
    """A flow, its file, and what it tells while it runs."""

    def __init__(self, number: int, here: Guarded, there: Guarded, folder: Path) -> None:
        self.here, self.there = here, there
        self.source, self.target = f"src{number:03}", f"tgt{number:03}"
        self.users = (f"r{number}", f"w{number}")
        self.flow = Flow(self.source, self.target)
        self.topic, self.group = f"{self.source}-orders", f"{self.source}-readers"
        self.remote = f"{self.source}.{self.topic}"
        self.file = folder / f"{self.source}.properties"
        text = [
            f"clusters={self.source},{self.target}",
            *here.client_lines(self.source, self.users[0]),
            *there.client_lines(self.target, self.users[1]),
            f"{self.flow}.enabled=true",
            f"{self.flow}.topics={self.source}-.*",
            f"{self.flow}.groups={self.source}-.*",
            f"{self.flow}.sync.group.offsets.enabled=true",
            "admin.timeout.ms=5000",
            "offset.storage.partitions=1",
            "replication.factor=1",
        ]
        self.file.write_text("\n".join(text) + "\n")

    def add_lines(self, *lines: str) -> None:
        self.file.write_text(self.file.read_text() + "\n".join(lines) + "\n")

    def use_a_login_per_role(self) -> None:
        """Give each role of each cluster a user of its own."""
        for alias, user in zip(self.flow, self.users, strict=True):
            self.add_lines(*(f"{alias}.{role}.sasl.jaas.config={jaas(f'{user}-{role}')}" for role in ROLES))

    @property
    def config(self) -> MirrorMakerConfig:
        return load(self.file.read_text(), MachineLookup())

    # --- ACLs ---------------------------------------------------------------------------------------------------------

    @cached_property
    def printed(self) -> list[Grant]:
        """What the command prints for the file."""
        ended = CliRunner().invoke(cli, ["acls", str(self.file), "--format", "json"])
        assert ended.exit_code == 0, ended.output
        return [
            Grant(each["cluster"], each["principal"], tuple((name, acl[name]) for name in acl if name != "reasons"))
            for each in json.loads(ended.stdout)
            for acl in each["acls"]
        ]

    def grant(self, grants: list[Grant]) -> None:
        for cluster, principal in dict.fromkeys((grant.cluster, grant.principal) for grant in grants):
            guarded = self.here if cluster == self.source else self.there
            acls = [grant.fields for grant in grants if (grant.cluster, grant.principal) == (cluster, principal)]
            guarded.grant_printed(principal, acls)

    # --- what others do -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """A topic with records, a group that reads it, and somebody who may."""
        make_topic(self.here.cluster, self.topic, 2)
        self.here.grant(AclBinding(self.topic, "User:reader", "*", "READ", "ALLOW"))
        self.write()
        self.commit(5)

    def write(self) -> None:
        records = [{"value": f"order {n}".encode(), "partition": n % 2} for n in range(RECORDS)]
        write(self.here.cluster, self.topic, records)

    def commit(self, offset: int) -> None:
        admin = self.here.admin()
        assert GroupAdmin(admin).commit(self.group, {TopicPartition(self.topic, 0): CommittedOffset(offset)}) == {}
        admin.close()

    def change(self) -> None:
        """Between two passes: more partitions, records and configs; and records of others among the copies."""
        admin = self.here.admin()
        assert admin.add_partitions([AddPartitions(self.topic, 3)]) == {}
        assert admin.wait_for_leaders({self.topic: 3}) == {}
        alter = AlterConfigs(self.topic, (ConfigChange("retention.ms", None, "123456789"),))
        assert alter_topic_configs(admin, [alter]) == {}
        wait_for(lambda: config_of(admin, self.topic, "retention.ms") == "123456789")
        admin.close()
        self.write()
        self.commit(15)
        there = self.there.admin()
        copies = there.view([self.remote, f"{self.source}.heartbeats"]).partition_counts
        there.close()
        for topic in copies:
            write(self.there.cluster, topic, [{"key": b"k", "value": OTHERS, "partition": 0}])

    # --- one pass -----------------------------------------------------------------------------------------------------

    def run_once(self, until: re.Pattern[str] | None = None) -> list[str]:
        """Heartbeats, the copy and the checkpoints once; what they told. The copy is stopped when it has told
        `until`: a task that fails would be tried for ever.
        """
        config = self.config
        with listening(self.flow) as reported:
            for pair in config.heartbeat_flows:
                reported.extend(_issues_of(f"{pair}", HeartbeatSource(config, pair)))
            self._copy(config, reported, until)
            reported.extend(_issues_of(f"{self.flow}", CheckpointSync(config, self.flow)))
        return reported

    def _copy(self, config: MirrorMakerConfig, reported: list[str], until: re.Pattern[str] | None) -> None:
        flow = SourceFlow(config, self.flow, thread_engine(), flow_count=1, once=True)
        flow.start()
        deadline = time.monotonic() + 180
        while not flow.join(0.05):
            assert time.monotonic() < deadline, reported
            if until is not None and any(until.search(words) for words in reported):
                break
        flow.stop()
        assert flow.join(180)
        reported += [str(flow.error)] if flow.error is not None else []
        reported += [*flow.status.failures, *([flow.status.issue] if flow.status.issue else [])]


def _issues_of(name: str, work: Work) -> list[str]:
    """Run the steps of a work once; the issues they found."""
    issues = StepIssues()
    ControlLoop(name, work, issues).run_once()
    return [words for step in issues.issues.values() for words in step]


def config_of(admin: Admin, topic: str, name: str) -> str | None:
    return next(entry.value for entry in admin.topic_configs([topic])[topic] if entry.name == name)


@contextmanager
def listening(flow: Flow) -> Iterator[list[str]]:
    """The warnings about a flow, as they come."""
    reported: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            words = record.getMessage()
            if flow.source in words or flow.target in words:
                reported.append(words)

    logger, listener = logging.getLogger("heliograph"), Listener(logging.WARNING)
    logger.addHandler(listener)
    try:
        yield reported
    finally:
        logger.removeHandler(listener)


def words_for(grant: Grant) -> re.Pattern[str]:
    """How a missing ACL is named: the operation, and the cluster or the resource."""
    fields = grant.fields
    operation = rf"needs [^.;]*\b{fields['operation']}\b"
    if fields["resource_type"] == "CLUSTER":
        return re.compile(rf"'{grant.cluster}'.*{operation} on the cluster")
    name = re.escape(fields["resource_name"])
    return re.compile(rf"{name}.*{operation}|{operation}.*{name}")
