"""The code base keeps its shape: small packages, no cycles, a name for one thing only."""

from __future__ import annotations

from tests.architecture.measures import MOST_MODULES, SOURCE, Package

PACKAGE = Package(SOURCE)


def test_a_package_has_at_most_twelve_modules() -> None:
    assert {name: count for name, count in PACKAGE.packages.items() if count > MOST_MODULES} == {}


def test_modules_and_packages_have_no_cycles() -> None:
    assert PACKAGE.module_cycles() == []
    assert PACKAGE.package_cycles() == []


def test_a_class_name_is_defined_once() -> None:
    assert PACKAGE.repeated_classes() == {}


def test_a_file_name_is_used_once_except_by_the_command_for_it() -> None:
    repeated = PACKAGE.repeated_files()
    assert {name: places for name, places in repeated.items() if f"cli.commands.{name}" not in places} == {}


def test_names_and_texts_use_the_words_of_kafka_and_spark() -> None:
    assert PACKAGE.private_words() == []


def test_a_docstring_says_what_a_thing_is_or_does() -> None:
    assert PACKAGE.questions() == 0


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
    "FlowStatus",
    "FlowTask",
    "GroupAdmin",
    "GuardedHerder",
    "Membership",
    "ProducerSession",
    "RecordFlow",
    "SourceFlow",
    "StatusStore",
    "TargetPartition",
    "TaskSupervisor",
    "_Translator",
}


def test_no_further_class_grows_large() -> None:
    assert {name.rpartition(".")[2] for name in PACKAGE.large_classes()} <= LARGE
