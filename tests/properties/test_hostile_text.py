"""Callers of REST and owners of a source cluster send any text: a scan of it takes time in step with its length.

The inputs are long enough that an expression which tries every beginning with every end would take minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from heliograph.config.formats.strimzi_reader import _MARKS
from heliograph.config.input_limits import is_group_name, is_topic_name
from heliograph.config.keys.table import split_list
from heliograph.config.resolve.jaas import parse_jaas
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.redaction import has_literal_secret, is_secret, redact_text, redact_value, shown_name
from heliograph.config.resolve.suggestions import did_you_mean
from heliograph.config.syntax.properties import parse_leniently
from heliograph.config.validate.key_names import unknown_keys
from heliograph.errors import ConfigError
from heliograph.kafka.security.keystores import _pem_blocks
from heliograph.kafka.security.tls import openssl_suites
from heliograph.mirror.acls.name_prefixes import names_of
from heliograph.mirror.policy.rename_map import parse_rename_map
from heliograph.web.access.access_rules import taken_by
from heliograph.web.access.callers import _BLANKS
from tests.support.config_files import FakeLookup

LENGTHS = (1_000, 24_000)
# Of processor time. A linear scan needs milliseconds; a quadratic one seconds for the longer text, a cubic one for the
# shorter.
MOST_S = 1.0
RESOLVER = Resolver(FakeLookup(), {})

PIECES = [
    *("token", "password", "a.", ".", "a", "_", "-", "auth", "api.key.", "x-token-x."),
    *("${", "${a}", "${a} ", "${ ", "${a:", "$", "{", "}", "${${a}"),
    *("=:", "=", ":", "password=", "password =  ", 'password="', "password='", 'password="\\', "token:token:"),
    *('"', "'", "\\", '"\\', '\\"', "'\\'", '"\\\n'),
    *("http://", "://", "a://b", "http://a ", "@", "a@", "http://u:p@", "http://u:p"),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "-----BEGIN ",
        "-",
        "PRIVATE KEY",
        "-----BEGIN A-----",
    ),
    *("bearer ", "basic\t", "negotiate  ", "bearer ${", "Authorization: Bearer ", "basic basic", "bearer" + " " * 50),
    *(" ", "\n", "\t \n", ",", " ,", ", ", ";", "/", ":/", "=/a", "file:/", "file:///a ", "=/=/"),
    *(
        "(",
        "[",
        "[a",
        "\\Q",
        "\\Q\\E",
        "(?",
        "a|",
        "a,",
        "(a",
        "x=y,",
        "(.*)=",
        "TLS_A_WITH_",
        "_WITH_",
        "//",
        "/*",
        "#",
    ),
    *("\r", "\\u", "é", "\0", "- a", "kind:", "---\n", "a b=c "),
]
BEFORE = ("", "x", "password=", "Module required a=", "TLS_")
SCANS: dict[str, Callable[[str], object]] = {
    "redact_text": redact_text,
    "redact_value": lambda text: redact_value("x", text),
    "redact_value by name": lambda text: redact_value(text, "v"),
    "is_secret": is_secret,
    "shown_name": shown_name,
    "has_literal_secret": lambda text: has_literal_secret("ssl.key.password", text),
    "resolve": lambda text: RESOLVER.tolerant().resolve("x", text),
    "sources": lambda text: list(RESOLVER.sources(text)),
    "taken_by": lambda text: list(taken_by({"x": text, "sasl.jaas.config": text, "a.url": text}, RESOLVER)),
    "parse_jaas": parse_jaas,
    "parse_leniently": parse_leniently,
    "split_list": split_list,
    "did_you_mean": lambda text: did_you_mean(text, ["topics", "a" * 200]),
    "unknown_keys": lambda text: list(unknown_keys({text: text})),
    "names_of": lambda text: names_of(split_list(text)),
    "parse_rename_map": lambda text: parse_rename_map("k", split_list(text)),
    "is_topic_name": is_topic_name,
    "is_group_name": is_group_name,
    "PEM": _pem_blocks,
    "ciphers": lambda text: openssl_suites((text,)),
    "certificate subject": lambda text: _BLANKS.sub(",", text),
    "resource": lambda text: list(_MARKS.finditer(text)),
}


def seconds(scan: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    with suppress(ConfigError, ValueError, RecursionError):  # refused is as good
        scan(text)
    return time.thread_time() - began


@pytest.mark.parametrize("scan", SCANS.values(), ids=SCANS)
def test_no_text_of_a_kind_makes_a_scan_slow(scan: Callable[[str], object]) -> None:
    for length in LENGTHS:
        for number, piece in enumerate(PIECES):
            for before in ("", BEFORE[number % len(BEFORE)]):
                text = f"{before}{piece * (length // len(piece))}!"
                taken = seconds(scan, text)
                assert taken < MOST_S, f"{taken:.1f} s for {before!r} and {piece!r}, {len(text)} characters"


@pytest.mark.parametrize(
    ("scan", "before", "piece"),
    [
        (redact_text, "", "token"),
        (redact_text, "", "http://"),
        (redact_text, "", "bearer ${"),
        (is_secret, "", "a."),
        (SCANS["redact_value"], "", "${a} "),
        (SCANS["resolve"], "", "${"),
        (SCANS["sources"], "", "${"),
        (split_list, "a", " "),
        (_pem_blocks, "", "-----BEGIN A-----"),
        (SCANS["ciphers"], "TLS", "_WITH_"),
        (SCANS["parse_rename_map"], "", "x=y,"),
        (SCANS["names_of"], "", "a,"),
        (SCANS["names_of"], "", "a"),
    ],
)
def test_twice_the_text_takes_about_twice_the_time(scan: Callable[[str], object], before: str, piece: str) -> None:
    short, long = (f"{before}{piece * (length // len(piece))}!" for length in (50_000, 400_000))
    assert seconds(scan, long) < 24 * seconds(scan, short) + 0.5  # 8 times the length; quadratic would be 64 times
