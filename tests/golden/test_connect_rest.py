"""The REST API against the recorded answers of Java Connect 4.3.1, over a herder of dictionaries.

Keys and validation are the real ones; only the states of connectors are the herder's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.record_connect_rest import recorded
from tests.interop.rest_calls import CALLS
from tests.interop.rest_story import differences, report
from tests.support.connect.rest_worker import rest_worker

JAVA = recorded()


@pytest.fixture(scope="module")
def different() -> Iterator[dict[str, str]]:
    with rest_worker() as worker:
        yield differences(JAVA, report(worker.url, "broker:9092"))


def test_every_call_is_recorded_once() -> None:
    notes = [call.note for call in CALLS]
    assert len(notes) == len(set(notes)) == len(JAVA) >= 60
    assert set(notes) == set(JAVA)


@pytest.mark.parametrize("note", [call.note for call in CALLS])
def test_a_call_is_answered_as_java_answers_it(note: str, different: dict[str, str]) -> None:
    assert different.get(note) is None
