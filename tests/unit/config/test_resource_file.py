"""KafkaMirrorMaker2 resources with something wrong, unusual or incomplete in them: sentences with line and path."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from heliograph.cli.main import cli
from heliograph.config import keys
from heliograph.config.formats.conversion import ConfigText
from heliograph.config.formats.strimzi_reader import is_resource
from heliograph.config.validate.dedicated_file import Report, examine
from heliograph.model import Flow
from tests.support.config_files import GOOD, HEAD, FakeLookup
from tests.support.diagnostics import texts

US_EU = Flow("us", "eu")


def report(text: str, lookup: FakeLookup | None = None) -> Report:
    return examine(ConfigText(text, "mm2.yaml"), lookup or FakeLookup())


def call(tmp_path: Path, command: str, text: str, *arguments: str) -> Result:
    file = tmp_path / "mm2.yaml"
    file.write_text(text)
    return CliRunner().invoke(cli, [command, str(file), *arguments])


def test_the_smallest_resource_is_usable(tmp_path: Path) -> None:
    result = call(tmp_path, "validate", GOOD, "--strict")
    assert result.exit_code == 0, result.output
    assert "usable; us->eu; no errors." in result.output


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kafka.strimzi.io/v1beta2", "kafka.strimzi.io/v2", "line 1: apiVersion: 'kafka.strimzi.io/v2' is not a known"),
        ("apiVersion: kafka.strimzi.io/v1beta2\n", "", "line 1: the document: there is no apiVersion"),
        (
            "connectCluster: eu",
            "connectCluster: as",
            "line 5: spec.connectCluster: no cluster has the alias 'as'; there",
        ),
        (
            "sourceCluster: us",
            "sourceCluster: uss",
            "line 12: spec.mirrors[0].sourceCluster: no cluster has the alias 'uss'",
        ),
        (
            "connectCluster: eu",
            "connectCluster: us",
            "line 13: spec.mirrors[0].targetCluster: the mirror writes to 'eu', and",
        ),
        ("targetCluster: eu", "targetCluster: us", "'us' is its source and its target"),
        ("      targetCluster: eu\n", "", None),
        ("- alias: us", "- alis: us", "line 7: spec.clusters[0]: the cluster has no alias."),
        ("alias: us", "alias: 'u,s'", "an alias is a word without commas"),
        (
            "bootstrapServers: us:9092",
            "bootstrapServers:",
            "line 8: spec.clusters[0].bootstrapServers: the cluster 'us' has",
        ),
        ("sourceConnector: {}", "sourceConnector: yes", "line 14: spec.mirrors[0].sourceConnector: it must be a map"),
        ("sourceConnector: {}", "sourceConnector: {state: off}", "'false' is none of running, paused, stopped"),
        ("sourceConnector: {}", "sourceConnector: {config: [a]}", "sourceConnector.config: it must be a map of keys"),
        ("sourceConnector: {}", "sourceConnector: {config: {topics: [a, b]}}", "config.topics: it must be text"),
        ("sourceConnector: {}", "sourceConnector: {config: {topics: }}", "config.topics: it has no value"),
        ("sourceConnector: {}", "sourceConnector: {tasksMax: -1}", "sourceConnector.tasksMax: '-1' must be at least 0"),
        (
            "sourceConnector: {}",
            "sourceConnector: {state: paused}",
            "No flow is left to run: us->eu is paused by line 14",
        ),
        ("clusters:", "clusters: 7\n  other:", "line 6: spec.clusters: it must be a list."),
        ("kind: KafkaMirrorMaker2", "kind: Kafka", "there is no KafkaMirrorMaker2 in the file"),
        (
            "us:9092\n",
            "us:9092\n      authentication: {type: kerberos}\n",
            "'kerberos' is not one of the types of auth",
        ),
        (
            "us:9092\n",
            "us:9092\n      authentication: {}\n",
            "there is none of the types of authentication: tls, plain",
        ),
        ("us:9092\n", "us:9092\n      authentication: {type: plain}\n", "username is missing for the type plain"),
        (
            "us:9092\n",
            "us:9092\n      authentication: {type: tls}\n",
            "certificateAndKey needs secretName, certificate, key",
        ),
        (
            "us:9092\n",
            "us:9092\n      authentication: {type: plain, username: u, passwordSecret: {secretName: s, password: p}}\n",
            "line 9: spec.clusters[0].authentication.passwordSecret: the secret 's' is not known; name the folder",
        ),
        (
            "us:9092\n",
            "us:9092\n      authentication: {type: oauth, refreshToken: {secretName: s, key: k}}\n",
            "authentication.refreshToken: Kafka's OAuth client cannot log in with a refresh token",
        ),
        (
            "us:9092\n",
            "us:9092\n      tls: {trustedCertificates: [{secretName: s}]}\n",
            "either a certificate or a pattern",
        ),
        ("us:9092\n", "us:9092\n      tls: [\n", "the YAML cannot be read"),
        (
            "      sourceConnector: {}\n",
            "      sourceConnector: {}\n      sourceConnector: {}\n",
            "it is written twice",
        ),
        ("spec:", "specs:", "it has no spec"),
        (
            "      sourceConnector: {}\n",
            "",
            "line 4: spec: no mirror copies anything; add 'sourceConnector: {}' to one.",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(old: str, new: str, words: str | None) -> None:
    assert old in GOOD
    problems = texts(report(GOOD.replace(old, new, 1)).problems)
    if words is None:
        assert problems == ()  # the target is known by connectCluster
    else:
        assert any(words in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "sourceConnector:",
            "sourceConector:",
            "spec.mirrors[0].sourceConector: unknown field; it has no effect. Did you mean 's",
        ),
        (
            "spec:",
            "spec:\n  sourceConnector: {}",
            "spec.sourceConnector: unknown field; it has no effect. It is a field of a mir",
        ),
        ("us:9092\n", "us:9092\n      tls: {trusted: 1}\n", "line 9: spec.clusters[0].tls.trusted: unknown field"),
        (
            "sourceConnector: {}",
            "sourceConnector: {config: {sync.group.offsets.enabled: true}}",
            "this connector does not have the key; it has no effect here. Write it into checkpointConnector.config.",
        ),
        (
            "sourceConnector: {}",
            "sourceConnector: {config: {sync.topic.acl.enabled: true}}",
            "unknown key; it has no effect. Did you mean 'sync.topic.acls.enabled'?",
        ),
        ("us:9092\n", "us:9092\n      config: {ssl.truststore.location: /x}\n", "the operator ignores this key here"),
        ("  connectCluster: eu\n", "", "line 4: spec: connectCluster is missing"),
        ("sourceConnector: {}", "topicsBlacklistPattern: x\n      sourceConnector: {}", "use topicsExcludePattern"),
        (
            "sourceConnector: {}\n      checkpointConnector: {}",
            "sourceConnector: {config: {topics: a}}\n      checkpointConnector: {config: {topics: b}}",
            "spec.mirrors[0].sourceConnector.config.topics on line 14 says something else, and counts for the whole",
        ),
    ],
)
def test_what_is_doubtful_is_a_warning_with_its_place(old: str, new: str, words: str) -> None:
    warnings = texts(report(GOOD.replace(old, new, 1)).warnings)
    assert any(words in warning for warning in warnings), warnings


@pytest.mark.parametrize(
    ("old", "new"), [("  clusters:", "   clusters:"), ("      sourceConnector:", "     sourceConnector:")]
)
def test_a_wrong_indentation_is_called_so(old: str, new: str) -> None:
    assert old in GOOD
    (problem,) = texts(report(GOOD.replace(old, new, 1)).problems)
    assert "the YAML cannot be read: the indentation does not fit the lines above" in problem


@pytest.mark.parametrize(
    ("new", "is_everything"),
    [
        ("topicPattern: orders\n      sourceConnector: {}", True),
        ("topicPattern: orders\n      topicsPattern: orders\n      sourceConnector: {}", False),
        ("topicPattern: orders\n      sourceConnector: {config: {topics: orders}}", False),
    ],
)
def test_a_mistyped_pattern_says_that_every_topic_is_copied(new: str, is_everything: bool) -> None:
    (warning,) = texts(report(GOOD.replace("sourceConnector: {}", new, 1)).warnings)
    words = "Did you mean 'topicsPattern'?"
    assert warning.endswith(f"{words} Until then 'topics' stays '.*': every topic." if is_everything else words)


def test_checkpoints_and_heartbeats_are_only_there_where_they_are_asked_for() -> None:
    config = report(GOOD.replace("checkpointConnector", "heartbeatConnector")).config
    assert config is not None
    assert config.raw["us->eu.emit.checkpoints.enabled"] == "false"
    assert [str(pair) for pair in config.heartbeat_flows] == ["us->eu"]


def test_a_policy_of_one_connector_counts_for_the_flow() -> None:
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    text = GOOD.replace(
        "checkpointConnector: {}", f"checkpointConnector: {{config: {{replication.policy.class: {policy}}}}}"
    )
    config = report(text).config
    assert config is not None
    assert config.settings(US_EU).values["replication.policy.class"] == policy


def test_two_resources_must_agree_about_a_cluster() -> None:
    other = GOOD.replace("us:9092", "us:9093").replace("eu", "as")
    problems = texts(report(f"{GOOD}---\n{other}").problems)
    assert any(
        "spec.clusters[0].bootstrapServers: line 8, spec.clusters[0].bootstrapServers, says" in p for p in problems
    )


def test_a_list_of_resources_is_read() -> None:
    items = "".join(f"  {line}\n" for line in GOOD.splitlines())
    text = f"apiVersion: v1\nkind: List\nitems:\n-{items[1:]}"
    config = report(text).config
    assert config is not None
    assert config.flows == (US_EU,)
    assert config.paths["us.bootstrap.servers"] == "items[0].spec.clusters[0].bootstrapServers"


def test_secrets_of_kubernetes_own_config_provider_are_read_from_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secrets" / "login").mkdir(parents=True)
    (tmp_path / "secrets" / "login" / "rack").write_text("r1")
    text = GOOD.replace(
        "eu:9092\n",
        "eu:9092\n      config:\n        config.providers: secrets\n"
        "        config.providers.secrets.class: io.strimzi.kafka.KubernetesSecretConfigProvider\n",
    ).replace(
        "sourceConnector: {}", 'sourceConnector: {config: {source.consumer.client.rack: "${secrets:ns/login:rack}"}}'
    )
    result = call(tmp_path, "explain", text, "client.rack", "--secrets", str(tmp_path / "secrets"))
    assert result.exit_code == 0, result.output
    assert f"us->eu, consumer of us: ${{dir:{tmp_path}/secrets/login:rack}}" in result.output
    assert "error" not in result.output  # it was found
    assert "r1" not in result.output


def test_a_value_is_explained_by_its_path(tmp_path: Path) -> None:
    text = GOOD.replace(
        "sourceConnector: {}", "sourceConnector: {config: {topics: a}, tasksMax: 3}\n      topicsPattern: b"
    )
    topics = call(tmp_path, "explain", text, "topics")
    assert "us->eu: b\n    from line 15: spec.mirrors[0].topicsPattern\n" in topics.output
    everything = call(tmp_path, "explain", text)
    assert "   14  spec.mirrors[0].sourceConnector.tasksMax = 3" in everything.output


def test_a_missing_folder_of_secrets_is_told(tmp_path: Path) -> None:
    result = call(tmp_path, "validate", GOOD, "--secrets", str(tmp_path / "none"))
    assert "there is no such folder" in str(result.exception)


# Document 000's and 003's snippets, as they are printed there.
SNIPPET_000 = """\
mirrors:
- sourceCluster: "my-cluster-source"
targetCluster: "my-cluster-target"
sourceConnector:
  config:
    replication.factor: 1
    offset-syncs.topic.replication.factor: 1
    sync.topic.acls.enabled: "false"
targetConnector:
  tls:
    trustedCertificates:
      - secretName: my-cluster-cluster-cert
        certificate: ca.crt
"""
SNIPPET_003 = """\
clusters:
  - alias: "es-src"
    bootstrapServers:
    config:
      config.storage.replication.factor: 3
      offset.storage.replication.factor: 3
      status.storage.replication.factor: 3
    tls: {}
"""


def test_a_snippet_says_what_it_lacks() -> None:
    found = report(SNIPPET_000)
    assert texts(found.problems) == (
        "line 1: the document: no mirror copies anything; add 'sourceConnector: {}' to one.",
        "line 2: mirrors[0].sourceCluster: no cluster has the alias 'my-cluster-source'; there are no clusters.",
        "line 2: mirrors[0]: targetCluster is missing.",
    )
    assert any("line 4: sourceConnector: unknown field" in w and "indentation" in w for w in texts(found.warnings))
    found = report(SNIPPET_003)
    assert texts(found.problems) == ("line 1: the document: there are no mirrors; add at least one to 'mirrors'.",)


def test_a_snippet_that_is_complete_works() -> None:
    text = "\n".join(line.removeprefix("  ") for line in GOOD.partition("spec:\n")[2].splitlines())
    found = report(text)
    assert texts(found.problems) == ()
    assert found.config is not None
    assert found.config.flows == (US_EU,)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (GOOD, "", True),
        ("clusters: A, B\n", "mm2.properties", False),
        ("clusters: A, B\n", "mm2.yml", True),
        ("# kind: of\nclusters = A, B\n", "", False),
        (SNIPPET_003, "", True),
    ],
)
def test_a_resource_is_known_by_name_or_content(text: str, name: str, expected: bool) -> None:
    assert is_resource(text, name) is expected


@pytest.mark.parametrize(
    "text", ["", "---\n", "a", "- 1", "spec: 1", f"{HEAD}spec: []", f"{HEAD}spec: {{mirrors: {{}}}}", "a: &a [*a]"]
)
def test_nonsense_is_told_and_never_crashes(text: str) -> None:
    found = report(text)
    assert texts(found.problems)
    assert found.config is None


@pytest.mark.parametrize(
    ("restart", "attempts"), [("enabled: false", 0), ("enabled: true, maxRestarts: 3", 3), ("enabled: true", -1)]
)
def test_restarts_are_limited_as_the_resource_says(restart: str, attempts: int) -> None:
    text = GOOD.replace("sourceConnector: {}", f"sourceConnector: {{autoRestart: {{{restart}}}}}")
    config = report(text).config
    assert config is not None
    assert config.settings(US_EU)[keys.RESTART_ATTEMPTS_MAX] == attempts


def test_a_key_store_in_a_secret_of_the_file_is_no_mistake() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: ca}\ndata: {ca.p12: MIL/+w==, ca.crt: eA==}\n---\n"
    assert texts(report(secret + GOOD).problems) == ()


def test_one_mistake_of_a_resource_does_not_hide_the_next(tmp_path: Path) -> None:
    text = (
        GOOD.replace("v1beta2", "v9")
        .replace("connectCluster: eu", "connectCluster: as")
        .replace("eu:9092\n", "${NOT_SET}\n      tls: {}\n      tls: {}\n")
        .replace("sourceCluster: us", "sourceCluster: uss")
        .replace("sourceConnector: {}", "topicsPattern: 'x['\n      sourceConnector: {tasksMax: many}")
    )
    output = call(tmp_path, "validate", text).output
    errors = [line for line in output.splitlines() if line.startswith("error: ")]
    assert [int(line.split()[2].rstrip(":")) for line in errors] == [1, 5, 10, 12, 14, 16, 17]


def test_a_mirror_without_its_source_is_still_looked_at() -> None:
    problems = texts(
        report(GOOD.replace("sourceCluster: us\n      ", "").replace("or: {}", "or: {tasksMax: many}", 1)).problems
    )
    assert problems == (
        "line 12: spec.mirrors[0]: sourceCluster is missing.",
        "line 13: spec.mirrors[0].sourceConnector.tasksMax: 'many' is not a whole number of at most 32 bits.",
    )
