"""Which versions of Kafka the embedded cluster starts, and how."""

from __future__ import annotations

import pytest

from heliograph.embedded.jars import DEFAULT_VERSION, broker_jars, connect_jars
from heliograph.embedded.layouts import layout_of
from heliograph.errors import EmbeddedError


@pytest.mark.parametrize(
    ("version", "scala", "uses_zookeeper"),
    [
        ("1.1.0", "2.12", True),
        ("2.3.1", "2.12", True),
        ("2.4.0", "2.13", True),
        ("2.8.2", "2.13", True),
        ("3.9.1", "2.13", True),
        ("4.0.0", "2.13", False),
        (DEFAULT_VERSION, "2.13", False),
    ],
)
def test_a_version_has_its_scala_and_its_zookeeper(version: str, scala: str, uses_zookeeper: bool) -> None:
    assert layout_of(version).uses_zookeeper is uses_zookeeper
    assert ("org.apache.kafka", f"kafka_{scala}", version) in broker_jars(version).artifacts


@pytest.mark.parametrize("version", ["0.11.0", "1.0.2", "5.0.0", "10.1.1"])
def test_the_error_for_a_version_that_cannot_be_started_names_those_that_can(version: str) -> None:
    with pytest.raises(EmbeddedError, match=rf"^Kafka {version} cannot be started here; these can: 1\.1\.x.*4\.x\.$"):
        broker_jars(version)


@pytest.mark.parametrize("version", ["", "2.8", "latest", "4.3.1-rc0", "../4.3.1"])
def test_text_that_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(EmbeddedError, match="is no version of Apache Kafka; give one like"):
        broker_jars(version)


def test_mirror_maker_2_is_not_sought_where_there_is_none() -> None:
    with pytest.raises(EmbeddedError, match=r"^Kafka 2\.3\.1 has no MirrorMaker 2; it came with 2\.4\.$"):
        connect_jars("2.3.1")
    assert connect_jars("2.8.2").artifacts[0][1] == "kafka_2.13"
