"""Resources of both vendors, every version and every type of authentication, beside the properties that say the same.

The files are written by hand from the vendors' references; `SECRETS` stands for the folder of the mounted secrets.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heliograph.cli.inputs import MachineLookup, MountedSecrets
from heliograph.config.formats.conversion import ConfigText, read_entries
from heliograph.config.formats.strimzi_fields import API_VERSIONS
from heliograph.config.syntax.properties import as_map, parse_properties
from heliograph.config.validate.dedicated_file import examine
from heliograph.mirror.topics.internal_topics import offsets_topic, transactional_prefix
from tests.support.diagnostics import texts

FOLDER = Path(__file__).parent / "resources"
NAMES = sorted(file.stem for file in FOLDER.glob("*.yaml"))
KEYS = {
    "paris-ca": ("ca.crt",),
    "paris-old-ca": ("b.crt", "a.crt", "a.key"),
    "paris-mirror": ("password",),
    "oslo-mirror": ("user.crt", "user.key", "client"),
    "rome-login": ("jaas",),
}


@pytest.fixture
def secrets(tmp_path: Path) -> MountedSecrets:
    """Secrets as Kubernetes mounts them, with the links it keeps beside the files."""
    for secret, keys in KEYS.items():
        (tmp_path / secret / "..data").mkdir(parents=True)
        for key in keys:
            (tmp_path / secret / key).write_text(f"{secret} {key}")
    return MountedSecrets(tmp_path)


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.yaml").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_resource_is_read_as_the_file_beside_it(name: str, secrets: MountedSecrets) -> None:
    reading, _ = read_entries(ConfigText(text_of(name), f"{name}.yaml", secrets), MachineLookup())
    assert reading.problems == ()
    wanted = (FOLDER / f"{name}.properties").read_text().replace("SECRETS", secrets.path)
    assert as_map(reading.entries) == as_map(parse_properties(wanted))


@pytest.mark.parametrize("version", API_VERSIONS)
def test_every_version_is_known(version: str, secrets: MountedSecrets) -> None:
    text = re.sub(r"apiVersion: \S+", f"apiVersion: {version}", text_of("strimzi-v1beta2"))
    report = examine(ConfigText(text, secrets=secrets), MachineLookup())
    assert texts(report.problems) == ()
    assert report.config is not None
    assert [str(flow) for flow in report.config.flows] == ["paris->oslo"]


def test_what_only_the_operator_can_act_on_is_told_in_a_line_each(secrets: MountedSecrets) -> None:
    report = examine(ConfigText(text_of("strimzi-v1beta2"), secrets=secrets), MachineLookup())
    ignored = [note.split(": ")[1] for note in texts(report.notes) if ": ignored: " in note]
    parts = ("version", "replicas", "resources", "jvmOptions", "metricsConfig", "logging", "template")
    assert ignored == [f"spec.{part}" for part in parts]


def test_a_paused_mirror_is_known_and_not_run(secrets: MountedSecrets) -> None:
    report = examine(ConfigText(text_of("strimzi-v1"), secrets=secrets), MachineLookup())
    assert report.config is not None
    assert [str(flow) for flow in report.config.flows] == ["paris->oslo"]
    assert {str(flow): why for flow, why in report.config.paused.items()} == {
        "rome->oslo": "paused by line 46: spec.mirrors[1].sourceConnector.state"
    }
    assert any("rome->oslo is paused; it is not run." in note for note in texts(report.notes))


def test_the_password_of_a_secret_in_the_file_is_found_and_never_shown() -> None:
    report = examine(ConfigText(text_of("two-resources")), MachineLookup())
    assert texts(report.problems) == ()
    assert report.config is not None
    assert 'password="secret"' in report.config.client("oslo", "producer").values["sasl.jaas.config"]
    assert 'secret"' not in repr(report)
    assert [str(flow) for flow in report.config.flows] == ["paris->oslo", "oslo->paris"]


def test_progress_is_kept_under_the_names_the_operator_gives_its_connectors() -> None:
    config = examine(ConfigText(text_of("two-resources")), MachineLookup()).config
    assert config is not None
    assert [config.source_connector(flow) for flow in config.flows] == [
        "paris->oslo.MirrorSourceConnector",
        "oslo->paris.MirrorSourceConnector",
    ]
    assert offsets_topic(config.settings(config.flows[0])).name == "mirrormaker2-cluster-offsets"
    prefix = transactional_prefix(config.settings(config.flows[0]), config.source_connector(config.flows[0]))
    assert prefix == "mirrormaker2-cluster-paris->oslo.MirrorSourceConnector-"
