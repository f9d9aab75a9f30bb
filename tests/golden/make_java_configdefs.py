"""Writes java_configdefs.json: every ConfigDef of Kafka 4.3.1 that concerns MM2, as the real Java classes hold it.

Run it where Kafka's jars have been fetched: `python -m tests.golden.make_java_configdefs`. The definitions are static
fields, some of them protected; py4j's Java side reads them by reflection. Documentation is left out: ours is our own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, get_field, launch_gateway
from py4j.java_collections import JavaList

from heliograph.embedded.jars import connect_jars, ensure_jars
from heliograph.embedded.java import java_command

DUMP = Path(__file__).parent / "java_configdefs.json"
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


def main() -> None:
    """Start a JVM, read the definitions, write the file."""
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
        dump = {name: definition(gateway, *place) for name, place in DEFINITIONS.items()}
    finally:
        gateway.shutdown()
    DUMP.write_text(json.dumps(dump, indent=1, sort_keys=True) + "\n", encoding="utf-8")


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
