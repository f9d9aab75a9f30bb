"""The REST API on a free port over a herder of dictionaries, and requests to it."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from heliograph.cli.inputs import MachineLookup
from heliograph.config.effective.rest_config import RestListener, rest_access, rest_listeners
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.settings import Settings
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.connect.contract import refusals as refuse
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.metrics.dialects import Dialect
from heliograph.metrics.page import MetricOptions
from heliograph.mirror.policy.class_checks import class_error
from heliograph.web.access.authenticator import Authenticator
from heliograph.web.endpoints.metric_pages import MetricPages
from heliograph.web.exchange import Worker
from heliograph.web.server.app import make_app
from heliograph.web.server.rest_server import RestServer
from tests.interop.rest_story import ask
from tests.support.config_files import FakeLookup
from tests.support.connect.fake_herder import FakeHerder

PASSWORD = "secret"
ANY_PORT = (RestListener("127.0.0.1", 0),)


def real_plugins() -> ConnectorPlugins:
    """MM2's connectors in a worker without settings."""
    return ConnectorPlugins({}, Resolver(FakeLookup(), {}), class_error)


def real_pages() -> MetricPages:
    """Pages with the names of the JMX exporter."""
    return MetricPages(lambda: MetricOptions((Dialect.JMX_EXPORTER,), 1_000))


def check_config(plugins: ConnectorPlugins, config: Mapping[str, str]) -> None:
    """Refuse what a herder refuses."""
    class_name = config.get("connector.class")
    if class_name is None:
        raise refuse.no_class(config)
    plugin = plugins.resolve(class_name)
    if plugin is None:
        raise refuse.unknown_class(class_name, plugins.connector_classes())
    errors = plugins.errors(plugin, config)
    if errors:
        raise refuse.invalid(errors)


class Reply(NamedTuple):
    """An answer, its body parsed."""

    status: int
    body: Any
    headers: Mapping[str, str]


class RestWorker:
    """A running API and its herder."""

    def __init__(self, server: RestServer, herder: FakeHerder, log_levels: LogLevels) -> None:
        self.server, self.herder, self.log_levels = server, herder, log_levels
        self.tls: ssl.SSLContext | None = None
        self.authorization: str | None = None

    @property
    def url(self) -> str:
        return self.server.url

    def ask(self, method: str, path: str, payload: object = None, **headers: str) -> Reply:
        """A request with a JSON body, or with none."""
        body = None if payload is None else json.dumps(payload).encode()
        sent = {"content-type": "application/json"} if body is not None else {}
        return self.send(method, path, body, {**sent, **{name.replace("_", "-"): v for name, v in headers.items()}})

    def log_in(self, user: str | None, password: str = PASSWORD) -> Self:
        """From now on ask as this user; None: as nobody."""
        credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.authorization = None if user is None else f"Basic {credentials}"
        return self

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str] | None = None) -> Reply:
        """A request with any bytes as its body."""
        login = {} if self.authorization is None else {"authorization": self.authorization}
        status, answered, raw = ask(self.url, method, path, body, {**login, **(headers or {})}, self.tls)
        is_json = raw and answered.get("content-type") == "application/json"
        return Reply(status, json.loads(raw) if is_json else raw.decode(), {k.lower(): v for k, v in answered.items()})


@contextmanager
def rest_worker(herder: FakeHerder | None = None, *, read_only: bool = False, **more: Any) -> Iterator[RestWorker]:
    """The API on a port of its own."""
    plugins = real_plugins()
    log_levels = LogLevels()
    if herder is None:
        herder = FakeHerder(lambda config: check_config(plugins, config), log_levels)
    app = make_app(Worker(herder, plugins, log_levels, real_pages()), read_only=read_only, **more)
    with RestServer(app, ANY_PORT) as server:
        herder.worker_id = server.url.removeprefix("http://")
        yield RestWorker(server, herder, log_levels)


BASIC_AUTH = "org.apache.kafka.connect.rest.basic.auth.extension"


def login_lines(folder: Path, *users: str) -> dict[str, str]:
    """Keys of a worker whose callers must log in as one of these users, with the password `secret`."""
    (folder / "users.properties").write_text("".join(f"{user}={PASSWORD}\n" for user in users))
    (folder / "jaas.conf").write_text(
        f'KafkaConnect {{\n  {BASIC_AUTH}.PropertyFileLoginModule required file="{folder}/users.properties";\n}};\n'
    )
    return {
        "listeners": "http://127.0.0.1:0",
        "rest.extension.classes": f"{BASIC_AUTH}.BasicAuthSecurityRestExtension",
        "heliograph.rest.jaas.config.file": f"{folder}/jaas.conf",
    }


@contextmanager
def guarded_worker(raw: Mapping[str, str], herder: FakeHerder | None = None, **more: Any) -> Iterator[RestWorker]:
    """The API as a worker's file secures it; its listeners are `listeners`, with port 0."""
    resolver = Resolver(MachineLookup(), raw)
    plugins, log_levels = ConnectorPlugins(raw, resolver, class_error), LogLevels()
    herder = herder or FakeHerder(lambda config: check_config(plugins, config), log_levels)
    listeners = rest_listeners(Settings({name: raw[name] for name in ("listeners",)}))
    authenticator = Authenticator(rest_access(raw, resolver, listeners, MachineLookup()), raw, resolver, listeners)
    app = make_app(Worker(herder, plugins, log_levels, real_pages()), authenticator, **more)
    with RestServer(app, listeners, authenticator.listener_tls) as server:
        herder.worker_id = server.url.partition("//")[2]
        yield RestWorker(server, herder, log_levels)
