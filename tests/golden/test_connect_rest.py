"""The REST API against the recorded answers of Java Connect 4.3.1, over a herder of dictionaries.

What a herder decides for itself (whether a config is valid, which keys there are) is compared with Java where the real
one runs; here are paths, methods, bodies, shapes, states and every refusal that the API or its tables make.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.record_connect_rest import recorded
from tests.interop.rest_calls import CALLS
from tests.interop.rest_story import differences, tell
from tests.rest_worker import rest_worker

BY_VALIDATION = {
    "create: no name",
    "create: an empty name",
    "create: lacks a key",
    "create: wrong numbers",
    "patch to a wrong number",
    "patch the name away",
    "plugin: keys by a short name",
    "plugin: keys by a longer one",
    "plugin: keys by the class",
    "plugin: of the latest version",
    "validate: good",
    "validate: lacks keys",
}
JAVA = recorded()


@pytest.fixture(scope="module")
def different() -> Iterator[dict[str, str]]:
    with rest_worker() as worker:
        yield differences(JAVA, tell(worker.url, "broker:9092"))


def test_every_call_is_recorded_once() -> None:
    notes = [call.note for call in CALLS]
    assert len(notes) == len(set(notes)) == len(JAVA) >= 60
    assert set(notes) == set(JAVA)
    assert set(notes) > BY_VALIDATION


@pytest.mark.parametrize("note", [call.note for call in CALLS if call.note not in BY_VALIDATION])
def test_a_call_is_answered_as_java_answers_it(note: str, different: dict[str, str]) -> None:
    assert different.get(note) is None
