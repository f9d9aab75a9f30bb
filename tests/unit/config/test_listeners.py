"""Where the REST server listens, from the keys of a worker's file."""

from __future__ import annotations

import pytest

from heliograph.config.effective.rest_config import (
    RestListener,
    advertised_listener,
    file_listeners,
    parse_listener,
    rest_listeners,
)
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError
from tests.support.config_files import FakeLookup

EVERYWHERE = "0.0.0.0"  # noqa: S104


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, [("127.0.0.1", 8083)]),
        ({"rest.port": "28082"}, [("127.0.0.1", 28082)]),
        ({"rest.port": "8083", "rest.host.name": EVERYWHERE}, [(EVERYWHERE, 8083)]),
        ({"rest.host.name": '"localhost"'}, [("localhost", 8083)]),
        ({"listeners": "http://:8084"}, [("127.0.0.1", 8084)]),
        ({"listeners": "http://0.0.0.0:8084", "rest.port": "1"}, [(EVERYWHERE, 8084)]),
        ({"listeners": "HTTP://a:1, http://[::1]:2/"}, [("a", 1), ("::1", 2)]),
        ({"listeners": "http://127.0.0.1:0"}, [("127.0.0.1", 0)]),
    ],
)
def test_the_file_says_where_to_listen(values: dict[str, str], expected: list[tuple[str, int]]) -> None:
    assert [listener[:2] for listener in rest_listeners(Settings(values))] == expected


def test_a_listener_may_be_https() -> None:
    found = rest_listeners(Settings({"listeners": "HTTPS://:8443, http://a:1"}))
    assert [listener.url for listener in found] == ["https://127.0.0.1:8443", "http://a:1"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"listeners": "8083"}, "listeners: '8083' is not an address"),
        ({"listeners": "http://a"}, "'http://a' is not an address"),
        ({"listeners": "http://a:99999"}, "is not an address"),
        ({"listeners": "http://a:1/path"}, "is not an address"),
        ({"listeners": "http://[::1:2"}, "is not an address"),
        ({"listeners": "ftp://a:1"}, "is not an address"),
        ({"listeners": ""}, "listeners: it is empty"),
        ({"rest.port": "-1"}, "rest.port: -1 is not a port"),
        ({"rest.port": "x"}, "rest.port: 'x' is not a whole number"),
    ],
)
def test_what_is_no_address_is_named_with_its_key(values: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("[", r"\[")):
        rest_listeners(Settings(values))


@pytest.mark.parametrize(
    ("values", "bound", "url"),
    [
        ({}, RestListener("127.0.0.1", 8083), "http://127.0.0.1:8083"),
        ({}, RestListener(EVERYWHERE, 8083), "http://me:8083"),
        ({}, RestListener("::", 8083), "http://me:8083"),
        ({}, RestListener("::1", 8083), "http://[::1]:8083"),
        ({"rest.advertised.host.name": '"localhost"'}, RestListener(EVERYWHERE, 1), "http://localhost:1"),
        ({"rest.advertised.host.name": "a", "rest.advertised.port": "2"}, RestListener("b", 1), "http://a:2"),
    ],
)
def test_others_reach_a_worker_where_it_is_bound_or_where_it_says(
    values: dict[str, str], bound: RestListener, url: str
) -> None:
    assert advertised_listener(Settings(values), [bound], "me").url == url


@pytest.mark.parametrize(
    ("values", "url"),
    [({}, "https://a:2"), ({"rest.advertised.listener": "HTTP"}, "http://a:1")],
)
def test_of_several_listeners_others_are_told_the_https_one_unless_the_file_says_otherwise(
    values: dict[str, str], url: str
) -> None:
    bound = [RestListener("a", 1), RestListener("a", 2, is_https=True)]
    assert advertised_listener(Settings(values), bound, "me").url == url


def test_a_listener_to_be_told_must_be_there() -> None:
    settings = Settings({"rest.advertised.listener": "https"})
    with pytest.raises(ConfigError, match=r"rest\.advertised\.listener: there is no https listener"):
        advertised_listener(settings, [RestListener("a", 1)], "me")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"rest.host.name": "localhost"}, []),
        ({"rest.port": "8084"}, [("127.0.0.1", 8084)]),
        ({"listeners": "http://:8084"}, [("127.0.0.1", 8084)]),
    ],
)
def test_a_dedicated_file_listens_only_where_it_says_so(
    values: dict[str, str], expected: list[tuple[str, int]]
) -> None:
    found = file_listeners(values, Resolver(FakeLookup(), values))
    assert [listener[:2] for listener in found] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8083", ("127.0.0.1", 8083, False)),
        ("h:1", ("h", 1, False)),
        (":2", ("127.0.0.1", 2, False)),
        ("[::1]:3", ("::1", 3, False)),
        ("https://h:4", ("h", 4, True)),
    ],
)
def test_an_address_on_the_command_line(text: str, expected: tuple[str, int, bool]) -> None:
    assert parse_listener("--rest", text) == expected


@pytest.mark.parametrize("text", ["", "h", "h:", "http://h:1x", "70000"])
def test_what_is_no_address_is_a_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--rest"):
        parse_listener("--rest", text)
