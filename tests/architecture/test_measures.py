"""The code base keeps its shape: small packages, no cycles, a name for one thing only."""

from __future__ import annotations

import pytest

from tests.architecture.measures import MOST_MODULES, SOURCE, Package


@pytest.fixture(scope="module")
def package() -> Package:
    """Return the parsed code base; only the process that runs these tests parses it."""
    return Package(SOURCE)


def test_a_package_has_at_most_twelve_modules(package: Package) -> None:
    assert {name: count for name, count in package.packages.items() if count > MOST_MODULES} == {}


def test_modules_and_packages_have_no_cycles(package: Package) -> None:
    assert package.module_cycles() == []
    assert package.package_cycles() == []


def test_a_class_name_is_defined_once(package: Package) -> None:
    assert package.repeated_classes() == {}


def test_a_file_name_is_used_once_except_by_the_command_for_it(package: Package) -> None:
    repeated = package.repeated_files()
    assert {name: places for name, places in repeated.items() if f"cli.commands.{name}" not in places} == {}


def test_names_and_texts_use_the_words_of_kafka_and_spark(package: Package) -> None:
    assert package.private_words() == []


def test_a_docstring_says_what_a_thing_is_or_does(package: Package) -> None:
    assert package.questions() == 0


# Each is one state, or implements a protocol of that size.
LARGE = {
    "Admin",
    "CheckpointSync",
    "Cluster",
    "ConfigStore",
    "ConnectHerder",
    "Connection",
    "ConnectorConfig",
    "Fetcher",
    "FileHerder",
    "FlowTask",
    "GroupAdmin",
    "GuardedHerder",
    "Membership",
    "ProducerSession",
    "Reconciler",
    "RecordFlow",
    "SourceFlow",
    "StatusStore",
    "TargetPartition",
    "TaskSupervisor",
    "_Translator",
}


def test_no_further_class_grows_large(package: Package) -> None:
    assert {name.rpartition(".")[2] for name in package.large_classes()} <= LARGE
