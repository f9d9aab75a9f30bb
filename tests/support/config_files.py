"""Configuration files, and the machine they are read on, for tests of every layer."""

from __future__ import annotations


class FakeLookup:
    """A machine with these variables and files."""

    def __init__(self, variables: dict[str, str] | None = None, files: dict[str, str] | None = None) -> None:
        self.variables, self.files = variables or {}, files or {}

    def variable(self, name: str) -> str | None:
        return self.variables.get(name)

    def read_text(self, path: str) -> str | None:
        return self.files.get(path)


def minimal(*lines: str) -> str:
    base = ("clusters=A,B", "A.bootstrap.servers=a:1", "B.bootstrap.servers=b:1", "A->B.enabled=true")
    return "\n".join((*base, *lines))


WORKER_FILE = """
bootstrap.servers = w:9092
group.id = g
config.storage.topic = c
offset.storage.topic = o
status.storage.topic = s
"""


DOCUMENT_001 = """\
bootstrap.servers=kafka-target-0:9092,kafka-target-1:9092
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
internal.key.converter=org.apache.kafka.connect.json.JsonConverter
internal.value.converter=org.apache.kafka.connect.json.JsonConverter
internal.key.converter.schemas.enable=false
internal.value.converter.schemas.enable=false
offset.storage.topic=connect-offsets
offset.storage.replication.factor=1
#offset.storage.partitions=25
config.storage.topic=connect-configs
config.storage.replication.factor=1
status.storage.topic=connect-status
status.storage.replication.factor=1
offset.flush.interval.ms=10000
rest.port=8083
"""


HEAD = "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaMirrorMaker2\nmetadata: {name: m}\n"


GOOD = (
    HEAD
    + """\
spec:
  connectCluster: eu
  clusters:
    - alias: us
      bootstrapServers: us:9092
    - alias: eu
      bootstrapServers: eu:9092
  mirrors:
    - sourceCluster: us
      targetCluster: eu
      sourceConnector: {}
      checkpointConnector: {}
"""
)
