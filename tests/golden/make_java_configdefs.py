"""Writes what the Java classes of Kafka 4.3.1 say about configuration: the other half of the tests of parity.

`java_configdefs.json` holds every ConfigDef that concerns MM2; `java_overlays.json` what MM2 makes of a file in which
each key is written at several places. Run it where Kafka's jars have been fetched:
`python -m tests.golden.make_java_configdefs`. Much of this is not public in Java; py4j's Java side reads it by
reflection. Documentation is left out: ours is our own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_collections import JavaList
from py4j.java_gateway import GatewayParameters, JavaGateway, get_field, launch_gateway

from heliograph.embedded.jars import connect_jars, ensure_jars
from heliograph.embedded.java import java_command

DUMP = Path(__file__).parent / "java_configdefs.json"
OVERLAYS = Path(__file__).parent / "java_overlays.json"
_MIRROR = "org.apache.kafka.connect.mirror"
_RUNTIME = "org.apache.kafka.connect.runtime"
DEFINITIONS = {
    "MirrorMakerConfig": (f"{_MIRROR}.MirrorMakerConfig", "config"),
    "MirrorSourceConfig": (f"{_MIRROR}.MirrorSourceConfig", "CONNECTOR_CONFIG_DEF"),
    "MirrorCheckpointConfig": (f"{_MIRROR}.MirrorCheckpointConfig", "CONNECTOR_CONFIG_DEF"),
    "MirrorHeartbeatConfig": (f"{_MIRROR}.MirrorHeartbeatConfig", "CONNECTOR_CONFIG_DEF"),
    "MirrorClientConfig": (f"{_MIRROR}.MirrorClientConfig", "CONFIG_DEF"),
    "ClientConfigDef": (f"{_MIRROR}.MirrorClientConfig", "CLIENT_CONFIG_DEF"),
    "SourceConnectorConfig": (f"{_RUNTIME}.SourceConnectorConfig", "configDef"),
    "DefaultTopicFilter": (f"{_MIRROR}.DefaultTopicFilter$TopicFilterConfig", "DEF"),
    "DefaultGroupFilter": (f"{_MIRROR}.DefaultGroupFilter$GroupFilterConfig", "DEF"),
    "DefaultConfigPropertyFilter": (f"{_MIRROR}.DefaultConfigPropertyFilter$ConfigPropertyFilterConfig", "DEF"),
    "DistributedConfig": (f"{_RUNTIME}.distributed.DistributedConfig", "config"),
    "ConsumerConfig": ("org.apache.kafka.clients.consumer.ConsumerConfig", "CONFIG"),
    "ProducerConfig": ("org.apache.kafka.clients.producer.ProducerConfig", "CONFIG"),
    "AdminClientConfig": ("org.apache.kafka.clients.admin.AdminClientConfig", "CONFIG"),
}


# Each value says where it was written; what Java picks shows which place wins.
OVERLAY_FILE = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:1",
    "B.bootstrap.servers": "b:1",
    "A->B.enabled": "true",
    "topics": "top",
    "A->B.topics": "flow",
    "groups": "top",
    "B.groups": "target",
    "replication.policy.separator": "_",
    "use.defaults.from": "source",
    "exactly.once.support": "required",
    "offset.flush.interval.ms": "1",
    "group.id": "top",
    "consumer.client.rack": "top",
    "admin.timeout.ms": "5",
    "offset.storage.topic": "top",
    "B.offset.storage.topic": "target",
    "B.offset.storage.partitions": "7",
    "B.offset.flush.timeout.ms": "8",
    "A->B.offset.flush.timeout.ms": "9",
    "A.offset.flush.timeout.ms": "10",
    "security.protocol": "SSL",
    "B.security.protocol": "PLAINTEXT",
    "ssl.provider": "top",
    "A.ssl.provider": "alias",
    "A.consumer.ssl.provider": "alias-role",
    "sasl.jaas.config": "top",
    "A->B.consumer.sasl.jaas.config": "flow-role",
    "sasl.kerberos.kinit.cmd": "top",
    "A->B.source.cluster.sasl.kerberos.kinit.cmd": "flow-side",
    "A.sasl.mechanism": "ALIAS",
    "A->B.consumer.sasl.mechanism": "FLOW-ROLE",
    "A->B.source.consumer.sasl.mechanism": "FLOW-SIDE-ROLE",
    "A.consumer.client.rack": "alias-role",
    "A->B.consumer.client.rack": "flow-role",
    "A.consumer.max.poll.records": "1",
    "A->B.source.consumer.max.poll.records": "2",
    "A->B.consumer.fetch.max.bytes": "3",
    "A.request.timeout.ms": "4",
    "B.producer.linger.ms": "1",
    "A->B.producer.linger.ms": "2",
    "A->B.target.producer.linger.ms": "3",
    "A->B.producer.override.linger.ms": "4",
    "B.admin.retries": "1",
    "A->B.admin.retries": "2",
    "A->B.target.admin.default.api.timeout.ms": "3",
}


def main() -> None:
    """Start a JVM, read the definitions and the overlays, write the files."""
    py4j_jar = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
    folder = ensure_jars(connect_jars("4.3.1"))
    port, token = launch_gateway(
        classpath=f"{py4j_jar}{os.pathsep}{folder}/*",
        java_path=java_command(),
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        _write(DUMP, {name: definition(gateway, *place) for name, place in DEFINITIONS.items()})
        _write(OVERLAYS, {"file": OVERLAY_FILE, **overlays(gateway)})
    finally:
        gateway.shutdown()


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def overlays(gateway: Any) -> dict[str, dict[str, object]]:
    """What MM2 makes of the file for the flow A->B."""
    mirror = gateway.jvm.org.apache.kafka.connect.mirror
    flow = mirror.SourceAndTarget("A", "B")
    config = mirror.MirrorMakerConfig(OVERLAY_FILE)
    connector = gateway.jvm.java.lang.Class.forName(f"{_MIRROR}.MirrorSourceConnector")
    properties = config.connectorBaseConfig(flow, connector)
    source = mirror.MirrorSourceConfig(properties)
    found = {
        "connector": properties,
        "worker": config.workerConfig(flow),
        "source_consumer": _hidden(gateway, source, "sourceConsumerConfig", "role"),
        "source_admin": _hidden(gateway, source, "sourceAdminConfig", "role"),
        "target_admin": _hidden(gateway, source, "targetAdminConfig", "role"),
        "target_producer": _hidden(gateway, source, "targetProducerConfig", "role"),
    }
    return {name: {key: _plain(values[key]) for key in values} for name, values in found.items()}


def _hidden(gateway: Any, target: Any, name: str, argument: str) -> Any:
    kind = target.getClass()
    while kind is not None:
        for method in kind.getDeclaredMethods():
            takes = [kind.getSimpleName() for kind in method.getParameterTypes()]
            if method.getName() == name and takes == ["String"]:
                method.setAccessible(True)
                arguments = gateway.new_array(gateway.jvm.java.lang.Object, 1)
                arguments[0] = argument
                return method.invoke(target, arguments)
        kind = kind.getSuperclass()
    raise LookupError(name)


def definition(gateway: Any, class_name: str, member: str) -> dict[str, dict[str, object]]:
    """One ConfigDef as plain data."""
    loaded = gateway.jvm.java.lang.Class.forName(class_name)
    found = _member(gateway, loaded, member)
    rows = {}
    for entry in found.configKeys().entrySet():
        key = entry.getValue()
        required = not key.hasDefault()
        rows[get_field(key, "name")] = {
            "type": get_field(key, "type").toString(),
            "required": required,
            "default": None if required else _plain(get_field(key, "defaultValue")),
            "importance": get_field(key, "importance").toString(),
        }
    return rows


def _member(gateway: Any, loaded: Any, member: str) -> Any:
    """The static field of this name, or what the static method returns (Connect's wants to know the Java's ciphers)."""
    for field in loaded.getDeclaredFields():
        if field.getName() == member:
            field.setAccessible(True)
            return field.get(None)
    named = [method for method in loaded.getDeclaredMethods() if method.getName() == member]
    method = min(named, key=lambda found: found.getParameterCount())
    method.setAccessible(True)
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, method.getParameterCount())
    if method.getParameterCount():
        arguments[0] = gateway.jvm.org.apache.kafka.connect.runtime.distributed.Crypto.SYSTEM
    return method.invoke(None, arguments)


def _plain(value: Any) -> object:
    """A Java default as JSON: lists stay lists, classes become names."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, JavaList):
        return [_plain(item) for item in value]
    is_class = value.getClass().getName() == "java.lang.Class"
    return str(value.getName() if is_class else value.toString())


if __name__ == "__main__":
    main()
