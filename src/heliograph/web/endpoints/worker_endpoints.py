"""Handlers of the worker itself: `/`, `/health`, `/connector-plugins` and `/admin/loggers`.

Only connectors are listed as plugins, also with `connectorsOnly=false`: batches are copied as they are, so there are no
converters, transformations or predicates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import heliograph
from heliograph.connect.contract.herder import CONNECT_VERSION
from heliograph.connect.contract.log_levels import LONGEST_LOGGER_NAME, MOST_UNUSED_LOGGERS, parse_level
from heliograph.connect.contract.refusals import no_class, unknown_class
from heliograph.errors import ConnectError
from heliograph.web.endpoints import request_bodies
from heliograph.web.error_responses import (
    INTERNAL_ONLY,
    NO_LEVEL,
    NO_SUCH_VERSION,
    OTHER_TYPE,
    TOO_MANY_LOGGERS,
    UNKNOWN_LEVEL,
    UNKNOWN_LOGGER,
    UNKNOWN_PLUGIN,
)
from heliograph.web.exchange import RestResponse, json_answer

if TYPE_CHECKING:
    from heliograph.connect.contract.log_levels import LoggerLevel
    from heliograph.web.exchange import Call


_LATEST = "latest"
_SUFFIX = "Connector"


def describe_worker(call: Call) -> RestResponse:
    """Return the version of Connect whose API this is, and our own version in place of the commit."""
    commit = f"heliograph-{heliograph.__version__}"
    return json_answer(
        {"version": CONNECT_VERSION, "commit": commit, "kafka_cluster_id": call.herder.cluster_id()},
    )


def health(call: Call) -> RestResponse:
    """Return whether the worker is ready, or still starting."""
    if call.herder.is_ready():
        return _health(200, "healthy", "Worker has completed startup and is ready to handle requests.")
    return _health(503, "starting", "Worker is still starting up.")


def unhealthy() -> RestResponse:
    """Return the response of a worker that did not answer in time."""
    message = "Worker was unable to handle this request and may be unable to handle other requests."
    return _health(500, "unhealthy", message)


def refuse_internal(call: Call) -> RestResponse:  # noqa: ARG001
    """Refuse: Java's workers send each other tasks and fences here, signed; ours need neither."""
    raise INTERNAL_ONLY.error()


def _health(status: int, word: str, message: str) -> RestResponse:
    return json_answer({"status": word, "message": message}, status)


def list_plugins(call: Call) -> RestResponse:
    """Return the three connectors of MirrorMaker 2."""
    return json_answer(
        [
            {"class": name, "type": "source", "version": CONNECT_VERSION}
            for name in sorted(call.worker.plugins.connector_classes())
        ]
    )


def get_definitions(call: Call) -> RestResponse:
    """Return the keys of a connector."""
    plugin = call.worker.plugins.resolve(call.path["plugin"])
    if plugin is None:
        raise UNKNOWN_PLUGIN.error(name=call.path["plugin"])
    version = call.query.get("version", [_LATEST])[0]
    if version not in (_LATEST, CONNECT_VERSION):
        raise NO_SUCH_VERSION.error(name=plugin, version=version, available=CONNECT_VERSION)
    return json_answer(call.worker.plugins.definitions(plugin))


def validate(call: Call) -> RestResponse:
    """Return every key of a config with its value and errors; 200 also if there are errors."""
    config = request_bodies.config_map(call.body)
    name, included = call.path["plugin"], config.get("connector.class")
    if included is None:
        raise _as_server_error(no_class(config))
    if not _without_suffix(included).endswith(_without_suffix(name)):
        raise OTHER_TYPE.error(included=included, requested=name)
    plugin = call.worker.plugins.resolve(included)
    if plugin is None:
        raise _as_server_error(unknown_class(included, call.worker.plugins.connector_classes()))
    return json_answer({**call.worker.plugins.validate(plugin, config), "name": included})


def _without_suffix(class_name: str) -> str:
    """Remove the suffix: Connect compares the class of the path with the end of the class in the body without it."""
    return class_name.removesuffix(_SUFFIX) or class_name


def _as_server_error(error: ConnectError) -> ConnectError:
    """Return the refusal with 500: here Connect does not answer 400."""
    return ConnectError(500, error.message)


def list_loggers(call: Call) -> RestResponse:
    """Return every logger in use."""
    return json_answer({name: _shown(level) for name, level in call.worker.log_levels.all().items()})


def get_logger(call: Call) -> RestResponse:
    """Return one logger."""
    name = call.path["logger"]
    level = call.worker.log_levels.get(name)
    if level is None:
        raise UNKNOWN_LOGGER.error(name=name)
    return json_answer(_shown(level))


def set_level(call: Call) -> RestResponse:
    """Set the level of a logger and those below it; with `scope=cluster` on every worker."""
    name = call.path["logger"]
    wanted = request_bodies.config_map(call.body).get("level")
    if wanted is None:
        raise NO_LEVEL.error()
    level = parse_level(wanted)
    if level is None:
        raise UNKNOWN_LEVEL.error(level=wanted)
    if not call.worker.log_levels.may_set(name):
        raise TOO_MANY_LOGGERS.error(length=LONGEST_LOGGER_NAME, most=MOST_UNUSED_LOGGERS)
    if call.query.get("scope", ["worker"])[0].lower() == "cluster":
        call.herder.set_cluster_log_level(name, level)
        return RestResponse(204)
    return json_answer(call.worker.log_levels.set(name, level))


def _shown(level: LoggerLevel) -> dict[str, object]:
    return {"level": level.level, "last_modified": level.last_modified_ms}
