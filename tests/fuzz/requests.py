"""Requests as a hostile or careless client sends them: any route with any name, header and body, drawn by a seed.

Every address in a config is on 127.0.0.1, so that a worker that is sent them calls nobody else.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from heliograph.web.endpoints.routes import ROUTES, Endpoint
from tests.support.connect.connect_worker import MIRROR

NAMES = ("fuzz-a", "fuzz-b", "fuzz-c", "fuzz d-ü")
_HOSTILE_NAMES = (
    "", ".", "..", "../../etc/passwd", "a/b", "\x00", "a\r\nx: y", "%s%n", "${env:HOME}", "\ud7ff", "\U0001d4b3" * 60,
    "x" * 249, "x" * 8_000, "'; drop", "{connector}", "<script>", "-1", "0", "99999999999999999999", "token" * 500,
)  # fmt: skip
_PATTERNS = (
    "(a+)+b", "(a|a)*b", "(.*a){25}b", "((a*)*)*b", "^(a?){40}a{40}$", r"(\w+\s?)*!", "(?=a)b", r"(a)\1", "[", "(", "*",
    "", "a{1000000}", "(?i)" * 500, "|" * 5_000, ".*", "a" * 50_000, "(" * 5_000, "[a-" * 1_000, "fuzz-.*",
)  # fmt: skip
_VALUES = (
    "token" * 2_000, "password=" * 1_000, "${" * 5_000, "${file:/etc/passwd:x}", "${env:" + "A" * 5_000 + "}",
    "." * 20_000, "a." * 10_000, '"' * 5_000, "\\" * 5_000, "=;" * 5_000, "\r\n" * 1_000, "\x00", "NaN",
    "-1", "1e999", "9" * 5_000, "true", "https://127.0.0.1:1/token", "file:///etc/passwd", "a," * 50_000,
    "ü" * 10_000, "[hidden]", "os:system", ",".join(map(str, range(30_000))),
    "x required " + " ".join(f'password{number}="{"a" * 60}b{number:04}"' for number in range(4_200)) + ";",
)  # fmt: skip
_KEYS = (
    "topics", "groups", "topics.exclude", "groups.exclude", "tasks.max", "name", "connector.class",
    "replication.policy.class",
    "source.cluster.sasl.jaas.config", "target.cluster.ssl.keystore.location", "source.cluster.sasl.mechanism",
    "config.properties.exclude", "offset.lag.max", "transforms", "transforms.a.type", "predicates", "header.converter",
    "heliograph.rest.rules.file", "producer.override.acks", "emit.checkpoints.enabled",
    "refresh.topics.interval.seconds",
)  # fmt: skip
_HEADERS = (
    ("Accept", "text/html"), ("Accept", "*/*," * 5_000), ("Host", "evil.example"), ("Host", "localhost:1"),
    ("Origin", "http://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site"),
    ("Authorization", "Basic ====="),
    ("Authorization", "Basic " + "A" * 20_000), ("X-Heliograph-Forwarded", "x.y"), ("Content-Type", "text/plain"),
    ("Content-Type", "application/json; charset=" + "x" * 9_000), ("Content-Length", "-1"),
    ("Content-Length", "9" * 40),
    ("Transfer-Encoding", "chunked"), ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Expect", "100-continue"),
    ("Cookie", "a=b;" * 7_000), ("X-Forwarded-Host", "evil.example"),
)  # fmt: skip
_QUERIES = (
    "",
    "",
    "expand=info&expand=status",
    "forward=false",
    "includeTasks=true&onlyFailed=true",
    "x=" + "y" * 9_000,
    "=&&=",
)


class Sent(NamedTuple):
    """One request; `label` is its route."""

    label: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def __str__(self) -> str:
        body = self.body if len(self.body) < 300 else self.body[:300] + b"... (%d bytes)" % len(self.body)
        headers = [(name, value[:100]) for name, value in self.headers]
        return f"{self.method} {self.target[:120]} {headers} {body!r}"


class Clusters(NamedTuple):
    """Bootstrap servers of connectors that are to run."""

    source: str
    target: str


def draw(random: Random, clusters: Clusters) -> Sent:
    """Any request."""
    endpoint = random.choice(ROUTES)
    method = endpoint.method if random.random() < 0.95 else random.choice(("TRACE", "HEAD", "OPTIONS", "PATCH", "x"))
    path = endpoint.path
    for part, usual in (
        ("{connector}", NAMES),
        ("{task}", ("0", "1")),
        ("{plugin}", (f"{MIRROR}.MirrorSourceConnector",)),
    ):
        path = path.replace(part, _path_part(random, usual))
    path = path.replace("{logger}", _path_part(random, ("fuzz.logger", "root")))
    query = random.choice(_QUERIES)
    body = _body(random, endpoint, clusters) if method in ("POST", "PUT", "PATCH") else b""
    headers = [] if not body else [("Content-Type", "application/json")]
    if random.random() < 0.2:
        headers += random.choices(_HEADERS, k=random.randint(1, 3))
    return Sent(f"{method} {endpoint.path}", method, f"{path}?{query}" if query else path, tuple(headers), body)


def _path_part(random: Random, usual: tuple[str, ...]) -> str:
    return quote(random.choice(usual if random.random() < 0.8 else _HOSTILE_NAMES), safe="")


def _body(random: Random, endpoint: Endpoint, clusters: Clusters) -> bytes:
    if random.random() < 0.15:
        return _hostile_bytes(random)
    if endpoint.path.endswith("/offsets"):
        return _json(_offsets(random))
    if endpoint.path.startswith("/admin"):
        return _json({"level": random.choice(("x", "", None, "token" * 500, 1, {}))})
    if endpoint.path == "/connectors":
        name = random.choice(NAMES if random.random() < 0.8 else _HOSTILE_NAMES)
        state = random.choice(("RUNNING", "PAUSED", "STOPPED", "x", None))
        return _json({"name": name, "config": _config(random, clusters), "initial_state": state})
    if "config" in endpoint.path:
        return _json(_config(random, clusters))
    return b""


def _config(random: Random, clusters: Clusters) -> dict[str, Any]:
    """A config that can run, unless some of it is hostile."""
    kind = random.choice(("Source", "Checkpoint", "Heartbeat"))
    config: dict[str, Any] = {
        "connector.class": f"{MIRROR}.Mirror{kind}Connector",
        "source.cluster.alias": random.choice(("fuzzed", "a.b", "")),
        "target.cluster.alias": "target",
        "source.cluster.bootstrap.servers": random.choice(
            (clusters.source, clusters.source, "127.0.0.1:1", "127.0.0.1")
        ),
        "target.cluster.bootstrap.servers": clusters.target,
        "topics": random.choice(_PATTERNS),
        "groups": random.choice(_PATTERNS),
    }
    for _key in range(random.choice((0, 0, 1, 2, 5))):
        key = random.choice(_KEYS) if random.random() < 0.8 else random.choice(_HOSTILE_NAMES)
        config[key] = random.choice((*_VALUES, *_PATTERNS, None, 1.5, True, [1], {}))
    return config


def _offsets(random: Random) -> object:
    offset = random.choice(({"offset": 5}, {"offset": -1}, {"offset": "x"}, {"offset": 2**70}, None, {}, []))
    partition = random.choice(
        (
            {"cluster": "fuzzed", "partition": 0, "topic": "fuzz"},
            {"x": "token" * 1_000},
            None,
            {},
            {"topic": "a" * 9_000},
        )
    )
    return {"offsets": [{"partition": partition, "offset": offset}] * random.choice((1, 1, 3, 3_000))}


def _hostile_bytes(random: Random) -> bytes:
    return random.choice(
        (
            lambda: random.randbytes(random.randint(0, 2_000)),
            lambda: b'{"offsets":[' + b"{}," * random.choice((1_000, 190_000, 1_300_000)) + b"{}]}",
            lambda: b"[" * random.choice((100, 100_000, 1_000_000)),
            lambda: b'{"a":' * 100_000,
            lambda: b'{"x":"' + b"\\u0041" * 300_000 + b'"}',
            lambda: b'{"x":' + b"9" * 500_000 + b"}",
            lambda: b"{" + b",".join(b'"%d":1' % number for number in range(100_000)) + b"}",
            lambda: b" " * random.choice((70_000, 2_000_000, 5_000_000)),
            lambda: b'{"x":"\\ud800"}',
            lambda: b"null",
        )
    )()


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
