"""The fields of a KafkaMirrorMaker2 resource: those that are read, and those that only the operator can act on.

Both layouts are here: `clusters`, `connectCluster`, `sourceCluster`, `targetCluster` of the beta versions, and
`target`, `source` of Strimzi's v1. A field in neither table is unknown, and gets a warning with its path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.formats.reading import place_of
from heliograph.config.resolve.suggestions import nearest, unknown_field, until_then

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from heliograph.config.formats.reading import Reading
    from heliograph.config.syntax.yaml_tree import Tree


KIND = "KafkaMirrorMaker2"
API_VERSIONS = (
    "kafka.strimzi.io/v1",
    "kafka.strimzi.io/v1beta2",
    "kafka.strimzi.io/v1beta1",
    "kafka.strimzi.io/v1alpha1",
    "eventstreams.ibm.com/v1beta2",
    "eventstreams.ibm.com/v1beta1",
    "eventstreams.ibm.com/v1alpha1",
)

DOCUMENT = ("apiVersion", "kind", "metadata", "spec", "status")
SPEC = ("connectCluster", "clusters", "target", "mirrors", "externalConfiguration")
CLUSTER = ("alias", "bootstrapServers", "config", "tls", "authentication")
TARGET = (*CLUSTER, "groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic")
CONNECTORS = ("sourceConnector", "checkpointConnector", "heartbeatConnector")
PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "topicsBlacklistPattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
    "groupsBlacklistPattern": "groups.exclude",
}
MIRROR = ("sourceCluster", "targetCluster", "source", *CONNECTORS, *PATTERNS)
CONNECTOR = ("tasksMax", "pause", "state", "autoRestart", "config")

_FORBIDDEN = (
    *("ssl.", "sasl.", "security.", "listeners", "plugin.path", "rest.", "bootstrap.servers"),
    "consumer.interceptor.classes",
    "producer.interceptor.classes",
    "prometheus.metrics.reporter.",
)
_ALLOWED = (
    "ssl.endpoint.identification.algorithm",
    "ssl.cipher.suites",
    "ssl.protocol",
    "ssl.enabled.protocols",
)

_PODS = "it is about the operator's pods, and there are none"
_JAVA = "there is no Java worker that it could be about"
SPEC_IGNORED = {
    "replicas": "one driver leads, and Spark's executors share the work",
    "version": "Heliograph has no other versions of Kafka Connect to choose from",
    "image": _PODS,
    "resources": f"{_PODS}; Spark's settings say how much a task gets",
    "livenessProbe": _PODS,
    "readinessProbe": _PODS,
    "jvmOptions": _JAVA,
    "jmxOptions": _JAVA,
    "affinity": _PODS,
    "tolerations": _PODS,
    "template": _PODS,
    "logging": "loggers of Java are not Heliograph's; `--verbose` logs more",
    "metrics": "the operator's exporter runs in Java",
    "metricsConfig": "the operator's exporter runs in Java",
    "tracing": _JAVA,
    "rack": "the label of a Kubernetes node is not known; set 'consumer.client.rack' in the source's config",
    "clientRackInitImage": _PODS,
}
CONNECTOR_IGNORED = {
    "version": "there are no other versions of the connector to choose from",
    "listOffsets": "offsets are not written to a ConfigMap; ask for them with `heliograph groups`",
    "alterOffsets": "offsets are not read from a ConfigMap",
}


def is_forbidden(key: str) -> bool:
    """Return whether the operator ignores a key in a cluster's config: it has a field for it, or sets it by itself."""
    return key.startswith(_FORBIDDEN) and not key.startswith(_ALLOWED)


def check_fields(
    reading: Reading, tree: Tree, known: Collection[str], ignored: Mapping[str, str] | None = None
) -> None:
    """Report each field that is ignored, and each that does not exist."""
    ignored = ignored or {}
    for name, field in tree.fields.items():
        if name in ignored:
            reading.note(field, f"ignored: {ignored[name]}.")
        elif name not in known:
            near = nearest(name, [*known, *ignored])
            stays = _stays(nearest(name, known), tree)
            hint = stays if near or stays else _belongs_elsewhere(name, tree)
            reading.diagnostics.append(unknown_field(place_of(field), near, hint))


def config_of(reading: Reading, tree: Tree) -> dict[str, Tree]:
    """The `config` of a cluster or connector: keys that have one value."""
    config = tree.get("config")
    if config is None:
        return {}
    if config.kind != "map":
        reading.problem(config, "it must be a map of keys and values.")
        return {}
    for field in config.fields.values():
        if not field.is_scalar:
            words = "it has no value." if field.kind == "nothing" else "it must be text, a number, true or false."
            reading.problem(field, words)
    return {name: field for name, field in config.fields.items() if field.is_scalar}


def _stays(near: str | None, mirror: Tree) -> str:
    """Return what a mistyped pattern leaves as it is; nothing if the mirror has it as well, as a field or as a key."""
    key = PATTERNS.get(near or "")
    configs = [connector.get("config") for name in CONNECTORS if (connector := mirror.get(name)) is not None]
    is_set = near in mirror.fields or any(config is not None and key in config.fields for config in configs)
    return "" if is_set else until_then(key)


def _belongs_elsewhere(name: str, tree: Tree) -> str:
    """A hint for a field that is one of another section's: a wrong indentation."""
    sections = {"a mirror": MIRROR, "a cluster": CLUSTER, "a connector": CONNECTOR, "the spec": (*SPEC, *SPEC_IGNORED)}
    section = next((section for section, names in sections.items() if name in names), None)
    where = tree.path or "the top of the document"
    return f" It is a field of {section}, not of {where}; look at its indentation." if section else ""
