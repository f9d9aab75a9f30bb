"""Bodies of requests: whatever is sent, it is either understood or refused with a sentence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.errors import ConnectError
from heliograph.web.endpoints import request_bodies
from heliograph.web.endpoints.routes import LARGEST_CONFIG_BYTES, LARGEST_OFFSETS_BYTES
from tests.support.connect.rest_worker import rest_worker

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
READERS = (request_bodies.config_map, request_bodies.create_request, request_bodies.offsets)


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_understood_or_refused(body: bytes) -> None:
    for read in READERS:
        try:
            read(body)
        except ConnectError as error:
            assert error.status in (400, 500)
            assert error.message


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), SCALARS))
def test_a_map_keeps_its_names_and_its_values_become_text(config: dict[str, object]) -> None:
    try:
        read = request_bodies.config_map(json.dumps(config).encode())
    except ConnectError as error:
        assert "surrogates" in error.message
        return
    assert read.keys() == config.keys()
    for name, value in config.items():
        assert read[name] == (value if value is None or isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "has no body"),
        (b" \n", "has no body"),
        (b"null", "has no body"),
        (b'{"a":', "is not JSON: Expecting value (line: 1, column: 6)"),
        (b'{\n"a":1,}', "(line: 2, column: "),
        (b'{"a":"\xff"}', "is not JSON: invalid start byte, which is no text"),
        (b'{"a":"\\ud800"}', "surrogates not allowed"),
        (b'{"a":NaN}', "NaN is not a number"),
        (b'{"a":-Infinity}', "-Infinity is not a number"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "the body must be an object"),
        (b'{"a":[1]}', '"a" must be text'),
        (b'{"a":{}}', '"a" must be text'),
    ],
)
def test_a_malformed_map_is_refused_with_its_place(body: bytes, words: str) -> None:
    with pytest.raises(ConnectError) as caught:
        request_bodies.config_map(body)
    assert caught.value.status == 500
    assert words in caught.value.message


def test_numbers_stay_as_they_were_written() -> None:
    body = b'{"a":1.50,"b":1e400,"c":12345678901234567890123,"d":-0,"e":true,"f":null,"a2":"x","a2":"y"}'
    expected = {"a": "1.50", "b": "1e400", "c": "12345678901234567890123", "d": "-0", "e": "true", "f": None, "a2": "y"}
    assert request_bodies.config_map(body) == expected


def test_a_number_of_thousands_of_digits_is_refused_as_an_offset() -> None:
    body = b'{"offsets":[{"partition":{"p":' + b"9" * 5000 + b'},"offset":null}]}'
    with pytest.raises(ConnectError, match="does not fit"):
        request_bodies.offsets(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{}", 'with "name" and "config"'),
        ('{"name":"x","config":null}', 'with "name" and "config"'),
        ('{"name":"x","config":[]}', '"config" must be an object'),
        ('{"name":["x"],"config":{}}', '"name" must be text'),
        ('{"name":"x","config":{},"foo":1}', 'unknown member "foo"'),
        ('{"name":"x","config":{},"initial_state":"FAST"}', "must be one of RUNNING, PAUSED, STOPPED"),
    ],
)
def test_a_request_that_creates_nothing_is_refused(body: str, words: str) -> None:
    with pytest.raises(ConnectError) as caught:
        request_bodies.create_request(body.encode())
    assert caught.value.status == 500
    assert words in caught.value.message


def test_utf_16_is_read_too() -> None:
    assert request_bodies.config_map('{"a":"ü"}'.encode("utf-16")) == {"a": "ü"}


def test_a_body_of_many_values_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def loads(*_values: object, **_more: object) -> object:
        raise AssertionError("it must not be decoded")

    monkeypatch.setattr(request_bodies.json, "loads", loads)
    for many in (b'{"offsets":[' + b"{}," * 210_000, b"[" * 400_001, b"{" * 400_001, b'{"a":' + b"[1," * 200_001):
        for read in READERS:
            with pytest.raises(ConnectError, match="more than 400000 values") as refused:
                read(many)
            assert refused.value.status == 413


def test_the_offsets_of_many_partitions_fit_into_one_body() -> None:
    """The limits are above what is sent in earnest."""
    entries = [
        {
            "partition": {"cluster": "A", "partition": number % 100, "topic": f"orders-{number}"},
            "offset": {"offset": number},
        }
        for number in range(30_000)
    ]
    body = json.dumps({"offsets": entries}).encode()
    assert len(body) < LARGEST_OFFSETS_BYTES
    assert len(request_bodies.offsets(body)) == 30_000


def test_a_long_list_of_topics_fits_into_a_config() -> None:
    topics = ",".join(f"t{number}" for number in range(140_000))
    body = json.dumps({"topics": topics}).encode()
    assert 1_000_000 < len(body) < LARGEST_CONFIG_BYTES
    assert request_bodies.config_map(body) == {"topics": topics}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"n" * 1_001: "v"}, "The name that begins with 'nnn"),
        ({"topics": "v" * ((1 << 20) + 1)}, "The value of topics has 1048577 characters; the limit is 1048576"),
        ({f"k{n}": "" for n in range(5_001)}, "The config has 5001 keys; the limit is 5000"),
    ],
)
def test_a_config_that_is_too_long_is_refused(config: dict[str, str], words: str) -> None:
    for read, body in (
        (request_bodies.config_map, config),
        (request_bodies.create_request, {"name": "c", "config": config}),
    ):
        with pytest.raises(ConnectError) as refused:
            read(json.dumps(body).encode())
        assert refused.value.status == 400
        assert refused.value.message.startswith(words)
    longest = {"n" * 1_000: "v" * (1 << 20)}
    assert request_bodies.config_map(json.dumps(longest).encode()) == longest


def test_a_connector_with_too_long_a_name_is_refused() -> None:
    with pytest.raises(ConnectError, match="1001 characters; the limit is 1000"):
        request_bodies.create_request(json.dumps({"name": "n" * 1_001, "config": {}}).encode())


def test_a_long_list_of_transforms_makes_no_long_answer() -> None:
    """Five requests of 240 kB with 60,000 names each took a gigabyte and half a minute."""
    config = {"connector.class": "MirrorSource", "transforms": ",".join(f"t{number}" for number in range(60_000))}
    with rest_worker() as worker:
        reply = worker.ask("PUT", "/connector-plugins/MirrorSource/config/validate", config)
    listed = [each["value"] for each in reply.body["configs"] if each["value"]["name"].startswith("transforms.")]
    assert [each["name"] for each in listed[:2]] == ["transforms.t0.type", "transforms.t0.plugin.version"]
    assert len(listed) == 200
    assert listed[0]["errors"]


@pytest.mark.parametrize("depth", [10, 60, 900])
def test_offsets_that_are_nested_deeply_are_refused(depth: int) -> None:
    """A message about them raised RecursionError."""
    body = b'{"offsets":[{"partition":{"a":' + b"[" * depth + b"]" * depth + b'},"offset":{}}]}'
    if depth == 10:
        assert len(request_bodies.offsets(body)) == 1
        return
    with pytest.raises(ConnectError, match="nested too deeply"):
        request_bodies.offsets(body)


def test_a_class_of_another_kind_of_connector_is_refused_like_others() -> None:
    config = {"connector.class": "MirrorSource", "source.cluster.alias": "A", "group.filter.class": "os:system"}
    with rest_worker() as worker:
        reply = worker.ask("PUT", "/connector-plugins/MirrorSource/config/validate", config)
    assert reply.status == 200
    (found,) = [each["value"] for each in reply.body["configs"] if each["value"]["name"] == "group.filter.class"]
    assert "heliograph.plugin.packages" in found["errors"][0]
