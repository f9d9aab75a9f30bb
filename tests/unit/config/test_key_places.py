"""A diagnostic gets the line of its key, and the names of keys in the user's document."""

from __future__ import annotations

from heliograph.config.resolve.key_places import KeyPlaces
from heliograph.config.resolve.suggestions import unknown_key
from heliograph.diagnostics import Mention, Text, WithPrefix, problem, warning
from tests.support.diagnostics import texts

LINES = {"A->B.topcs": 4, "A->B.emit.offset-syncs.enabled": 6}
PATHS = {name: f"spec.mirrors[0].sourceConnector.config.{name.removeprefix('A->B.')}" for name in LINES}
SWITCH = problem(Text.of(Mention("A->B.emit.offset-syncs.enabled"), " is false."), "A->B.topcs")


def test_a_properties_file_has_its_own_names() -> None:
    assert texts(KeyPlaces(LINES).located([SWITCH])) == (
        "line 4: A->B.topcs: A->B.emit.offset-syncs.enabled is false.",
    )


def test_a_mentioned_key_has_its_path_in_a_resource() -> None:
    (text,) = texts(KeyPlaces(LINES, PATHS).located([SWITCH]))
    config = "spec.mirrors[0].sourceConnector.config"
    assert text == f"line 4: {config}.topcs: {config}.emit.offset-syncs.enabled is false."


def test_a_suggestion_has_no_prefix_in_a_resource() -> None:
    found = unknown_key("A->B.topcs", "A->B.topics")
    assert found.suggestion == "A->B.topics"
    (text,) = texts(KeyPlaces(LINES, PATHS).located([found]))
    assert text.endswith("config.topcs: unknown key; it has no effect. Did you mean 'topics'?")


def test_a_resource_has_no_prefixes_to_speak_of() -> None:
    found = warning(Text.of("this key has no effect ", WithPrefix("A->B."), "."), "A->B.topcs")
    assert texts(KeyPlaces(LINES).located([found])) == (
        f"line 4: A->B.topcs: this key has no effect {WithPrefix('A->B.')}.",
    )
    assert texts(KeyPlaces(LINES, PATHS).located([found]))[0].endswith("config.topcs: this key has no effect here.")
    of_client = warning(Text.of("no effect ", WithPrefix("A->B.consumer."), "."), "A->B.topcs")
    assert texts(KeyPlaces(LINES, PATHS).located([of_client]))[0].endswith(f"no effect {WithPrefix('consumer.')}.")


def test_a_value_that_looks_like_a_key_stays_as_it_is() -> None:
    (text,) = texts(KeyPlaces(LINES, PATHS).located([problem("'A->B.topcs' is not a number.", "A->B.topcs")]))
    assert text.endswith("config.topcs: 'A->B.topcs' is not a number.")


def test_diagnostics_come_once_and_in_the_order_of_the_document() -> None:
    early, late, nowhere = problem("x", "A->B.topcs"), problem("y", "A->B.emit.offset-syncs.enabled"), problem("z")
    assert [each.place.line for each in KeyPlaces(LINES).located([late, early, nowhere, early])] == [0, 4, 6]
