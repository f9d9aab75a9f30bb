"""The REST API on a free port over a herder of dictionaries, and requests to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from heliograph.api.app import make_app
from heliograph.api.exchange import Worker
from heliograph.api.plugin_catalogue import PluginCatalogue
from heliograph.api.server import RestServer
from heliograph.config.listeners import Listener
from heliograph.worker import connect_errors as refuse
from heliograph.worker.log_levels import LogLevels
from tests.fake_herder import FakeHerder
from tests.interop.rest_story import ask

MIRROR = "org.apache.kafka.connect.mirror"
ANY_PORT = (Listener("127.0.0.1", 0),)


class FakeCatalogue:
    """The three connectors, with one key; a config is wrong if it lacks the source's alias."""

    def connector_classes(self) -> list[str]:
        return [f"{MIRROR}.Mirror{word}Connector" for word in ("Source", "Heartbeat", "Checkpoint")]

    def resolve(self, name: str) -> str | None:
        for full in self.connector_classes():
            short = full.rpartition(".")[2]
            if name in (full, short, short.removesuffix("Connector")):
                return full
        return None

    def definitions(self, plugin: str) -> list[dict[str, Any]]:
        return [{"name": "source.cluster.alias", "plugin": plugin}]

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> dict[str, Any]:
        errors = [] if config.get("source.cluster.alias") else ["Missing source.cluster.alias"]
        value = {"name": "source.cluster.alias", "errors": errors}
        definition = self.definitions(plugin)[0]
        return {"name": "", "error_count": len(errors), "configs": [{"definition": definition, "value": value}]}


def check_config(catalogue: PluginCatalogue, config: Mapping[str, str]) -> None:
    """Refuse what a herder refuses, where it matters to the story of the calls."""
    class_name = config.get("connector.class")
    if class_name is None:
        raise refuse.no_class(config)
    if catalogue.resolve(class_name) is None:
        raise refuse.unknown_class(class_name, catalogue.connector_classes())
    tasks_max = config.get("tasks.max", "1")
    if not config.get("name") or "source.cluster.alias" not in config or not tasks_max.isdigit():
        raise refuse.invalid(["The config is invalid"])


class Reply(NamedTuple):
    """An answer, its body parsed."""

    status: int
    body: Any
    headers: Mapping[str, str]


class RestWorker:
    """A running API and its herder."""

    def __init__(self, server: RestServer, herder: FakeHerder, log_levels: LogLevels) -> None:
        self.server, self.herder, self.log_levels = server, herder, log_levels

    @property
    def url(self) -> str:
        return self.server.url

    def ask(self, method: str, path: str, payload: object = None, **headers: str) -> Reply:
        """A request with a JSON body, or with none."""
        body = None if payload is None else json.dumps(payload).encode()
        sent = {"content-type": "application/json"} if body is not None else {}
        return self.send(method, path, body, {**sent, **{name.replace("_", "-"): v for name, v in headers.items()}})

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str] | None = None) -> Reply:
        """A request with any bytes as its body."""
        status, answered, raw = ask(self.url, method, path, body, headers)
        is_json = raw and answered.get("content-type") == "application/json"
        return Reply(status, json.loads(raw) if is_json else raw.decode(), {k.lower(): v for k, v in answered.items()})


@contextmanager
def rest_worker(
    herder: FakeHerder | None = None, *, read_only: bool = False, catalogue: PluginCatalogue | None = None, **more: Any
) -> Iterator[RestWorker]:
    """The API on a port of its own."""
    plugins = catalogue or FakeCatalogue()
    log_levels = LogLevels()
    if herder is None:
        herder = FakeHerder(lambda config: check_config(plugins, config), log_levels)
    app = make_app(Worker(herder, plugins, log_levels), read_only=read_only, **more)
    with RestServer(app, ANY_PORT) as server:
        herder.worker_id = server.url.removeprefix("http://")
        yield RestWorker(server, herder, log_levels)
