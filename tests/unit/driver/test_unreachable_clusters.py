"""A cluster that does not answer is reported with the keys by which the user's own file reaches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from heliograph.config.effective.connect_config import ConnectorConfig
from heliograph.config.formats.conversion import ConfigText
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.validate.dedicated_file import load
from heliograph.config.validate.worker_file import load_worker
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.connect_worker import ConnectWorker
from heliograph.driver.clusters.cluster_clients import TargetClients, make_admin
from heliograph.errors import UnreachableError
from heliograph.model import Flow
from tests.support.config_files import FakeLookup

if TYPE_CHECKING:
    from heliograph.kafka.admin.admin import Admin

NOBODY = "127.0.0.1:1"
NOBODY_ELSE = "127.0.0.1:2"
FLOW = Flow("us", "eu")
FILE = f"""\
clusters=us,eu
us.bootstrap.servers={NOBODY}
eu.bootstrap.servers={NOBODY}
us->eu.enabled=true
"""
RESOURCE = f"""\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
spec:
  connectCluster: eu
  clusters:
    - {{alias: us, bootstrapServers: "{NOBODY}"}}
    - {{alias: eu, bootstrapServers: "{NOBODY}"}}
  mirrors:
    - {{sourceCluster: us, targetCluster: eu, sourceConnector: {{}}}}
"""
WORKER = f"""\
bootstrap.servers={NOBODY}
group.id=g
config.storage.topic=c
offset.storage.topic=o
status.storage.topic=s
heliograph.connect.timeout.ms=1
"""
CONNECTOR = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": NOBODY,
    "target.cluster.bootstrap.servers": NOBODY,
}


def words_of(admin: Admin) -> str:
    with pytest.raises(UnreachableError) as reported:
        admin.wait_until_reachable(0)
    return str(reported.value)


def test_who_is_stopping_does_not_wait() -> None:
    config = connector()
    admin = make_admin(config, "us", config.flow)
    admin.wait_until_reachable(24 * 3600, is_stopping=lambda: True)


def connector(**more: str) -> ConnectorConfig:
    worker = {"bootstrap.servers": NOBODY_ELSE}
    return ConnectorConfig("c", CONNECTOR | more, worker, Resolver(FakeLookup(), worker))


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("", "us.bootstrap.servers and us.security.protocol"),
        ("security.protocol=PLAINTEXT", "us.bootstrap.servers and security.protocol"),
        (f"us.admin.bootstrap.servers={NOBODY}", "us.admin.bootstrap.servers and us.security.protocol"),
    ],
)
def test_the_error_names_the_keys_of_a_file(lines: str, keys: str) -> None:
    words = words_of(make_admin(load(FILE + lines, FakeLookup()), "us", FLOW))
    assert words.startswith("The cluster 'us' did not answer")
    assert words.endswith(f" Check {keys}.")


def test_the_error_names_the_fields_of_a_resource() -> None:
    config = load(ConfigText(RESOURCE, "mirror.yaml"), FakeLookup())
    assert words_of(make_admin(config, "us", FLOW)).endswith(" Check spec.clusters[0].bootstrapServers.")


def test_the_error_names_the_prefixed_keys_of_a_connector() -> None:
    words = words_of(make_admin(connector(), "us", FLOW))
    assert words.endswith(" Check source.cluster.bootstrap.servers and source.cluster.security.protocol.")
    written = TargetClients(connector(), FLOW)
    assert words_of(written.target).endswith(
        " Check target.cluster.bootstrap.servers and target.cluster.security.protocol."
    )
    assert words_of(written.records).endswith(" Check bootstrap.servers and producer.security.protocol.")


def test_what_a_connector_overrides_is_what_counts() -> None:
    more = {"producer.override.bootstrap.servers": NOBODY, "target.cluster.bootstrap.servers": NOBODY_ELSE}
    written = TargetClients(connector(**more), FLOW)
    assert words_of(written.records).endswith(
        " Check producer.override.bootstrap.servers and producer.security.protocol."
    )
    words = words_of(written.source_offsets)
    assert words.startswith("The worker's cluster did not answer")
    assert words.endswith(" Check bootstrap.servers and security.protocol.")


def test_the_error_names_the_keys_of_a_workers_file() -> None:
    nobody: Any = None
    worker = ConnectWorker(load_worker(WORKER, FakeLookup()), nobody, "http://here:8083", LogLevels())
    with pytest.raises(UnreachableError) as reported:
        worker.start()
    words = str(reported.value)
    assert words.startswith("The worker's cluster did not answer")
    assert words.endswith(" Check bootstrap.servers and security.protocol.")
